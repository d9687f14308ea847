//! Goal: an application behind TLS gets and answers requests like one in clear, once it has shown its certificate; what
//! may have been cut does not look complete. Method: applications over the library's own streams.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use baton_buf::{Aggregate, FileSlice};
use baton_fcgi::application::{self, Part, RequestReader};
use baton_fcgi::response::ProtocolStatus;
use baton_tls::{OriginPolicy, OriginTlsError, PemFile, Trust};
use baton_upstream::{Address, Application, Endpoint, FailureReason, Protocol, Request, Settings};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{HandshakeKind, ServerConfig, ServerConnection, StreamOwned};

use crate::common::driver::{Driver, Ending};
use crate::common::{get, post};

type Stream = StreamOwned<ServerConnection, std::net::TcpStream>;

/// An application behind TLS, whose script runs on one connection after the other.
struct Secured {
    address: Address,
    authority: PemFile,
    accepted: Arc<AtomicUsize>,
    handshakes: Arc<Mutex<Vec<Option<HandshakeKind>>>>,
}

static STARTED: AtomicUsize = AtomicUsize::new(0);

impl Secured {
    fn start(script: impl Fn(&mut Stream) + Send + 'static) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        // Two authorities of one name would be told apart by their signatures only.
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        params.distinguished_name.push(DnType::CommonName, format!("authority {number}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let authority = PemFile::new("ca.pem", params.self_signed(&key).unwrap().pem().into_bytes());
        let issuer = Issuer::new(params, key);
        let own = KeyPair::generate().unwrap();
        let issued =
            CertificateParams::new(vec!["app.test".to_owned()]).unwrap().signed_by(&own, &issuer).unwrap();
        let chain = vec![CertificateDer::from(issued.der().to_vec())];
        let key = PrivateKeyDer::try_from(own.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let config = Arc::new(config);

        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Inet(listener.local_addr().unwrap());
        let (accepted, handshakes) = (Arc::new(AtomicUsize::new(0)), Arc::default());
        let (count, kinds): (_, Arc<Mutex<Vec<_>>>) = (Arc::clone(&accepted), Arc::clone(&handshakes));
        std::thread::spawn(move || {
            while let Ok((socket, _)) = listener.accept() {
                count.fetch_add(1, Ordering::SeqCst);
                let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
                let mut stream = StreamOwned::new(connection, socket);
                // A client that does not trust the certificate ends the handshake.
                if stream.conn.complete_io(&mut stream.sock).is_ok() {
                    kinds.lock().unwrap().push(stream.conn.handshake_kind());
                    script(&mut stream);
                }
            }
        });
        Self { address, authority, accepted, handshakes }
    }

    fn application(&self, tls: OriginPolicy, change: impl FnOnce(&mut Settings)) -> Arc<Application> {
        let mut settings = Settings::new("test", Endpoint::Shared(self.address.clone()));
        settings.tls = Some(tls);
        // Connections go one after the other.
        settings.connections_max = 1;
        settings.idle_timeout_ms = 20_000;
        change(&mut settings);
        Application::new(settings).unwrap()
    }

    fn policy(&self) -> OriginPolicy {
        OriginPolicy::new("app.test", Trust::Authorities(&self.authority), None).unwrap()
    }
}

/// Answers requests of FastCGI with `Length: …` and as many bytes as `reply` says.
fn answer_fastcgi(stream: &mut Stream, reply: usize) {
    let (mut reader, mut input, mut received, mut id) = (RequestReader::new(), Vec::new(), 0, 0);
    loop {
        let (count, part) = reader.read(&input).unwrap();
        match part {
            Part::NeedMore => {
                input = vec![0; 65_536];
                let count = stream.read(&mut input).unwrap_or(0);
                input.truncate(count);
                if count == 0 {
                    return;
                }
                continue;
            }
            Part::Begin { id: begun, .. } => (id, received) = (begun, 0),
            Part::Stdin(range) => received += range.len(),
            Part::StdinEnd => {
                let mut out = Vec::new();
                let head = format!("Content-Type: text/plain\r\nX-Received: {received}\r\n\r\n");
                application::push_stdout(&mut out, id, head.as_bytes());
                for piece in vec![b'a'; reply].chunks(60_000) {
                    application::push_stdout(&mut out, id, piece);
                }
                application::push_end(&mut out, id, 0, ProtocolStatus::RequestComplete);
                stream.write_all(&out).unwrap();
                stream.flush().unwrap();
                reader = RequestReader::new();
            }
            _ => {}
        }
        input.drain(..count);
    }
}

/// One connection serves many requests, with bodies in memory and in files, and long answers.
#[test]
fn requests_pass_over_one_connection() {
    let app = Secured::start(|stream| answer_fastcgi(stream, 3_000_000));
    let application = app.application(app.policy(), |_| {});
    let mut driver = Driver::new();
    for (id, len) in [(1, 0), (2, 5), (3, 300_000), (4, 2_000_000)] {
        let request = match len {
            0 => get(&application),
            2_000_000 => {
                let mut file = tempfile::tempfile().unwrap();
                file.write_all(&vec![b'x'; len]).unwrap();
                let mut body = Aggregate::new();
                body.push(FileSlice::new(Arc::new(std::os::fd::OwnedFd::from(file).into()), 0, len as u64));
                Request { body, ..get(&application) }
            }
            len => post(&application, &vec![b'x'; len]),
        };
        let got = driver.ask(id, request);
        assert_eq!(
            (got.ending, got.body.len() + got.file_bytes as usize),
            (Some(Ending::Complete), 3_000_000)
        );
        let received = got.head.as_ref().unwrap().field("X-Received").unwrap();
        assert_eq!(received, len.to_string().as_bytes());
    }
    assert_eq!(app.accepted.load(Ordering::SeqCst), 1);
}

/// A second connection resumes the session of the first.
#[test]
fn connections_resume_sessions() {
    let app = Secured::start(|stream| answer_fastcgi(stream, 10));
    let application = app.application(app.policy(), |settings| settings.keep_connections = false);
    let mut driver = Driver::new();
    for id in 0..3 {
        assert_eq!(driver.ask(id, get(&application)).ending, Some(Ending::Complete));
    }
    let kinds = app.handshakes.lock().unwrap();
    assert_eq!(kinds.len(), 3);
    assert!(kinds[1..].iter().all(|kind| *kind == Some(HandshakeKind::Resumed)), "{kinds:?}");
}

#[test]
fn an_application_that_is_not_trusted_gets_no_request() {
    let app = Secured::start(|_| panic!("it got one"));
    let stranger = Secured::start(|_| {});
    let mut driver = Driver::new();
    for (id, name, authority, error) in [
        (1, "app.test", &stranger.authority, OriginTlsError::UnknownIssuer),
        (2, "other.test", &app.authority, OriginTlsError::WrongName),
    ] {
        let policy = OriginPolicy::new(name, Trust::Authorities(authority), None).unwrap();
        let application = app.application(policy, |_| {});
        let why = driver.ask(id, get(&application)).why();
        assert_eq!((why, why.status(), why.label()), (FailureReason::Tls(error), 502, "tls-failed"));
    }
}

#[test]
fn what_does_not_speak_tls_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Inet(listener.local_addr().unwrap());
    std::thread::spawn(move || {
        while let Ok((mut socket, _)) = listener.accept() {
            socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
            let _ = socket.read_to_end(&mut Vec::new());
        }
    });
    let mut settings = Settings::new("test", Endpoint::Shared(address));
    settings.tls = Some(OriginPolicy::new("app.test", Trust::Anything, None).unwrap());
    let application = Application::new(settings).unwrap();
    let why = Driver::new().ask(1, get(&application)).why();
    assert_eq!(why, FailureReason::Tls(OriginTlsError::NotTls));
}

/// A response that ends with the connection is complete only if the application says that it ends.
#[test]
fn a_connection_that_is_cut_is_no_end() {
    for says_end in [true, false] {
        let app = Secured::start(move |stream| {
            stream.write_all(b"Content-Type: text/plain\r\n\r\nhello").unwrap();
            if says_end {
                stream.conn.send_close_notify();
            }
            stream.flush().unwrap();
            let _ = stream.sock.shutdown(std::net::Shutdown::Write);
            let _ = stream.sock.read_to_end(&mut Vec::new());
        });
        let application = app.application(app.policy(), |settings| settings.protocol = Protocol::Scgi);
        let mut driver = Driver::new();
        let got = driver.ask(1, get(&application));
        assert_eq!(got.body, b"hello");
        match says_end {
            true => assert_eq!(got.ending, Some(Ending::Complete)),
            false => assert_eq!(got.why(), FailureReason::Ended),
        }
    }
}

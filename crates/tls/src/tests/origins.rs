//! Goal: an origin gets a request only after it has shown what is demanded, whatever the cuts of its bytes; sessions are
//! resumed; what follows the handshake is understood. Method: servers of the library at the other end.

use std::io::{Read, Write};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, SupportedProtocolVersion, version};

use super::authority::{Authority, Issued};
use super::sessions::tickets;
use crate::provider::provider;
use crate::record_key::ContentType;
use crate::{
    Handshake, Needs, Opened, OriginEstablished, OriginHandshake, OriginNeeds, OriginPolicy, OriginTlsError,
    PemFile, Protocol, RecordError, Records, Server, Site, Trust,
};

const BOTH: &[&SupportedProtocolVersion] = rustls::ALL_VERSIONS;

/// An origin with this certificate; with `clients`, it demands certificates of that authority.
fn origin(
    issued: &Issued,
    versions: &[&'static SupportedProtocolVersion],
    clients: Option<&Authority>,
) -> Arc<ServerConfig> {
    let builder = ServerConfig::builder_with_provider(provider()).with_protocol_versions(versions).unwrap();
    let builder = match clients {
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_slice(authority.pem.as_bytes()).unwrap()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider());
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
        None => builder.with_no_client_auth(),
    };
    let chain = vec![CertificateDer::from_pem_slice(issued.certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap();
    let mut config = builder.with_single_cert(chain, key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Arc::new(config)
}

/// Makes a handshake in pieces of this size; the origin then says `greeting`. What it sent behind the handshake is unread,
/// or comes second.
fn meet(
    policy: &OriginPolicy,
    config: &Arc<ServerConfig>,
    bytes_at_once: usize,
    greeting: &[u8],
) -> Result<(OriginEstablished, Vec<u8>, ServerConnection), OriginTlsError> {
    let mut server = ServerConnection::new(Arc::clone(config)).unwrap();
    let mut handshake = OriginHandshake::new(policy);
    let mut established = None;
    let mut late = Vec::new();
    let mut has_greeted = false;
    loop {
        let needs = established.is_none().then(|| handshake.poll());
        let sent = handshake.take_output();
        server.read_tls(&mut &sent[..]).unwrap();
        // The alert tells us.
        _ = server.process_new_packets();
        match needs {
            Some(OriginNeeds::Failed(trouble)) => return Err(trouble),
            Some(OriginNeeds::Nothing(result)) => established = Some(*result),
            Some(OriginNeeds::Input) | None => {}
        }
        if !server.is_handshaking() && !std::mem::replace(&mut has_greeted, true) {
            server.writer().write_all(greeting).unwrap();
        }
        let answer = output_of(&mut server);
        if answer.is_empty() && sent.is_empty() {
            let Some(established) = established else { return Err(OriginTlsError::Left) };
            return Ok((established, late, server));
        }
        for piece in answer.chunks(bytes_at_once) {
            if established.is_some() {
                late.extend_from_slice(piece);
                continue;
            }
            handshake.feed(piece);
            match handshake.poll() {
                OriginNeeds::Input => {}
                OriginNeeds::Nothing(result) => established = Some(*result),
                OriginNeeds::Failed(trouble) => {
                    let sent = handshake.take_output();
                    server.read_tls(&mut &sent[..]).unwrap();
                    assert!(server.process_new_packets().is_err(), "the origin is told");
                    return Err(trouble);
                }
            }
            if established.is_some() {
                let sent = handshake.take_output();
                server.read_tls(&mut &sent[..]).unwrap();
                _ = server.process_new_packets();
            }
        }
    }
}

fn output_of(server: &mut ServerConnection) -> Vec<u8> {
    let mut bytes = Vec::new();
    while server.wants_write() {
        server.write_tls(&mut bytes).unwrap();
    }
    bytes
}

/// All data in records that have arrived.
fn open(established: &mut OriginEstablished, mut records: Vec<u8>) -> Result<Vec<u8>, RecordError> {
    let (mut data, mut at) = (Vec::new(), 0);
    loop {
        match established.records.open(&mut records[at..])? {
            Opened::Data { data: range, consumed } => {
                data.extend_from_slice(&records[at..][range]);
                at += consumed;
            }
            Opened::Control { consumed } => at += consumed,
            Opened::Part | Opened::End => return Ok(data),
        }
    }
}

fn policy(name: &str, authority: &Authority) -> OriginPolicy {
    OriginPolicy::new(name, Trust::Authorities(&authority.file()), None).unwrap()
}

#[test]
fn a_request_and_its_response_pass_whatever_the_cuts() {
    let authority = Authority::new("authority");
    let issued = authority.issue(&["origin.test"]);
    for version in [&version::TLS12, &version::TLS13] {
        let config = origin(&issued, &[version], None);
        for bytes_at_once in [1, 3, 100, usize::MAX] {
            let policy = policy("origin.test", &authority);
            let (mut established, late, mut server) =
                meet(&policy, &config, bytes_at_once, b"early").unwrap();
            assert_eq!(server.alpn_protocol(), Some(&b"http/1.1"[..]));
            assert_eq!(server.server_name(), Some("origin.test"));
            let arrived = [std::mem::take(&mut established.unread), late].concat();
            assert_eq!(open(&mut established, arrived).as_deref(), Ok(&b"early"[..]), "behind tickets");

            let mut records = vec![0; 1000];
            let sealed = established.records.seal(&[b"GET /"], 0, &mut records).unwrap();
            server.read_tls(&mut &records[..sealed.written]).unwrap();
            server.process_new_packets().unwrap();
            let mut request = [0; 5];
            server.reader().read_exact(&mut request).unwrap();
            assert_eq!(&request, b"GET /");
            server.send_close_notify();
            let mut end = output_of(&mut server);
            assert_eq!(established.records.open(&mut end), Ok(Opened::End));
        }
    }
}

/// The second connection of an upstream resumes the session of the first, under TLS 1.3 by a ticket that came late.
#[test]
fn sessions_are_resumed() {
    let authority = Authority::new("authority");
    let issued = authority.issue(&["origin.test"]);
    for version in [&version::TLS12, &version::TLS13] {
        let config = origin(&issued, &[version], None);
        let (one, other) = (policy("origin.test", &authority), policy("origin.test", &authority));
        for (policy, resumed) in [(&one, false), (&one, true), (&other, false), (&one, true)] {
            let (mut established, late, _) = meet(policy, &config, usize::MAX, b"").unwrap();
            assert_eq!(established.resumed, resumed);
            let arrived = [std::mem::take(&mut established.unread), late].concat();
            assert_eq!(open(&mut established, arrived).as_deref(), Ok(&b""[..]));
        }
    }
}

#[test]
fn what_demands_are_not_met_is_named() {
    let (ours, strangers) = (Authority::new("ours"), Authority::new("strangers"));
    let issued = ours.issue(&["origin.test", "192.0.2.1"]);
    let config = origin(&issued, BOTH, None);
    let reason = |policy: &OriginPolicy, config| meet(policy, config, usize::MAX, b"").err();
    assert_eq!(reason(&policy("origin.test", &ours), &config), None);
    assert_eq!(reason(&policy("192.0.2.1", &ours), &config), None);
    assert_eq!(reason(&policy("other.test", &ours), &config), Some(OriginTlsError::WrongName));
    assert_eq!(reason(&policy("origin.test", &strangers), &config), Some(OriginTlsError::UnknownIssuer));
    let anything = OriginPolicy::new("other.test", Trust::Anything, None).unwrap();
    assert_eq!(reason(&anything, &config), None);
    let system = OriginPolicy::new("origin.test", Trust::System(&[]), None).unwrap();
    assert_eq!(reason(&system, &config), Some(OriginTlsError::UnknownIssuer));
    let der = CertificateDer::from_pem_slice(ours.pem.as_bytes()).unwrap();
    let system = OriginPolicy::new("origin.test", Trust::System(&[der]), None).unwrap();
    assert_eq!(reason(&system, &config), None);

    let expired = ours.issue_expired(&["origin.test"]);
    let config = origin(&expired, BOTH, None);
    assert_eq!(reason(&policy("origin.test", &ours), &config), Some(OriginTlsError::NotInForce));
}

#[test]
fn a_certificate_is_shown_to_an_origin_that_demands_one() {
    let authority = Authority::new("authority");
    let own = authority.issue(&["proxy.test"]);
    let trust = authority.file();
    let with = OriginPolicy::new("origin.test", Trust::Authorities(&trust), Some(&own.identity())).unwrap();
    for version in [&version::TLS12, &version::TLS13] {
        let config = origin(&authority.issue(&["origin.test"]), &[version], Some(&authority));
        let (_, _, server) = meet(&with, &config, usize::MAX, b"").unwrap();
        assert_eq!(server.peer_certificates().map(<[_]>::len), Some(1));
    }
    // Under TLS 1.3 the demand shows in the first answer.
    let config = origin(&authority.issue(&["origin.test"]), &[&version::TLS13], Some(&authority));
    let (mut established, late, _) =
        meet(&policy("origin.test", &authority), &config, usize::MAX, b"").unwrap();
    assert!(matches!(open(&mut established, late), Err(RecordError::PeerAlert(_))));
}

/// An origin that speaks HTTP in clear, or nothing.
#[test]
fn what_is_no_tls_is_named() {
    let policy = OriginPolicy::new("origin.test", Trust::Anything, None).unwrap();
    for answer in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b"SSH-2.0-OpenSSH\r\n"] {
        let mut handshake = OriginHandshake::new(&policy);
        assert!(matches!(handshake.poll(), OriginNeeds::Input));
        assert!(!handshake.take_output().is_empty(), "the client speaks first");
        handshake.feed(answer);
        let OriginNeeds::Failed(trouble) = handshake.poll() else { panic!("{answer:?}") };
        assert_eq!((trouble, trouble.word()), (OriginTlsError::NotTls, "not-tls"));
    }
}

#[test]
fn a_name_that_no_certificate_has_is_refused() {
    for name in ["", "a b", "-", "origin.test:443"] {
        let trouble = OriginPolicy::new(name, Trust::Anything, None).unwrap_err().to_string();
        assert!(trouble.contains("neither a host name nor an IP address"), "{trouble}");
    }
    for name in ["[::1]", "::1", "127.0.0.1", "origin.test"] {
        OriginPolicy::new(name, Trust::Anything, None).unwrap();
    }
    let none = PemFile::new("ca.pem", b"nothing".to_vec());
    let trouble = OriginPolicy::new("origin.test", Trust::Authorities(&none), None).unwrap_err().to_string();
    assert!(trouble.starts_with("ca.pem: no certificate in it"), "{trouble}");
}

/// Tickets may share a record, and go on in the next one. A client sends none.
#[test]
fn tickets_are_read_in_any_records() {
    let ticket = [4, 0, 0, 16, 0, 0, 0, 9, 0, 0, 0, 1, 1, 0, 0, 2, 7, 7, 0, 0];
    let two = [ticket, ticket].concat();
    let is_control = |opened| matches!(opened, Ok(Opened::Control { .. }));
    let check = |pieces: &[&[u8]], expected: Result<(), RecordError>| {
        let (mut ours, mut theirs) = own_ends();
        for (index, piece) in pieces.iter().enumerate() {
            let opened = ours.open(&mut message(&mut theirs, piece));
            match expected {
                Err(error) if index + 1 == pieces.len() => assert_eq!(opened, Err(error)),
                _ => assert!(is_control(opened), "{index} of {pieces:?}"),
            }
        }
    };
    check(&[&two], Ok(()));
    check(&[&two[..1], &two[1..3], &two[3..25], &two[25..]], Ok(()));
    check(&[&two, &[24, 0, 0, 1, 0]], Ok(()));
    check(&[&two[..30], &two[30..], &[1, 0, 0, 0]], Err(RecordError::Unexpected));
    check(&[&[4, 0, 0, 4, 0, 0, 0, 9]], Err(RecordError::Unexpected));
    check(&[&[4, 1, 0, 0]], Err(RecordError::Unexpected));

    let (mut ours, mut theirs) = own_ends();
    assert_eq!(theirs.open(&mut message(&mut ours, &ticket)), Err(RecordError::Unexpected));
}

/// A handshake message in a record.
fn message(records: &mut Records, content: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 1000];
    let len = records.seal_message(ContentType::Handshake, content, &mut out).unwrap();
    out.truncate(len);
    out
}

/// Both ends of a connection, by machines of this crate: to the origin, and the origin's.
fn own_ends() -> (Records, Records) {
    let authority = Authority::new("authority");
    let site = Site {
        hosts: Vec::new(),
        identities: vec![Arc::new(authority.issue(&["origin.test"]).identity())],
        clients: None,
    };
    let server = Server::new(vec![site], &[Protocol::Http11], &tickets()).unwrap();
    let mut theirs = Handshake::new(Arc::new(server));
    let mut ours = OriginHandshake::new(&policy("origin.test", &authority));
    let (mut established, mut accepted) = (None, None);
    while established.is_none() || accepted.is_none() {
        if established.is_none()
            && let OriginNeeds::Nothing(result) = ours.poll()
        {
            established = Some(result);
        }
        theirs.feed(&ours.take_output());
        if accepted.is_none() {
            theirs.work();
            if let Needs::Nothing(result) = theirs.poll() {
                accepted = Some(result);
            }
        }
        let answer = theirs.take_output();
        match &mut established {
            // Its own tickets.
            Some(established) => established.unread.extend_from_slice(&answer),
            None => ours.feed(&answer),
        }
    }
    let mut established = established.unwrap();
    let unread = std::mem::take(&mut established.unread);
    assert_eq!(open(&mut established, unread).as_deref(), Ok(&b""[..]));
    (established.records, accepted.unwrap().records)
}

//! Workers of a test: they answer the authority's questions on two ports.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use baton_acme::Challenge;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ServerConfig, ServerConnection};

use crate::authority::ProofPorts;

/// The challenges that are answered, by the numbers that the process gave them.
#[derive(Clone, Default)]
pub(crate) struct Workers {
    challenges: Arc<Mutex<HashMap<u64, Challenge>>>,
}

impl Workers {
    /// Answers on two ports, as long as the test runs.
    pub(crate) fn start() -> (Self, ProofPorts) {
        let workers = Self::default();
        let (http, tls) = (listen(), listen());
        let port = |listener: &TcpListener| listener.local_addr().expect("its address").port();
        let ports = ProofPorts { http: port(&http), tls: port(&tls) };
        let (one, other) = (workers.clone(), workers.clone());
        std::thread::spawn(move || http.incoming().flatten().for_each(|client| one.answer_http(client)));
        std::thread::spawn(move || tls.incoming().flatten().for_each(|client| other.shake_hands(client)));
        (workers, ports)
    }

    pub(crate) fn put(&self, id: u64, challenge: Challenge) {
        assert!(
            self.challenges.lock().expect("a map").insert(id, challenge).is_none(),
            "{id} was there already"
        );
    }

    pub(crate) fn remove(&self, id: u64) {
        assert!(self.challenges.lock().expect("a map").remove(&id).is_some(), "{id} was not there");
    }

    /// How many challenges are answered.
    pub(crate) fn answered(&self) -> usize {
        self.challenges.lock().expect("a map").len()
    }

    fn answer_http(&self, mut client: TcpStream) {
        let mut line = String::new();
        let _ = BufReader::new(&client).read_line(&mut line);
        let challenges = self.challenges.lock().expect("a map");
        let body = challenges.values().find_map(|challenge| match challenge {
            Challenge::Http { token, key_authorization } => {
                let wanted = format!("GET /.well-known/acme-challenge/{token} ");
                line.starts_with(&wanted).then_some(key_authorization)
            }
            Challenge::TlsAlpn { .. } => None,
        });
        let answer = match body {
            Some(body) => format!("HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()),
            None => "HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
        };
        let _ = client.write_all(answer.as_bytes());
    }

    fn shake_hands(&self, mut client: TcpStream) {
        let challenges = self.challenges.lock().expect("a map");
        let pem = challenges.values().find_map(|challenge| match challenge {
            Challenge::TlsAlpn { pem, .. } => Some(pem.clone()),
            Challenge::Http { .. } => None,
        });
        drop(challenges);
        let Some(pem) = pem else { return };
        let chain = vec![CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate")];
        let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).expect("a key");
        let key = rustls::crypto::aws_lc_rs::sign::any_supported_type(&key).expect("a key");
        // Unchecked: the library knows no acmeIdentifier, which is critical.
        let identity = SingleCertAndKey::from(CertifiedKey::new(chain, key));
        let mut config = ServerConfig::builder().with_no_client_auth().with_cert_resolver(Arc::new(identity));
        config.alpn_protocols = vec![b"acme-tls/1".to_vec()];
        let mut connection = ServerConnection::new(Arc::new(config)).expect("a connection");
        let _ = connection.complete_io(&mut client);
        let _ = client.read(&mut [0; 100]);
    }
}

pub(crate) fn listen() -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port")
}

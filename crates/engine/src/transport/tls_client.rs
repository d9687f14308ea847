//! A client that speaks TLS over memory, and a server's certificate that it trusts.

use std::io::{Read, Write};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use baton_tls::{Identity, PemFile, Protocol, Server, Site, TicketSecrets, Tickets, self_signed};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::memory::ClientEnd;

/// The name of the server.
pub(crate) const NAME: &str = "localhost";

/// A server of this process, with HTTP/1.1 only.
pub(crate) fn server() -> Arc<Server> {
    static SERVER: OnceLock<Arc<Server>> = OnceLock::new();
    let make = || {
        let file = PemFile::new("self-signed", pem().as_bytes().to_vec());
        let site = Site {
            hosts: vec![NAME.into()],
            identities: vec![Arc::new(Identity::load(&file, &file).unwrap())],
            clients: None,
        };
        let tickets = Arc::new(Tickets::new(TicketSecrets::draw().unwrap()));
        Arc::new(Server::new(vec![site], &[Protocol::Http11], &tickets).unwrap())
    };
    Arc::clone(SERVER.get_or_init(make))
}

/// The server's certificate and key.
fn pem() -> &'static str {
    static PEM: OnceLock<String> = OnceLock::new();
    PEM.get_or_init(|| self_signed(&[NAME.into()], SystemTime::now()).unwrap().to_string())
}

/// A client's end of a connection, with TLS on it.
#[derive(Debug)]
pub(crate) struct TlsClient {
    pub(crate) end: ClientEnd,
    connection: ClientConnection,
}

impl TlsClient {
    /// A client that has said nothing, and asks for this name.
    pub(crate) fn new(end: ClientEnd, name: &'static str) -> Self {
        static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
        let make = || {
            let mut trusted = RootCertStore::empty();
            trusted.add(CertificateDer::from_pem_slice(pem().as_bytes()).unwrap()).unwrap();
            let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
            let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
            Arc::new(config.unwrap().with_root_certificates(trusted).with_no_client_auth())
        };
        let config = Arc::clone(CONFIG.get_or_init(make));
        let connection = ClientConnection::new(config, ServerName::try_from(name).unwrap()).unwrap();
        Self { end, connection }
    }

    /// Sends data, as soon as the handshake lets it.
    pub(crate) fn send(&mut self, data: &[u8]) {
        self.connection.writer().write_all(data).unwrap();
        self.go();
    }

    /// Tells the server that nothing follows.
    pub(crate) fn say_end(&mut self) {
        self.connection.send_close_notify();
        self.go();
    }

    /// Takes what the server has sent, and answers as the protocol wants. Returns the data; an error is the server's
    /// last word.
    pub(crate) fn take(&mut self) -> Result<Vec<u8>, rustls::Error> {
        let records = self.end.take_output();
        let mut data = Vec::new();
        let mut rest = &records[..];
        while !rest.is_empty() {
            self.connection.read_tls(&mut rest).unwrap();
            let processed = self.connection.process_new_packets();
            self.go();
            processed?;
            // Fails while there is nothing to read.
            let _ = self.connection.reader().read_to_end(&mut data);
        }
        self.go();
        Ok(data)
    }

    /// Whether the server has said that nothing follows.
    pub(crate) fn has_heard_end(&mut self) -> bool {
        self.connection.process_new_packets().is_ok_and(|state| state.peer_has_closed())
    }

    fn go(&mut self) {
        let mut records = Vec::new();
        while self.connection.wants_write() {
            self.connection.write_tls(&mut records).unwrap();
        }
        if !records.is_empty() {
            self.end.send(&records);
        }
    }
}

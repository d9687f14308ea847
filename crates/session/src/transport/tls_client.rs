//! A client that speaks TLS over memory, and a server's certificate that it trusts.

use std::io::{Read, Write};
use std::sync::{Arc, OnceLock};

use baton_tls::{Identity, PemFile, Protocol, Server, Site, TicketSecrets, Tickets};
use rustls::client::Resumption;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::memory::ClientEnd;

/// The name of the server.
pub(crate) const NAME: &str = "localhost";

/// A server of this process, which speaks HTTP/1.1, and HTTP/2 to clients that ask for it.
pub(crate) fn server() -> Arc<Server> {
    static SERVER: OnceLock<Arc<Server>> = OnceLock::new();
    let make = || {
        let file = PemFile::new("self-signed", identity().1.as_bytes().to_vec());
        let site = Site {
            hosts: vec![NAME.into()],
            identities: vec![Arc::new(Identity::load(&file, &file).unwrap())],
            clients: None,
        };
        let tickets = Arc::new(Tickets::new(TicketSecrets::draw().unwrap()));
        Arc::new(Server::new(vec![site], &[Protocol::Http2, Protocol::Http11], &tickets).unwrap())
    };
    Arc::clone(SERVER.get_or_init(make))
}

/// The server's certificate, and with its key as a PEM file. All sizes are the same in every process, so that a seed of
/// the simulation has the same scenario: signatures of Ed25519 have no other size.
fn identity() -> &'static (CertificateDer<'static>, String) {
    static IDENTITY: OnceLock<(CertificateDer<'static>, String)> = OnceLock::new();
    IDENTITY.get_or_init(|| {
        let mut params = rcgen::CertificateParams::new(vec![NAME.into()]).unwrap();
        params.serial_number = Some(1_u64.into());
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        (certificate.der().clone(), format!("{}{}", certificate.pem(), key.serialize_pem()))
    })
}

/// A client's end of a connection, with TLS on it.
#[derive(Debug)]
pub(crate) struct TlsClient {
    pub(crate) end: ClientEnd,
    connection: ClientConnection,
    has_heard_end: bool,
}

impl TlsClient {
    /// A client that has said nothing, and asks for this name.
    pub(crate) fn new(end: ClientEnd, name: &'static str) -> Self {
        static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
        Self::with(CONFIG.get_or_init(|| config(&[])), end, name)
    }

    /// A client that wants to speak HTTP/2.
    pub(crate) fn for_http2(end: ClientEnd, name: &'static str) -> Self {
        static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
        Self::with(CONFIG.get_or_init(|| config(&[b"h2"])), end, name)
    }

    fn with(config: &Arc<ClientConfig>, end: ClientEnd, name: &'static str) -> Self {
        let name = ServerName::try_from(name).unwrap();
        let connection = ClientConnection::new(Arc::clone(config), name).unwrap();
        Self { end, connection, has_heard_end: false }
    }

    /// Sends data, as soon as the handshake lets it.
    pub(crate) fn send(&mut self, data: &[u8]) {
        let records = self.seal(data);
        self.end.send(&records);
    }

    /// Tells the server that nothing follows.
    pub(crate) fn say_end(&mut self) {
        let records = self.seal_end();
        self.end.send(&records);
    }

    /// Takes what the server has sent, and answers as the protocol wants. Returns the data; an error is the server's
    /// last word.
    pub(crate) fn take(&mut self) -> Result<Vec<u8>, rustls::Error> {
        let data = self.open();
        let records = self.seal(b"");
        self.end.send(&records);
        data
    }

    /// Whether the server has said that nothing follows.
    pub(crate) fn has_heard_end(&self) -> bool {
        self.has_heard_end
    }

    /// Whether data still wait for the handshake.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// The records that are to be sent now, with these data in them once the handshake is over.
    pub(crate) fn seal(&mut self, data: &[u8]) -> Vec<u8> {
        self.connection.writer().write_all(data).unwrap();
        self.records()
    }

    /// Like [`seal`](Self::seal), with the message that nothing follows.
    pub(crate) fn seal_end(&mut self) -> Vec<u8> {
        self.connection.send_close_notify();
        self.records()
    }

    /// Opens what the server has sent, without an answer.
    pub(crate) fn open(&mut self) -> Result<Vec<u8>, rustls::Error> {
        let records = self.end.take_output();
        let mut data = Vec::new();
        let mut rest = &records[..];
        while !rest.is_empty() {
            self.connection.read_tls(&mut rest).unwrap();
            self.has_heard_end |= self.connection.process_new_packets()?.peer_has_closed();
            // Fails while there is nothing to read.
            let _ = self.connection.reader().read_to_end(&mut data);
        }
        Ok(data)
    }

    fn records(&mut self) -> Vec<u8> {
        let mut records = Vec::new();
        while self.connection.wants_write() {
            self.connection.write_tls(&mut records).unwrap();
        }
        records
    }
}

/// What clients have in common that offer these protocols.
fn config(protocols: &[&[u8]]) -> Arc<ClientConfig> {
    let mut trusted = RootCertStore::empty();
    trusted.add(identity().0.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config = config.unwrap().with_root_certificates(trusted).with_no_client_auth();
    // A ticket of one connection would change the bytes of the next.
    config.resumption = Resumption::disabled();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Arc::new(config)
}

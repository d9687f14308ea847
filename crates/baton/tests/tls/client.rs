//! Clients that speak TLS: the library's, which says what it saw, and those that people use.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore, StreamOwned};

use super::authority::{Authority, Issued};
use crate::common::server::PATIENCE;

/// A client that trusts an authority, and keeps its sessions.
#[derive(Clone)]
pub(crate) struct Client(Arc<ClientConfig>);

/// A connection after its handshake.
pub(crate) struct Connection(StreamOwned<ClientConnection, TcpStream>);

impl Client {
    pub(crate) fn new(authority: &Authority) -> Self {
        Self::with(authority, None)
    }

    /// A client with a certificate of its own, if any.
    pub(crate) fn with(authority: &Authority, own: Option<&Issued>) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.pem.as_bytes()).expect("PEM")).expect("a root");
        let builder = ClientConfig::builder().with_root_certificates(roots);
        Self(Arc::new(match own {
            Some(own) => {
                let chain = CertificateDer::from_pem_slice(own.certificate.as_bytes()).expect("PEM");
                let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).expect("PEM");
                builder.with_client_auth_cert(vec![chain], key).expect("a certificate")
            }
            None => builder.with_no_client_auth(),
        }))
    }

    /// Connects, and asks for this name.
    ///
    /// # Errors
    /// What the client says of the handshake.
    pub(crate) fn connect(&self, address: SocketAddr, name: &str) -> Result<Connection, String> {
        let name = ServerName::try_from(name.to_owned()).expect("a name");
        let mut tcp = TcpStream::connect(address).expect("a connection");
        tcp.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        tcp.set_nodelay(true).expect("an option");
        let mut tls = ClientConnection::new(Arc::clone(&self.0), name).expect("a client");
        while tls.is_handshaking() {
            tls.complete_io(&mut tcp).map_err(|error| error.to_string())?;
        }
        Ok(Connection(StreamOwned::new(tls, tcp)))
    }

    /// Requests the start page on a new connection.
    ///
    /// # Errors
    /// What the client says of the handshake, or of a connection that ended before the response was complete.
    pub(crate) fn get(&self, address: SocketAddr, name: &str) -> Result<String, String> {
        self.connect(address, name)?.get(name)
    }
}

impl Connection {
    /// Requests the start page of a host: the response, head and body.
    ///
    /// # Errors
    /// The connection ended before the response was complete.
    pub(crate) fn get(&mut self, host: &str) -> Result<String, String> {
        self.request(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"))
    }

    pub(crate) fn request(&mut self, head: &str) -> Result<String, String> {
        self.0.write_all(head.as_bytes()).map_err(|error| error.to_string())?;
        let mut response = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            match self.0.read(&mut buffer) {
                Ok(0) => return Err("the connection ended".into()),
                Ok(count) => response.extend_from_slice(&buffer[..count]),
                Err(error) => return Err(error.to_string()),
            }
            let text = String::from_utf8_lossy(&response);
            if let Some((head, body)) = text.split_once("\r\n\r\n")
                && head
                    .lines()
                    .any(|line| line.eq_ignore_ascii_case(&format!("content-length: {}", body.len())))
            {
                return Ok(text.into_owned());
            }
        }
    }

    pub(crate) fn into_stream(self) -> StreamOwned<ClientConnection, TcpStream> {
        self.0
    }

    /// Whether the server certificate is this one.
    pub(crate) fn has(&self, issued: &Issued) -> bool {
        let expected = CertificateDer::from_pem_slice(issued.certificate.as_bytes()).expect("PEM");
        self.0.conn.peer_certificates().is_some_and(|chain| chain[0] == expected)
    }

    pub(crate) fn is_resumed(&self) -> bool {
        self.0.conn.handshake_kind() == Some(HandshakeKind::Resumed)
    }
}

/// What `openssl s_client` prints with these arguments, whose input ends at once.
pub(crate) fn openssl(address: SocketAddr, arguments: &[&str]) -> String {
    let mut command = Command::new("openssl");
    command.args(["s_client", "-connect", &address.to_string()]).args(arguments).stdin(Stdio::null());
    let output = command.output().expect("openssl");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// What `curl` prints: head and body. Hosts are found at the address.
pub(crate) fn curl(address: SocketAddr, url: &str, arguments: &[&str]) -> String {
    let mut command = Command::new("curl");
    command.args(["-sSi", "--max-time", "25", "--connect-to", &format!("::{address}"), url]).args(arguments);
    let output = command.output().expect("curl");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

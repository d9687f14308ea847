//! Connections between members of a cluster.
//!
//! Members share one certificate and its key, or each has its own of the cluster's [authority](crate::MemberAuthority). Each end
//! shows that it has its key. Only TLS 1.3 is spoken, and no session is resumed.

use std::fmt;
use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::time::SystemTime;

use baton_report::OperatorError;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::sign::SingleCertAndKey;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, Connection, Error, ServerConfig,
    ServerConnection, version,
};
use zeroize::Zeroizing;

use crate::member_verifier::{MemberVerifier, member};
use crate::provider::provider;
use crate::self_signed::self_signed;
use crate::{Identity, PemFile};

/// The certificate and the key of a member, and whom it accepts.
#[derive(Clone)]
pub struct MemberKey {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl MemberKey {
    /// Makes a new one that all members share, as a PEM file.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn generate(now: SystemTime) -> Result<Zeroizing<String>, OperatorError> {
        self_signed(&[NAME.to_owned()], now)
    }

    /// Reads the file: the shared key, or what [`crate::MemberAuthority::sign`] has made. `revoked`: members of an authority that
    /// are none any more, by their names.
    ///
    /// # Errors
    /// It has no certificate with its key.
    pub fn load(file: &PemFile, revoked: &[String]) -> Result<Self, OperatorError> {
        let identity = Identity::load(file, file)?;
        let verifier = Arc::new(MemberVerifier::of(&identity.certified.cert, revoked)?);
        let shown = Arc::new(SingleCertAndKey::from(Arc::clone(&identity.certified)));
        let failed = |error: Error| OperatorError::new(error.to_string());
        let mut client = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&version::TLS13])
            .map_err(failed)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&verifier) as _)
            .with_client_cert_resolver(Arc::clone(&shown) as _);
        client.resumption = Resumption::disabled();
        client.enable_sni = false;
        client.alpn_protocols = vec![PROTOCOL.to_vec()];
        let mut server = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&version::TLS13])
            .map_err(failed)?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(shown);
        server.send_tls13_tickets = 0;
        server.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(Self { client: Arc::new(client), server: Arc::new(server) })
    }

    /// This end of a connection that it has made.
    ///
    /// # Errors
    /// [`MemberTlsError`]: the system has no randomness.
    pub fn connect(&self) -> Result<MemberChannel, MemberTlsError> {
        let name = ServerName::try_from(NAME).map_err(|error| MemberTlsError(error.to_string()))?;
        MemberChannel::new(ClientConnection::new(Arc::clone(&self.client), name).map(Connection::from))
    }

    /// This end of a connection that it has accepted.
    ///
    /// # Errors
    /// [`MemberTlsError`]: the system has no randomness.
    pub fn accept(&self) -> Result<MemberChannel, MemberTlsError> {
        MemberChannel::new(ServerConnection::new(Arc::clone(&self.server)).map(Connection::from))
    }
}

impl fmt::Debug for MemberKey {
    /// Never shows the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemberKey")
    }
}

/// One end of a connection: bytes of the network in and out, data out and in.
#[derive(Debug)]
pub struct MemberChannel(Connection);

/// Why a connection with a member is of no use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberTlsError(String);

impl fmt::Display for MemberTlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MemberTlsError {}

impl MemberTlsError {
    fn of(error: &Error) -> Self {
        match error {
            Error::InvalidCertificate(CertificateError::Revoked) => {
                Self("the other end's certificate is revoked".into())
            }
            Error::AlertReceived(AlertDescription::CertificateRevoked) => {
                Self("the other end says that our certificate is revoked".into())
            }
            Error::InvalidCertificate(_) | Error::AlertReceived(_) => Self(format!(
                "the other end has another key, or is no handoff agent: give all members the same file of `baton cluster key`, or one of the same authority ({error})"
            )),
            error => Self(error.to_string()),
        }
    }
}

impl MemberChannel {
    fn new(connection: Result<Connection, Error>) -> Result<Self, MemberTlsError> {
        let mut connection = connection.map_err(|error| MemberTlsError::of(&error))?;
        // The caller bounds what it sends.
        connection.set_buffer_limit(None);
        Ok(Self(connection))
    }

    /// Whether the other end has shown that it is a member.
    pub fn is_established(&self) -> bool {
        !self.0.is_handshaking()
    }

    /// The name of the other end, once it is established; `None`: all members share one key.
    pub fn member(&self) -> Option<String> {
        member(self.0.peer_certificates()?.first()?)
    }

    /// Takes bytes of the network, and appends the data in them to `data`. `false`: the other end sends no more. What is to be
    /// [sent](Self::take_output) next may be an alert.
    ///
    /// # Errors
    /// [`MemberTlsError`].
    pub fn feed(&mut self, mut bytes: &[u8], data: &mut Vec<u8>) -> Result<bool, MemberTlsError> {
        loop {
            let read = self.0.read_tls(&mut bytes).map_err(|error| MemberTlsError(error.to_string()))?;
            let state = self.0.process_new_packets().map_err(|error| MemberTlsError::of(&error))?;
            let available = state.plaintext_bytes_to_read();
            if available > 0 {
                let start = data.len();
                data.resize(start + available, 0);
                let taken = self.0.reader().read_exact(&mut data[start..]);
                taken.map_err(|error| MemberTlsError(error.to_string()))?;
            }
            if state.peer_has_closed() {
                return Ok(false);
            }
            if read == 0 || bytes.is_empty() {
                return Ok(true);
            }
        }
    }

    /// Seals data, once the connection is established; before, it waits.
    pub fn send(&mut self, data: &[u8]) {
        // In memory and without a limit, this cannot fail.
        let _ = self.0.writer().write_all(data);
    }

    /// Says that no more is sent.
    pub fn close(&mut self) {
        self.0.send_close_notify();
    }

    /// Appends to `output` what is to be sent over the network.
    pub fn take_output(&mut self, output: &mut Vec<u8>) {
        while self.0.wants_write() && self.0.write_tls(output).is_ok() {}
    }
}

/// In the certificate, for people who look at it.
const NAME: &str = "members.baton.internal";

/// The protocol above TLS: a member does not take the port for a web server's.
const PROTOCOL: &[u8] = b"baton-mover";

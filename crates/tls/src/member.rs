//! Connections between members of a cluster, who share one certificate and its key. Each shows that it has the key, and
//! accepts that one certificate, byte for byte, and no other.
//!
//! Neither names nor dates nor authorities count: a host that has the file is a member. Only TLS 1.3 is spoken, and no session is
//! resumed.

use std::fmt;
use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::time::SystemTime;

use baton_report::OperatorError;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::SingleCertAndKey;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, Connection, DigitallySignedStruct, DistinguishedName,
    Error, ServerConfig, ServerConnection, SignatureScheme, version,
};
use zeroize::Zeroizing;

use crate::provider::provider;
use crate::self_signed::self_signed;
use crate::{Identity, PemFile};

/// The certificate and the key of a cluster.
#[derive(Clone)]
pub struct MemberKey {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl MemberKey {
    /// Makes a new one, as a PEM file.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn generate(now: SystemTime) -> Result<Zeroizing<String>, OperatorError> {
        self_signed(&[NAME.to_owned()], now)
    }

    /// Reads the file.
    ///
    /// # Errors
    /// It has no certificate with its key.
    pub fn load(file: &PemFile) -> Result<Self, OperatorError> {
        let identity = Identity::load(file, file)?;
        let certificate =
            identity.certified.end_entity_cert().map_err(|error| OperatorError::new(error.to_string()))?;
        let pinned = Arc::new(Pinned {
            certificate: certificate.clone().into_owned(),
            algorithms: provider().signature_verification_algorithms,
        });
        let shown = Arc::new(SingleCertAndKey::from(Arc::clone(&identity.certified)));
        let failed = |error: Error| OperatorError::new(error.to_string());
        let mut client = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&version::TLS13])
            .map_err(failed)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&pinned) as _)
            .with_client_cert_resolver(Arc::clone(&shown) as _);
        client.resumption = Resumption::disabled();
        client.enable_sni = false;
        client.alpn_protocols = vec![PROTOCOL.to_vec()];
        let mut server = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&version::TLS13])
            .map_err(failed)?
            .with_client_cert_verifier(pinned)
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
            Error::InvalidCertificate(_) | Error::AlertReceived(_) => Self(format!(
                "the other end has another key, or is no handoff agent: give all members the same file of `baton cluster key` ({error})"
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

/// Accepts one certificate.
#[derive(Debug)]
struct Pinned {
    certificate: CertificateDer<'static>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Pinned {
    fn check(&self, shown: &CertificateDer<'_>) -> Result<(), Error> {
        // Public, so that it does not matter how long this takes.
        match shown.as_ref() == self.certificate.as_ref() {
            true => Ok(()),
            false => Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)),
        }
    }
}

/// How either end verifies that the other has the key of its certificate: both traits ask for the same.
macro_rules! check_signatures {
    () => {
        /// TLS 1.2 is not spoken.
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(Error::PeerIncompatible(rustls::PeerIncompatible::Tls13RequiredForQuic))
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            verify_tls13_signature(message, certificate, signed, &self.algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.algorithms.supported_schemes()
        }
    };
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(shown).map(|()| ServerCertVerified::assertion())
    }

    check_signatures!();
}

impl ClientCertVerifier for Pinned {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(shown).map(|()| ClientCertVerified::assertion())
    }

    check_signatures!();
}

/// In the certificate, for people who look at it.
const NAME: &str = "members.baton.internal";

/// The protocol above TLS: a member does not take the port for a web server's.
const PROTOCOL: &[u8] = b"baton-mover";

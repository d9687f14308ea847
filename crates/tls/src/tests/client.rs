//! A client of the library, at the other end of byte vectors. It takes any certificate: which one it gets is the test.

use std::sync::Arc;

use rustls::crypto::SupportedKxGroup;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, HandshakeKind, NamedGroup, ProtocolVersion, ServerConnection,
    SignatureScheme, SupportedProtocolVersion,
};

use super::authority::Issued;
use crate::any_certificate::AnyCertificate;
use crate::provider::provider;
use crate::server::Terms;

/// A client that keeps its sessions.
pub(super) struct Client(ClientConfig);

/// What a client saw.
#[derive(Debug)]
pub(super) struct Connected {
    pub(super) certificate: CertificateDer<'static>,
    pub(super) alpn: Option<Vec<u8>>,
    pub(super) version: ProtocolVersion,
    pub(super) group: Option<NamedGroup>,
    pub(super) resumed: bool,
    /// Number of certificates that the server has seen.
    pub(super) own_certificates: usize,
}

impl Client {
    pub(super) fn new() -> Self {
        Self::of(
            &provider().signature_verification_algorithms.supported_schemes(),
            rustls::ALL_VERSIONS,
            None,
        )
    }

    pub(super) fn with_schemes(schemes: &[SignatureScheme]) -> Self {
        Self::of(schemes, rustls::ALL_VERSIONS, None)
    }

    pub(super) fn with_version(version: &'static SupportedProtocolVersion) -> Self {
        Self::of(&provider().signature_verification_algorithms.supported_schemes(), &[version], None)
    }

    pub(super) fn with_certificate(own: &Issued) -> Self {
        let schemes = provider().signature_verification_algorithms.supported_schemes();
        Self::of(&schemes, rustls::ALL_VERSIONS, Some(own))
    }

    fn of(
        schemes: &[SignatureScheme],
        versions: &[&'static SupportedProtocolVersion],
        own: Option<&Issued>,
    ) -> Self {
        let builder = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(versions)
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate::with_schemes(schemes)));
        Self(match own {
            Some(own) => {
                let chain = vec![CertificateDer::from_pem_slice(own.certificate.as_bytes()).unwrap()];
                let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
            None => builder.with_no_client_auth(),
        })
    }

    pub(super) fn alpn(mut self, protocols: &[&str]) -> Self {
        self.0.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        self
    }

    /// Makes a handshake, and takes the tickets that follow it.
    ///
    /// # Errors
    /// What the client says of its failure.
    pub(super) fn meet(&self, terms: &Terms) -> Result<Connected, String> {
        let name = ServerName::try_from("one").unwrap();
        let mut client = ClientConnection::new(Arc::new(self.0.clone()), name).unwrap();
        let mut server = ServerConnection::new(Arc::clone(&terms.config)).unwrap();
        while client.wants_write() || server.wants_write() {
            let mut bytes = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut bytes).unwrap();
            }
            server.read_tls(&mut &bytes[..]).unwrap();
            // The alert tells the client.
            _ = server.process_new_packets();
            bytes.clear();
            while server.wants_write() {
                server.write_tls(&mut bytes).unwrap();
            }
            client.read_tls(&mut &bytes[..]).unwrap();
            client.process_new_packets().map_err(|error| error.to_string())?;
        }
        assert!(!client.is_handshaking() && !server.is_handshaking());
        Ok(Connected {
            certificate: client.peer_certificates().unwrap()[0].clone().into_owned(),
            alpn: client.alpn_protocol().map(<[u8]>::to_vec),
            version: client.protocol_version().unwrap(),
            group: client.negotiated_key_exchange_group().map(SupportedKxGroup::name),
            resumed: client.handshake_kind() == Some(HandshakeKind::Resumed),
            own_certificates: server.peer_certificates().map_or(0, <[_]>::len),
        })
    }
}

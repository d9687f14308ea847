//! What a handshake has settled.

use rustls::pki_types::CertificateDer;
use rustls::{CipherSuite, HandshakeKind, ProtocolVersion};

use crate::{ClientCertificate, PolicyId, Protocol};

/// The version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// TLS 1.2 (RFC 5246).
    Tls12,
    /// TLS 1.3 (RFC 8446).
    Tls13,
}

impl Version {
    pub(crate) fn of(version: ProtocolVersion) -> Option<Self> {
        match version {
            ProtocolVersion::TLSv1_2 => Some(Self::Tls12),
            ProtocolVersion::TLSv1_3 => Some(Self::Tls13),
            _ => None,
        }
    }

    /// As applications know it from `SSL_PROTOCOL`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tls12 => "TLSv1.2",
            Self::Tls13 => "TLSv1.3",
        }
    }
}

/// What seals records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cipher {
    /// AES-128-GCM.
    Aes128Gcm,
    /// AES-256-GCM.
    Aes256Gcm,
    /// ChaCha20-Poly1305.
    ChaCha20Poly1305,
}

/// What is known of an established connection.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The name that the client asked for, in lower case; `None`: it gave none.
    pub server_name: Option<Box<str>>,
    /// The protocol on top. A client that has not asked for any speaks HTTP/1.1.
    pub protocol: Protocol,
    /// The version of TLS.
    pub version: Version,
    /// The cipher suite by OpenSSL's name, which applications know from `SSL_CIPHER`.
    pub cipher_suite: &'static str,
    /// Whether the client came back with a session of before.
    pub resumed: bool,
    /// The client's certificate. If there is one, it has been verified.
    pub client_certificate: Option<Box<ClientCertificate>>,
    /// What the site demanded of clients; `None`: no certificate. Requests for sites with another policy are refused.
    pub policy: Option<PolicyId>,
}

impl Facts {
    /// The facts of a connection whose handshake is complete; `None` before that.
    pub(crate) fn of(
        connection: &rustls::CommonState,
        server_name: Option<Box<str>>,
        policy: Option<PolicyId>,
    ) -> Option<Self> {
        let certificate = connection.peer_certificates().and_then(<[CertificateDer<'_>]>::first);
        Some(Self {
            server_name,
            protocol: match connection.alpn_protocol() {
                Some(b"h2") => Protocol::Http2,
                _ => Protocol::Http11,
            },
            version: Version::of(connection.protocol_version()?)?,
            cipher_suite: suite_name(connection.negotiated_cipher_suite()?.suite()),
            resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
            client_certificate: certificate.map(|der| Box::new(ClientCertificate::read(der))),
            policy,
        })
    }
}

/// OpenSSL's name of a suite. TLS 1.3 has the same names everywhere.
fn suite_name(suite: CipherSuite) -> &'static str {
    match suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
        CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 => "ECDHE-ECDSA-AES128-GCM-SHA256",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 => "ECDHE-ECDSA-AES256-GCM-SHA384",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 => "ECDHE-ECDSA-CHACHA20-POLY1305",
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => "ECDHE-RSA-AES128-GCM-SHA256",
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => "ECDHE-RSA-AES256-GCM-SHA384",
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => "ECDHE-RSA-CHACHA20-POLY1305",
        _ => "unknown",
    }
}

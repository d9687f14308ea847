//! What a handshake has settled.

use baton_passport::parcel::{Packer, Unpacker};
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

    /// The version as applications know it from `SSL_PROTOCOL`.
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

impl Cipher {
    pub(crate) const ALL: [Self; 3] = [Self::Aes128Gcm, Self::Aes256Gcm, Self::ChaCha20Poly1305];

    /// Its number in what another process reads.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Aes128Gcm => 1,
            Self::Aes256Gcm => 2,
            Self::ChaCha20Poly1305 => 3,
        }
    }

    /// Bytes of a key.
    pub(crate) fn key_bytes(self) -> usize {
        match self {
            Self::Aes128Gcm => 16,
            Self::Aes256Gcm | Self::ChaCha20Poly1305 => 32,
        }
    }
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

    /// Packs them for the process that goes on with the connection.
    pub fn pack(&self, packer: &mut Packer) {
        packer
            .maybe_bytes(self.server_name.as_deref().map(str::as_bytes))
            .flag(self.protocol == Protocol::Http2)
            .flag(self.version == Version::Tls13)
            .bytes(self.cipher_suite.as_bytes())
            .flag(self.resumed)
            .maybe_bytes(self.policy.as_ref().map(PolicyId::bytes))
            .flag(self.client_certificate.is_some());
        if let Some(certificate) = &self.client_certificate {
            let ClientCertificate { subject, issuer, serial, fingerprint } = &**certificate;
            [subject, issuer, serial, fingerprint].iter().for_each(|text| _ = packer.bytes(text.as_bytes()));
        }
    }

    /// The facts that another process has packed. `None`: it has packed something else.
    pub fn unpack(packed: &mut Unpacker<'_>) -> Option<Self> {
        let server_name = packed.maybe_text()?.map(Box::from);
        let protocol = if packed.flag()? { Protocol::Http2 } else { Protocol::Http11 };
        let version = if packed.flag()? { Version::Tls13 } else { Version::Tls12 };
        let suite = packed.text()?;
        let cipher_suite = SUITE_NAMES.into_iter().map(|(_, name)| name).find(|name| *name == suite);
        let resumed = packed.flag()?;
        let policy = match packed.maybe_bytes()? {
            Some(digest) => Some(PolicyId::from_bytes(digest)?),
            None => None,
        };
        let client_certificate = if packed.flag()? {
            let mut text = || packed.text().map(str::to_owned);
            let (subject, issuer, serial, fingerprint) = (text()?, text()?, text()?, text()?);
            Some(Box::new(ClientCertificate { subject, issuer, serial, fingerprint }))
        } else {
            None
        };
        Some(Self {
            server_name,
            protocol,
            version,
            cipher_suite: cipher_suite.unwrap_or(UNKNOWN_SUITE),
            resumed,
            client_certificate,
            policy,
        })
    }
}

/// OpenSSL's name of a suite.
fn suite_name(suite: CipherSuite) -> &'static str {
    SUITE_NAMES.into_iter().find(|(known, _)| *known == suite).map_or(UNKNOWN_SUITE, |(_, name)| name)
}

const UNKNOWN_SUITE: &str = "unknown";

/// OpenSSL's names of suites. TLS 1.3 has the same names everywhere.
const SUITE_NAMES: [(CipherSuite, &str); 9] = [
    (CipherSuite::TLS13_AES_128_GCM_SHA256, "TLS_AES_128_GCM_SHA256"),
    (CipherSuite::TLS13_AES_256_GCM_SHA384, "TLS_AES_256_GCM_SHA384"),
    (CipherSuite::TLS13_CHACHA20_POLY1305_SHA256, "TLS_CHACHA20_POLY1305_SHA256"),
    (CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, "ECDHE-ECDSA-AES128-GCM-SHA256"),
    (CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, "ECDHE-ECDSA-AES256-GCM-SHA384"),
    (CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, "ECDHE-ECDSA-CHACHA20-POLY1305"),
    (CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, "ECDHE-RSA-AES128-GCM-SHA256"),
    (CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, "ECDHE-RSA-AES256-GCM-SHA384"),
    (CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, "ECDHE-RSA-CHACHA20-POLY1305"),
];

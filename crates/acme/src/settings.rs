//! What the process is to obtain, from whom, and where it keeps it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::names::Names;

/// The directory of Let's Encrypt.
pub const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";
/// The directory of its staging environment, whose certificates no browser trusts and whose limits are wide.
pub const LETS_ENCRYPT_STAGING: &str = "https://acme-staging-v02.api.letsencrypt.org/directory";

/// The settings of the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcmeSettings {
    /// URL of the authority's directory.
    pub directory: String,
    /// The folder of all authorities' certificates.
    pub store: PathBuf,
    /// Where the authority may write to.
    pub email: Option<String>,
    /// The account that the authority's customer has there already (RFC 8555, 7.3.4).
    pub external_account: Option<ExternalAccount>,
    /// The certificate profile, of those that the authority's directory names.
    pub profile: Option<String>,
    /// The ways of proof, in the order in which they are tried. Never empty.
    pub challenges: Vec<ChallengeKind>,
    /// The certificates of those who may have issued the directory's own certificate, in a PEM file; the system's if
    /// none.
    pub roots: Option<PathBuf>,
    /// The wanted certificates.
    pub certificates: Vec<Names>,
}

/// A key by which an authority knows its customer.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalAccount {
    /// The key's identifier.
    pub key_id: String,
    /// The key itself, as the authority gives it: base64url.
    pub hmac_key: String,
}

impl std::fmt::Debug for ExternalAccount {
    /// Never shows the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExternalAccount").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

/// How control over a name is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChallengeKind {
    /// A file below `/.well-known/acme-challenge/` on port 80 (RFC 8555, 8.3).
    #[serde(rename = "http-01")]
    Http01,
    /// A certificate in a handshake on port 443 (RFC 8737).
    #[serde(rename = "tls-alpn-01")]
    TlsAlpn01,
}

impl ChallengeKind {
    /// The word in the configuration, and the protocol's.
    pub fn word(self) -> &'static str {
        match self {
            Self::Http01 => "http-01",
            Self::TlsAlpn01 => "tls-alpn-01",
        }
    }
}

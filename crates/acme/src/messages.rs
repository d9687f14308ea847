//! What the master and the process say to each other, over a pair of sockets that keep message boundaries.
//!
//! ```text
//!   master ── Configure (settings in a descriptor) ──────────────► process
//!          ◄─ PutChallenge ──                                        orders a certificate
//!          ── ChallengeReady, when all workers have it ──────────►   asks the authority to look
//!          ◄─ RemoveChallenge ──
//!          ◄─ Issued ──                                              has stored the certificate
//!          ◄─ Plan ──                                                whenever it changes
//! ```

use serde::{Deserialize, Serialize};

use crate::time::UnixTime;

/// A message to the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub enum ToAcme {
    /// One descriptor comes with this: a file with the [`AcmeSettings`](crate::AcmeSettings), as JSON, that replace all
    /// earlier ones.
    Configure,
    /// All workers answer the challenge.
    ChallengeReady {
        /// Of [`FromAcme::PutChallenge`].
        id: u64,
    },
}

/// A message to the master.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub enum FromAcme {
    /// Answer this challenge, and say when all workers do.
    PutChallenge {
        /// Never used again.
        id: u64,
        /// What to answer.
        challenge: Challenge,
    },
    /// Forget the challenge.
    RemoveChallenge {
        /// Of [`Self::PutChallenge`].
        id: u64,
    },
    /// The store has another certificate.
    Issued {
        /// The certificate's name.
        name: String,
    },
    /// What the process will do about a certificate.
    Plan {
        /// The certificate's name.
        name: String,
        /// When it is ordered.
        order_at: UnixTime,
        /// How often the order has failed since the last success.
        failures: u32,
        /// Why it failed last.
        error: Option<String>,
    },
}

impl std::fmt::Debug for FromAcme {
    /// Never shows a key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::PutChallenge { id, .. } => write!(f, "PutChallenge {id}"),
            Self::RemoveChallenge { id } => write!(f, "RemoveChallenge {id}"),
            Self::Issued { name } => write!(f, "Issued {name}"),
            Self::Plan { name, order_at, failures, .. } => {
                write!(f, "Plan {name}: at {}, {failures} failures", order_at.0)
            }
        }
    }
}

/// What a worker answers to an authority that looks.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Challenge {
    /// To a request for `/.well-known/acme-challenge/TOKEN`, on each site.
    Http {
        /// The last part of the path.
        token: String,
        /// The whole body.
        key_authorization: String,
    },
    /// In a handshake for that name in which the client offers `acme-tls/1` alone.
    TlsAlpn {
        /// The server name.
        name: String,
        /// The certificate and its key.
        pem: String,
    },
}

impl std::fmt::Debug for Challenge {
    /// Never shows a key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Http { token, .. } => write!(f, "Http {token}"),
            Self::TlsAlpn { name, .. } => write!(f, "TlsAlpn {name}"),
        }
    }
}

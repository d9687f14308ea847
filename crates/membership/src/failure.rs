//! Why etcd did not do what it was asked.

use std::fmt;

/// A request that came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No endpoint answers, or none has a leader. Each with its reason.
    Away(String),
    /// etcd refuses, with this status and reason.
    Refused(u16, String),
    /// An answer that the protocol does not know.
    Malformed(String),
}

impl Failure {
    /// Whether another endpoint may do better.
    pub(crate) fn may_pass(&self) -> bool {
        // 429 and 5xx: too many requests, no leader, a request that was timed out.
        match self {
            Self::Away(_) | Self::Malformed(_) => true,
            Self::Refused(status, _) => *status == 429 || *status >= 500,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Away(why) => write!(f, "no endpoint of etcd answers: {why}"),
            Self::Refused(status, why) => write!(f, "etcd refuses (status {status}): {why}"),
            Self::Malformed(why) => write!(f, "an answer that etcd would not give: {why}"),
        }
    }
}

impl std::error::Error for Failure {}

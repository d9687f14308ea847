//! What came of a lookup.

use std::fmt;
use std::net::IpAddr;

/// What came of looking a name up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its addresses, at least one, and for how many seconds they hold.
    Found {
        /// The addresses, those of IPv4 first.
        addresses: Vec<IpAddr>,
        /// How long the answer says that it holds, in seconds.
        ttl_s: u32,
    },
    /// There is no such name, or it has no address.
    Absent,
    /// No answer could be had.
    Failed(LookupError),
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupError {
    /// No server can be asked: none is configured, or the network is down.
    NoServer,
    /// No server answers in time.
    TimedOut,
    /// The servers answer that they cannot.
    Refused,
    /// The servers answer what is no answer.
    Malformed,
}

impl LookupError {
    /// The reason in one word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NoServer => "no-server",
            Self::TimedOut => "timed-out",
            Self::Refused => "refused",
            Self::Malformed => "malformed",
        }
    }
}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoServer => "no DNS server can be asked: see /etc/resolv.conf",
            Self::TimedOut => "no DNS server answers in time",
            Self::Refused => "the DNS servers answer that they cannot say",
            Self::Malformed => "the DNS servers answer what is no answer",
        })
    }
}

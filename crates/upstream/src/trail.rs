//! What is known of a request's way to an origin, for the log.

use std::fmt;

use baton_dispatch::target_hash;

/// The way of a request to an origin. Times count from the moment at which the gateway got the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trail {
    /// How often a connection was tried for it, or the request was sent: 1 if all went well.
    pub tries: u32,
    /// Milliseconds until the request was sent, for the last time: the wait for a connection, and for TLS.
    pub connect_ms: Option<u64>,
    /// Milliseconds until the head of the response had come.
    pub head_ms: Option<u64>,
    /// If it is a node of the cluster: how it was chosen.
    pub choice: Option<Choice>,
}

/// Why a request went to a node, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The reason, in a word.
    pub why: &'static str,
    /// The way.
    pub way: Way,
    /// What it was chosen by.
    pub key: ChoiceKey,
}

/// By what a policy knows a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChoiceKey {
    /// By its path.
    #[default]
    Path,
    /// By a key of its own, of which this is the hash: logs show no sessions and no prompts.
    Own(u64),
    /// By its path, since it has no such key.
    Missing,
}

impl ChoiceKey {
    /// A key of its own.
    pub fn own(key: &[u8]) -> Self {
        Self::Own(target_hash(key))
    }
}

/// In logs: 16 hexadecimal digits, or a word.
impl fmt::Display for ChoiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path => f.write_str("path"),
            Self::Own(hash) => write!(f, "{hash:016x}"),
            Self::Missing => f.write_str("missing"),
        }
    }
}

/// The way of a request to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// This server stands between client and node.
    Relay,
    /// The client was sent to the node's own URL.
    Redirect,
    /// The connection was handed over to the node, which answers itself.
    HandOff,
    /// This node, which has the client's connection, gets the answer from the file's home.
    Fetch,
}

impl Way {
    /// All ways.
    pub const ALL: [Self; 4] = [Self::Relay, Self::Redirect, Self::HandOff, Self::Fetch];

    /// Whether it leads through the gateway of this server.
    pub(crate) const fn is_through_gateway(self) -> bool {
        matches!(self, Self::Relay | Self::Fetch)
    }

    /// The word in logs and metrics.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Relay => "relay",
            Self::Redirect => "redirect",
            Self::HandOff => "handoff",
            Self::Fetch => "fetch",
        }
    }
}

/// A trail that goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrailSoFar {
    begun_ms: u64,
    trail: Trail,
}

impl TrailSoFar {
    pub(crate) fn new(now_ms: u64) -> Self {
        Self { begun_ms: now_ms, trail: Trail::default() }
    }

    /// The trail of a request that another process has had until now.
    pub(crate) fn resume(trail: Trail, now_ms: u64) -> Self {
        Self { begun_ms: now_ms, trail }
    }

    /// The request has waited before: times count from there.
    pub(crate) fn begin_at(&mut self, other: Self) {
        self.begun_ms = other.begun_ms;
    }

    /// A connection could not be established.
    pub(crate) fn note_try(&mut self) {
        self.trail.tries += 1;
    }

    /// The request is sent on a connection.
    pub(crate) fn note_sent(&mut self, now_ms: u64) {
        self.trail.tries += 1;
        self.trail.connect_ms = Some(now_ms.saturating_sub(self.begun_ms));
    }

    /// The head of the response is there; the first call counts.
    pub(crate) fn note_head(&mut self, now_ms: u64) {
        self.trail.head_ms.get_or_insert(now_ms.saturating_sub(self.begun_ms));
    }

    /// A node was chosen.
    pub(crate) fn note_choice(&mut self, choice: Option<Choice>) {
        self.trail.choice = choice;
    }

    pub(crate) fn told(&self) -> Trail {
        self.trail
    }
}

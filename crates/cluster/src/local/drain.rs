//! What an operator has said of a node.

use serde::{Deserialize, Serialize};

/// The last word about a node, and what the node has said of itself since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drain {
    /// The node's name: at most [`NAME_BYTES_MAX`](super::NAME_BYTES_MAX) bytes.
    pub node: String,
    /// When it was said, in milliseconds since 1970 by the clock of that host; later than any word that was known there.
    pub said_ms: u64,
    /// Whether the node gets no requests and no connections, and gives back those that it has.
    pub is_drained: bool,
    /// How often the node has reported since; 0: it has not heard the word yet.
    pub reports: u64,
    /// Connections of front-ends that it had at its last report.
    pub left: u64,
}

impl Drain {
    /// Of two, the greater one counts.
    pub(crate) fn rank(&self) -> (u64, bool, u64) {
        (self.said_ms, self.is_drained, self.reports)
    }
}

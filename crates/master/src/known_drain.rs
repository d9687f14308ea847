//! What is known of a node that is drained.

use baton_cluster::local::Drain;
use serde::Serialize;

/// The last word about a node, as the status tells it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct KnownDrain {
    #[serde(flatten)]
    pub(super) word: Drain,
    /// What the node has left.
    pub(super) counts: LeftOf,
}

/// What is left at a node that is drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum LeftOf {
    /// Connections of front-ends.
    Connections,
    /// Requests: it has no handoff agent.
    Requests,
}

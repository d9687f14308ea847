//! The node for a request, and the reason.

use std::fmt;

use crate::NodeId;

/// The answer of a policy to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The node to serve the request; none if it has to wait at the front-end ([`Why::AdmissionLimit`]) or cannot be
    /// served ([`Why::NoNode`]).
    pub node: Option<NodeId>,
    /// What led to it.
    pub why: Why,
}

impl Decision {
    /// Send the request to this node.
    pub const fn to(node: NodeId, why: Why) -> Self {
        Self { node: Some(node), why }
    }

    /// Let the request wait: the cluster has all it can take.
    pub const fn wait() -> Self {
        Self { node: None, why: Why::AdmissionLimit }
    }

    /// No node serves.
    pub const fn no_node() -> Self {
        Self { node: None, why: Why::NoNode }
    }
}

/// Why a node was chosen, or none. [`Self::word`] is the log field and the metric label; `Display` is for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The target was not mapped to any node; a lightly loaded one got it.
    FirstAssignment,
    /// The target is mapped to this node.
    Mapped,
    /// The target went to another node, because of a load imbalance.
    Moved {
        /// The node that had it.
        from: NodeId,
    },
    /// One more node was given the target.
    Replicated {
        /// How many nodes have it now.
        nodes: u32,
    },
    /// The target had been quiet: one of its nodes was released from it.
    Shrunk {
        /// The node that no longer has it.
        dropped: NodeId,
    },
    /// Nodes take turns, and it is this one's.
    RoundRobin,
    /// No serving node has less load for its weight.
    LeastLoaded,
    /// The lighter one of two nodes drawn at random.
    Lighter,
    /// The hash of the target names this node.
    Hashed,
    /// The node named by the hash does not take the target; the next one does.
    Overflow {
        /// The node named by the hash.
        from: NodeId,
    },
    /// The front-end's picture of the caches says that this node has the target in memory.
    Cached,
    /// No cache has the target; this one has room, or evicts the globally oldest target for it.
    OldestCache,
    /// The cluster has as many connections as it may have: the request waits at the front-end.
    AdmissionLimit,
    /// No node serves.
    NoNode,
}

impl Why {
    /// The reason as one word for logs and metric labels.
    pub const fn word(self) -> &'static str {
        match self {
            Self::FirstAssignment => "first-assignment",
            Self::Mapped => "mapped",
            Self::Moved { .. } => "moved",
            Self::Replicated { .. } => "replicated",
            Self::Shrunk { .. } => "shrunk",
            Self::RoundRobin => "round-robin",
            Self::LeastLoaded => "least-loaded",
            Self::Lighter => "lighter-of-two",
            Self::Hashed => "hashed",
            Self::Overflow { .. } => "overflow",
            Self::Cached => "cached",
            Self::OldestCache => "oldest-cache",
            Self::AdmissionLimit => "admission-limit",
            Self::NoNode => "no-node",
        }
    }

    /// Whether the target was taken from one node and given to another, or to one more.
    pub const fn is_reassignment(self) -> bool {
        matches!(self, Self::Moved { .. } | Self::Replicated { .. })
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FirstAssignment => f.write_str("the target is new and went to a lightly loaded node"),
            Self::Mapped => f.write_str("the node is known to have the target"),
            Self::Moved { from } => write!(f, "the target moved here from {from}"),
            Self::Replicated { nodes } => write!(f, "one more node got the target: {nodes} have it now"),
            Self::Shrunk { dropped } => write!(f, "the target is no longer kept on {dropped}"),
            Self::RoundRobin => f.write_str("it was the turn of the node"),
            Self::LeastLoaded => f.write_str("no node has less load for its weight"),
            Self::Lighter => f.write_str("the lighter one of two nodes drawn at random"),
            Self::Hashed => f.write_str("the hash of the target names the node"),
            Self::Overflow { from } => write!(f, "the hash names {from}, which is loaded beyond its bound"),
            Self::Cached => f.write_str("the node has the target in memory"),
            Self::OldestCache => f.write_str("the node has room, or the oldest target of all to evict"),
            Self::AdmissionLimit => f.write_str("the cluster has all the connections that it may have"),
            Self::NoNode => f.write_str("no node serves"),
        }
    }
}

//! What the master and the process say to each other, over a pair of sockets that keep message boundaries.
//!
//! ```text
//!   master ── Configure (settings in a descriptor) ──► process    once, at its start
//!          ◄─ Report (in a descriptor) ──                          whenever something changes
//!          ── Order ──►  ◄─ Ordered ──                             written to etcd
//!          ── Left ──►                                             what this node has left, while it is drained
//!          ── Leave ──►                                            this node is about to end
//!          ── End ──►                                              it has ended: the process, too
//! ```
//!
//! If the master ends without a word, the process ends, and the node's lease stays: a master that follows takes the
//! registration over.

use serde::{Deserialize, Serialize};

use crate::view::Member;

/// A message to the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub enum ToMembers {
    /// One descriptor comes with this: a file with the [`MembersSettings`](crate::MembersSettings), as JSON.
    Configure,
    /// Write to etcd what an operator wants of a node.
    Order {
        /// The answer repeats it.
        ticket: u64,
        /// What.
        order: Order,
    },
    /// What this host's node has left; `None`: it is not drained.
    Left {
        /// Connections of front-ends, or requests if it has no handoff agent.
        left: Option<u64>,
    },
    /// This host's node is about to end: front-ends are to choose others.
    Leave,
    /// The server has ended.
    End,
}

/// What an operator wants of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The node.
    pub name: String,
    /// Whether it is to get no new requests; `None`: as it is.
    pub drained: Option<bool>,
    /// Its weight; `None`: as it is.
    pub weight: Option<u32>,
}

/// A message to the master.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub enum FromMembers {
    /// One descriptor comes with this: a file with a [`Report`], as JSON.
    Report,
    /// An order is in etcd, or is not.
    Ordered {
        /// Of the order.
        ticket: u64,
        /// Why it is not.
        error: Option<String>,
    },
}

/// What the process knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The nodes, of all sources.
    pub members: Vec<Member>,
    /// Counts the changes of the nodes since the process began.
    pub changes: u64,
    /// How etcd is, if it is asked.
    pub etcd: Option<EtcdReport>,
    /// Whether the nodes are those of the state file, as no source has answered yet.
    pub is_restored: bool,
}

/// How etcd is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EtcdReport {
    /// The endpoint that has answered last.
    pub endpoint: String,
    /// Why none answers now.
    pub error: Option<String>,
    /// When it last answered before that, in seconds since 1970; `None`: never, or it answers now.
    pub stale_since_s: Option<u64>,
    /// The revision of the view; 0: etcd has not answered yet.
    pub revision: i64,
    /// The cluster of etcd.
    pub cluster_id: u64,
    /// How often data was lost, or another cluster of etcd answered.
    pub losses: u64,
    /// How often the watch was too late, and all was read anew.
    pub compactions: u64,
    /// Keys whose values do not count, and why.
    pub skipped: Vec<(String, String)>,
    /// The name that this host has registered as, and why it has not, if it has not.
    pub registered: Option<(String, Option<String>)>,
}

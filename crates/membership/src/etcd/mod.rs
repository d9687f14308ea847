//! etcd by its JSON gateway: requests that block, one answer each, and a watch that answers a line per event.
//!
//! The gateway is there in etcd 3.4 and later unless it is switched off. Without gRPC there is no need of an async runtime.

mod api;
mod wire;

pub use api::Api;

/// A key below the prefix, and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key, without the prefix. What is not UTF-8 in it is replaced.
    pub key: String,
    /// The value.
    pub value: Vec<u8>,
    /// The revision that wrote it.
    pub mod_revision: i64,
}

/// All keys below the prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Which cluster of etcd has answered.
    pub cluster_id: u64,
    /// Of which revision.
    pub revision: i64,
    /// The keys.
    pub entries: Vec<Entry>,
}

/// A line of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchLine {
    /// What has happened; empty if etcd only says that the watch is there.
    Events(Vec<Event>),
    /// The watch has ended: what happened since its revision is not kept any more.
    Compacted,
    /// The watch has ended, for this reason.
    Ended(String),
}

/// A change that a watch tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A key has a value.
    Put(Entry),
    /// A key is gone, since this revision.
    Delete {
        /// The key, without the prefix.
        key: String,
        /// The revision.
        revision: i64,
    },
}

impl Event {
    /// Of which revision it is.
    pub fn revision(&self) -> i64 {
        match self {
            Self::Put(entry) => entry.mod_revision,
            Self::Delete { revision, .. } => *revision,
        }
    }
}

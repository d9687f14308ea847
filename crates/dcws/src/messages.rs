//! What the master and the process say to each other, over a pair of sockets that keep message boundaries.
//!
//! ```text
//!   master ── Configure (settings in a descriptor) ──► process
//!          ◄─ Count ──                                  at each interval
//!          ── Served, what each worker has counted ──►
//!          ◄─ Map (in a descriptor) ──                  whenever a document moves: for all workers
//!          ◄─ Status (in a descriptor) ──               for `baton ctl`
//!   master ── Tell ──► process ── Told ──► master       for `baton ctl documents PATH`
//! ```

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Origin, ServedCounts};

/// A message to the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub enum ToDocuments {
    /// One descriptor comes with this: a file with the [`DocumentsSettings`](crate::DocumentsSettings), as JSON, that replace all earlier
    /// ones.
    Configure,
    /// What a worker has counted.
    Served {
        /// The site.
        site: Origin,
        /// The counts.
        served: ServedCounts,
    },
    /// Say where the document at a path is, on each site, and why it stays.
    Tell {
        /// Which question this is; the answer repeats it.
        ticket: u64,
        /// The path, without a query.
        path: String,
    },
}

/// A message to the master.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub enum FromDocuments {
    /// Let all workers say what they have counted.
    Count,
    /// One descriptor comes with this: a [`Map`](crate::Map), as JSON, for all workers.
    Map {
        /// The site.
        site: Origin,
    },
    /// One descriptor comes with this: how the sites are, as JSON.
    Status,
    /// What there is to say of a document.
    Told {
        /// Which question this answers.
        ticket: u64,
        /// An entry for each site that has it.
        documents: Vec<Value>,
    },
}

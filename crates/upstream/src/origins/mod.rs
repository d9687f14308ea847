//! What all processes of a server know of its origins, in memory that they share.
//!
//! ```text
//!   OriginTable      a row for each origin of each route        written by
//!     ├─ name        by which workers find the row              the master
//!     ├─ drained     whether an operator wants it left out      the master
//!     ├─ at a node   what was handed off to a node's host       workers, and the master for the handoff agent
//!     ├─ ways        what hand-offs and relaying cost             the master for the handoff agent, and workers
//!     ├─ verdicts    ejection, checks                           the process that comes to one
//!     └─ counts      requests, failures, times; per worker      each worker its own
//! ```
//!
//! Rows outlive configurations and workers. There is no lock, since a process that dies with one would stop the others:
//! fields are written one by one, and two processes that count a failure in the same moment may count one. No verdict is
//! lost by that, since it is written only by the process that comes to it.

mod at_node;
mod counts;
mod record;
mod table;
mod ways;

pub(crate) use counts::{AtOrigin, RETRIED};
pub use counts::{CHOICE_LABELS, FAILURE_LABELS, OriginCounts};
pub use record::OriginRecord;
pub use table::{OriginName, OriginTable};
pub use ways::WayPrices;

/// Words of a row that all processes write: pairs of cache lines.
const SHARED_WORDS: usize = 32;

/// Words of a row that one worker writes: whole pairs of cache lines, so that no line is written by two CPUs.
const COUNT_WORDS: usize = 48;

/// The words of a row that all processes write, by their places.
pub(crate) mod word {
    use std::ops::Range;

    pub(super) const NAME: usize = baton_sys::shared_table::KEY;
    pub(super) const DRAINED: usize = 1;
    /// See `Standing`.
    pub(crate) const STANDING: Range<usize> = 2..12;
    /// The cause of the last ejection; see `Cause`.
    pub(crate) const EJECTION_CAUSE: usize = 12;
    /// When the next check is due, in milliseconds.
    pub(crate) const CHECK_DUE: usize = 13;
    /// See `Checked`.
    pub(crate) const CHECKED: Range<usize> = 14..16;
    /// The cause of the last failed check.
    pub(crate) const CHECK_CAUSE: usize = 16;
    /// When it last came back, in milliseconds; 0: never.
    pub(crate) const RETURNED: usize = 17;
    /// Requests that workers have handed over to the node with their connections.
    pub(super) const HANDED: usize = 18;
    /// How many of these have ended, less the requests that have begun at the node on connections that stayed there.
    pub(super) const SETTLED: usize = 19;
    /// Connections that are at the node, as its host says.
    pub(super) const AT_NODE: usize = 20;
    /// Whether connections can be handed over.
    pub(super) const REACHED: usize = 21;
    /// CPU time of the handoff agent for a connection, in nanoseconds, and how long it takes, in microseconds.
    pub(super) const AGENT_NS: usize = 22;
    pub(super) const DELAY_US: usize = 23;
    /// See `WayPrices`.
    pub(super) const PRICES: Range<usize> = 24..29;
}

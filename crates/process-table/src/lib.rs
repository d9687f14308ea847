//! Which processes an application has, and which event loop uses which: a table of numbers in memory that the loops of
//! all workers, the supervisor of the processes and the master share.
//!
//! ```text
//!   slot, one process:    ABSENT ── begin ──► OPENING ── open ──► FREE ◄── release ─► HELD by a loop
//!                           ▲                    ▲                 │                    │        │
//!                           │                    └── UNSURE ◄──────┼────────────────────┘        ▼
//!                           └────────────── end ───────────────── SPENT ◄─────────────────── OVERDUE
//! ```
//!
//! A slot has as many *lanes* as its process answers requests at a time, usually one. A loop takes a lane before it
//! connects, so that no request waits in the backlog of a busy process, and releases it when the connection is closed.
//! So a process without a held lane can be told to end, and no client notices.
//!
//! There are no locks and no polling. A loop that releases a lane wakes all loops if another one waits; a loop that
//! needs the supervisor wakes it. The state of a lane carries the generation of its process, so late reports about a
//! process that has ended do not change the next one.
//!
//! The table survives the sudden end of any process: the master frees what a dead worker has held
//! ([`ProcessTable::forget`]), and empties all slots when the supervisor has ended ([`ProcessTable::clear`]).

mod claim;
mod leases;
mod supervisor;
mod table;

use std::path::{Path, PathBuf};

pub use claim::Claim;
pub use leases::Leases;
pub use supervisor::ProcessReport;
pub use table::{ProcessTable, Release};

/// Where the process in a slot listens.
pub fn socket_path(prefix: &Path, slot: usize) -> PathBuf {
    let mut path = prefix.as_os_str().to_owned();
    path.push(format!(".{slot}"));
    path.into()
}

#[cfg(test)]
mod tests;

//! What the process's threads tell its first one.

use crate::etcd::{Snapshot, WatchLine};
use crate::failure::Failure;
use crate::messages::ToMembers;

/// Something has come.
#[derive(Debug)]
pub(crate) enum Input {
    /// From the master.
    Master(ToMembers),
    /// The master has ended.
    MasterEnded,
    /// All of etcd, which was asked for when the view was of that revision.
    Range(Result<Snapshot, Failure>, i64),
    /// A line of the watch with that number; `None`: its connection has ended, or there never was one.
    Watched(u64, Option<WatchLine>),
    /// Whether this host is registered now, and if not, why.
    Registered(Result<(), String>),
    /// An order is written, or is not.
    Ordered(u64, Result<(), String>),
}

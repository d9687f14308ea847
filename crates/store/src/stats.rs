//! What a store has counted.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::disk_failure::DiskFailure;

/// What a store has, and what it has done since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Objects, on disk or in memory.
    pub objects: u64,
    /// Blocks on disk.
    pub disk_blocks: u64,
    /// Bytes of their slots.
    pub disk_bytes: u64,
    /// Bytes of memory for held blocks, and for records that no disk takes.
    pub memory_bytes: u64,
    /// Bytes that wait for the disk, or whose entries in the journal do: they are lost if the process is killed.
    pub queue_bytes: u64,
    /// Blocks written.
    pub blocks_written: u64,
    /// Bytes of them.
    pub bytes_written: u64,
    /// Blocks that are not stored because the queue was full.
    pub queue_full: u64,
    /// Blocks and records that were damaged, or that the disk did not give back: forgotten, not served.
    pub forgotten: u64,
    /// Times that the journal was written anew.
    pub compactions: u64,
    /// What the disk does.
    pub disk: DiskState,
}

/// What a store's disk does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiskState {
    /// The store has no folder.
    #[default]
    Off,
    /// The folder is being opened and its journal read.
    Opening,
    /// The store takes blocks.
    Working,
    /// The file system has no space left, but for the reserve: it takes blocks in the place of others.
    Limited,
    /// The store takes no blocks, and tries again.
    Failing(DiskFailure),
}

/// Counters that all threads add to.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) objects: Counter,
    pub(crate) disk_blocks: Counter,
    pub(crate) memory_bytes: Counter,
    pub(crate) blocks_written: Counter,
    pub(crate) bytes_written: Counter,
    pub(crate) queue_full: Counter,
    pub(crate) forgotten: Counter,
    pub(crate) compactions: Counter,
}

/// A number that all threads may change.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn sub(&self, count: u64) {
        self.0.fetch_sub(count, Ordering::Relaxed);
    }

    /// Adds `count` unless the sum would exceed `max`.
    pub(crate) fn try_add(&self, count: u64, max: u64) -> bool {
        let add = |sum: u64| sum.checked_add(count).filter(|&sum| sum <= max);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }
}

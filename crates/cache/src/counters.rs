//! What the cache has counted.

use std::sync::atomic::{AtomicU64, Ordering};

use baton_store::DiskState;
use serde_json::{Value, json};

/// Counters that outlive the process.
#[derive(Clone, Copy, Debug)]
pub struct CacheCounters {
    /// Responses that were stored.
    pub stored: &'static AtomicU64,
    /// Responses that were evicted, or lost a part that they need.
    pub evicted: &'static AtomicU64,
    /// Purges and invalidations.
    pub purged: &'static AtomicU64,
    /// Bytes of bodies that clients got, and no origin sent for them.
    pub saved_bytes: &'static AtomicU64,
    /// Blocks that the disk did not take: it is full, fails, or cannot keep up.
    pub not_written: &'static AtomicU64,
    /// Blocks that were damaged, or that the disk did not give back.
    pub lost: &'static AtomicU64,
    /// Responses that were found after a start.
    pub recovered: &'static AtomicU64,
    /// Segments that came before a client asked for them.
    pub prefetched: &'static AtomicU64,
}

impl CacheCounters {
    pub(crate) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }
}

/// What a cache holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Responses.
    pub objects: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
    /// Responses that are being fetched.
    pub fills: u64,
    /// The disk; `None`: there is no folder.
    pub disk: Option<DiskStats>,
}

/// What a cache has on its disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskStats {
    /// What the disk does: `working`, or what keeps it from that.
    pub state: &'static str,
    /// Bytes of the file system that blocks take.
    pub bytes: u64,
    /// Bytes that wait to be written.
    pub queue_bytes: u64,
    /// Whether what was there at the start is known.
    pub is_recovered: bool,
}

impl DiskStats {
    /// The word for what a disk does.
    pub(crate) fn word(state: DiskState) -> &'static str {
        match state {
            DiskState::Off => "off",
            DiskState::Opening => "opening",
            DiskState::Working => "working",
            DiskState::Limited => "full",
            DiskState::Failing(error) => error.word(),
        }
    }
}

impl CacheStats {
    /// For the status of a worker. Loops of one process report the same cache.
    pub fn report(&self) -> Value {
        let Self { objects, bytes, fills, disk } = self;
        let mut report = json!({ "objects": objects, "bytes": bytes, "fills": fills });
        if let Some(DiskStats { state, bytes, queue_bytes, is_recovered }) = disk {
            report["disk"] = json!({ "state": state, "bytes": bytes, "queue_bytes": queue_bytes, "recovered": is_recovered });
        }
        report
    }
}

//! Counters of the caches.

use std::sync::atomic::{AtomicU64, Ordering};

/// How often a cache could help.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HitStats {
    /// Look-ups that the cache could answer.
    pub hits: u64,
    /// Look-ups that it could not answer, or was switched off for.
    pub misses: u64,
    /// Entries now.
    pub entries: u64,
    /// Entries evicted to make room.
    pub evictions: u64,
}

/// Counts since the cache was created, and its current contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Where names lead to.
    pub names: HitStats,
    /// Files, in memory or open; a hit saves opening, reading and closing.
    pub files: HitStats,
    /// Heads. Their entries and evictions are those of their files, and not counted here.
    pub heads: HitStats,
    /// Of the files, those in memory.
    pub in_memory: u64,
    /// What those take of `memory_bytes_max`.
    pub memory_bytes: u64,
    /// How often a name was looked up again because of its age.
    pub revalidations: u64,
    /// How often revalidation found a change, or a file so recent that it was read again.
    pub changes: u64,
    /// Questions answered with [`crate::NeedsDisk`].
    pub needs_disk: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) name_hits: AtomicU64,
    pub(crate) name_misses: AtomicU64,
    pub(crate) file_hits: AtomicU64,
    pub(crate) file_misses: AtomicU64,
    pub(crate) head_hits: AtomicU64,
    pub(crate) head_misses: AtomicU64,
    pub(crate) revalidations: AtomicU64,
    pub(crate) changes: AtomicU64,
    pub(crate) needs_disk: AtomicU64,
    /// Files in memory that are kept open besides.
    pub(crate) both_ways: AtomicU64,
}

impl Counters {
    pub(crate) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
    }
}

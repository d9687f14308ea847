//! Greedy-Dual-Size: the value of an entry is `L + cost / size`, where `L` is the value of the last victim.
//!
//! The cost is 1 for each entry, which gives the best hit ratio (Cao and Irani, *Cost-Aware WWW Proxy Caching
//! Algorithms*, USENIX ITS 1997, section 4). `L` rises with each victim; so unused entries age relative to new ones
//! without a pass over the entries.

use std::sync::atomic::{AtomicU64, Ordering};

/// One, as a fixed-point number: fine enough to distinguish files of a megabyte; with entries of a kilobyte `L`
/// saturates after 2^42 evictions.
const ONE: u64 = 1 << 32;

#[derive(Debug, Default)]
pub(crate) struct Gds {
    /// `L` of the paper.
    inflation: AtomicU64,
}

impl Gds {
    pub(super) fn value_of_use(&self, size: u64) -> u64 {
        self.inflation.load(Ordering::Relaxed).saturating_add(ONE / size.max(1))
    }

    pub(super) fn handle_eviction(&self, value: u64) {
        self.inflation.fetch_max(value, Ordering::Relaxed);
    }
}

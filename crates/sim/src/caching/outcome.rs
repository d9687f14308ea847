//! What came out of a run.

use serde::Serialize;

/// The numbers of one policy with one size of the cache, counted while it is warm.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CacheOutcome {
    /// The workload.
    pub workload: String,
    /// The policy, and its grouping if it is not its own.
    pub policy: String,
    /// Size of the cache.
    pub cache_bytes: u64,
    /// The cache's size as a share of all objects' bytes.
    pub cache_share: f64,
    /// Requests, or sessions.
    pub requests: u64,
    /// Requests for which the origin was not asked.
    pub hits: u64,
    /// Requests whose first block, or index at the end, was not here.
    pub delayed_starts: u64,
    /// Bytes that clients read.
    pub wanted_bytes: u64,
    /// Bytes that clients read and that were here.
    pub hit_bytes: u64,
    /// Bytes that the origin sent.
    pub origin_bytes: u64,
    /// Bytes of blocks that the origin sent and that no client read.
    pub useless_bytes: u64,
}

impl CacheOutcome {
    /// Hits of all requests, 0 to 1.
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        ratio(self.hits, self.requests)
    }

    /// Bytes read that were here, 0 to 1.
    #[must_use]
    pub fn byte_hit_ratio(&self) -> f64 {
        ratio(self.hit_bytes, self.wanted_bytes)
    }

    /// What the cache saves the origin, of the bytes that clients read: below 0 if it fetches more than they read.
    #[must_use]
    pub fn saved_ratio(&self) -> f64 {
        1.0 - ratio(self.origin_bytes, self.wanted_bytes)
    }

    /// Delayed starts of all requests, 0 to 1.
    #[must_use]
    pub fn delayed_ratio(&self) -> f64 {
        ratio(self.delayed_starts, self.requests)
    }

    /// Useless bytes of those that the origin sent, 0 to 1.
    #[must_use]
    pub fn useless_ratio(&self) -> f64 {
        ratio(self.useless_bytes, self.origin_bytes)
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

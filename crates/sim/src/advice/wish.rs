//! What advice is asked for, and what is tried.

use baton_dispatch::PolicyName::{self, BoundedHash, LardH, LeastConnections};

use crate::trace::LogSummary;

/// Requirements on the cluster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wish {
    /// Required requests per second, above 0.
    pub per_s: f64,
    /// How many nodes may fail meanwhile.
    pub spare: usize,
}

impl Wish {
    /// The busiest second of the log, times a factor for growth.
    #[must_use]
    pub fn from_log(summary: &LogSummary, growth: f64, spare: usize) -> Self {
        Self { per_s: (summary.busiest_second as f64 * growth).max(1.0), spare }
    }
}

/// The policies compared: by load, by the usual hashing, and our own.
pub(super) const POLICIES: [PolicyName; 3] = [LeastConnections, BoundedHash, LardH];
/// Memory of a node, as a share of the profile's.
pub(super) const MEMORY: [f64; 5] = [0.0625, 0.25, 1.0, 4.0, 16.0];
/// The profile's own.
pub(super) const MEMORY_AS_IT_IS: usize = 2;
/// Of fewer requests, not even the mean size is known.
pub(super) const REQUESTS_MIN: u64 = 1_000;

//! Which entry of a full table is evicted first.
//!
//! A policy gives each entry a *value* at each use; the entry of the smallest value is evicted first. An entry's
//! value never falls, so [`crate::table::Table`] can queue entries lazily.

mod gds;
mod lru;

use gds::Gds;
use lru::Lru;

/// Which small files are evicted when memory is full.
///
/// Names and descriptors weigh the same each; there both policies mean the same, least recently used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// The least recently used first.
    #[default]
    Lru,
    /// Greedy-Dual-Size with equal costs (Cao and Irani, 1997; used by Flash-Lite): large and long unused files
    /// first, which favours the number of hits over the number of bytes served from memory.
    Gds,
}

/// The running state of a policy.
#[derive(Debug)]
pub(crate) enum Order {
    Lru(Lru),
    Gds(Gds),
}

impl Order {
    pub(crate) fn new(policy: Policy) -> Self {
        match policy {
            Policy::Lru => Self::Lru(Lru::default()),
            Policy::Gds => Self::Gds(Gds::default()),
        }
    }

    /// The value of an entry of this weight that is used now.
    pub(crate) fn value_of_use(&self, weight: u64) -> u64 {
        match self {
            Self::Lru(lru) => lru.value_of_use(),
            Self::Gds(gds) => gds.value_of_use(weight),
        }
    }

    /// The entry of the smallest value, this one, was evicted.
    pub(crate) fn handle_eviction(&self, value: u64) {
        match self {
            Self::Lru(_) => {}
            Self::Gds(gds) => gds.handle_eviction(value),
        }
    }
}

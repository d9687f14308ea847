//! Least recently used: the value of an entry is the tick of its last use.

use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub(crate) struct Lru {
    tick: AtomicU64,
}

impl Lru {
    pub(super) fn value_of_use(&self) -> u64 {
        self.tick.fetch_add(1, Ordering::Relaxed)
    }
}

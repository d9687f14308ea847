//! The checks that one loop has to make, and those that have no answer yet.

use std::sync::{Arc, Weak};

use crate::RequestId;
use crate::peers::Peers;

/// The checks of a loop.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    /// Peers that are checked. Weak: an old configuration's are forgotten.
    pub(crate) watched: Vec<Weak<Peers>>,
    /// At most one for each peer, unless an answer takes longer than its time.
    pub(crate) under_way: Vec<Check>,
    /// When to look at all of them.
    pub(crate) due_ms: u64,
    /// The number of the last request that was a check.
    pub(crate) number: u32,
}

/// A check that has no answer yet.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) request_id: RequestId,
    pub(crate) peers: Arc<Peers>,
    pub(crate) peer: usize,
    /// When it has taken too long.
    pub(crate) until_ms: u64,
}

impl Checks {
    /// Checks these peers from now on.
    pub(crate) fn watch(&mut self, peers: &Arc<Peers>) {
        if !self.watched.iter().any(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(peers))) {
            self.watched.push(Arc::downgrade(peers));
            self.due_ms = 0;
        }
    }

    /// When there is something to do; `u64::MAX`: never.
    pub(crate) fn due_ms(&self) -> u64 {
        if self.watched.is_empty() && self.under_way.is_empty() { u64::MAX } else { self.due_ms }
    }
}

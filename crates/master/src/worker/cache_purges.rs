//! The shared cache, as the thread of commands sees it: what it is to purge, and what it has invalidated.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use baton_cache::{PurgeOrder, PurgeOutbox, SharedCache};

use crate::missed_purges;

/// The worker's cache, and what other workers have to hear of it.
#[derive(Debug)]
pub(super) struct CachePurges {
    pub(super) cache: Arc<SharedCache>,
    /// `None`: there are no others.
    pub(super) outbox: Option<Arc<PurgeOutbox>>,
}

impl CachePurges {
    /// Readable when there are [`messages`](Self::messages).
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.outbox.as_ref().map(|outbox| outbox.descriptor())
    }

    /// What the cache has invalidated, as messages for the master.
    pub(super) fn messages(&self) -> Vec<Vec<PurgeOrder>> {
        let orders = self.outbox.as_ref().map(|outbox| outbox.take()).unwrap_or_default();
        missed_purges::messages(&orders).map(<[_]>::to_vec).collect()
    }
}

//! How the loops of all workers hear that a connection of one of them waits in an application's backlog.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use baton_sys::shared::shared_counters;

use crate::Address;

/// A notice for each application, shared by all processes that are forked from now on. Without any, there is one loop only.
#[derive(Clone, Copy, Debug, Default)]
pub struct BacklogNotices(&'static [AtomicU64]);

/// When a connection to an application was last seen to wait in its backlog, on the [precise clock](precise_us); 0: none.
///
/// Two applications may have the same notice. Then a connection is closed now and then for which no other one waits.
#[derive(Clone, Copy, Debug)]
pub struct BacklogNotice(&'static AtomicU64);

impl BacklogNotices {
    /// Empty ones. They are never freed.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn allocate() -> io::Result<Self> {
        Ok(Self(shared_counters(NOTICES)?))
    }

    /// The one for an application.
    pub fn of(self, address: &Address) -> Option<BacklogNotice> {
        let mut hasher = DefaultHasher::new();
        address.hash(&mut hasher);
        let index = hasher.finish() % NOTICES as u64;
        self.0.get(index as usize).map(BacklogNotice)
    }
}

impl BacklogNotice {
    pub(crate) fn post(self, now_us: u64) {
        self.0.store(now_us, Relaxed);
    }

    /// Whether a connection waits for which no loop has closed one yet. It is the caller's to do so.
    pub(crate) fn take(self, now_us: u64) -> bool {
        let posted_us = self.0.load(Relaxed);
        let is_fresh = posted_us != 0 && now_us < posted_us + NOTICE_US;
        is_fresh && self.0.compare_exchange(posted_us, 0, Relaxed, Relaxed).is_ok()
    }
}

/// How many there are: few servers have so many applications. It is a page of memory.
const NOTICES: usize = 512;

/// How long a notice holds: the loop that has posted it may be no more.
const NOTICE_US: u64 = 20_000;

//! Shared counters by which a loop tells the loops of all workers that its connections wait in an application's backlog.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use baton_sys::shared::shared_counters;

use crate::Address;

/// A notice for each application, shared with all processes forked from now on. Empty if there is only one loop.
#[derive(Clone, Copy, Debug, Default)]
pub struct BacklogNotices(&'static [AtomicU64]);

/// How many connections wait in an application's backlog, and when a loop last counted them.
///
/// Two applications may share a notice by a hash collision. Then a loop now and then closes a connection needlessly.
#[derive(Clone, Copy, Debug)]
pub struct BacklogNotice(&'static AtomicU64);

impl BacklogNotices {
    /// Allocates empty notices. They are never freed.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn allocate() -> io::Result<Self> {
        Ok(Self(shared_counters(NOTICES)?))
    }

    /// The notice of the application at this address.
    pub fn of(self, address: &Address) -> Option<BacklogNotice> {
        let mut hasher = DefaultHasher::new();
        address.hash(&mut hasher);
        let index = hasher.finish() % NOTICES as u64;
        self.0.get(index as usize).map(BacklogNotice)
    }
}

impl BacklogNotice {
    /// Posts how many connections of a loop wait. Zero is ignored: another loop may have posted some.
    pub(crate) fn post(self, waiting: usize, now_us: u64) {
        if waiting == 0 {
            return;
        }
        self.0.store(((now_us / 1_000) << COUNT_BITS) | (waiting as u64).min(COUNT_MASK), Relaxed);
    }

    /// Whether [`take`](Self::take) may find a waiting connection. Needs no clock.
    pub(crate) fn is_posted(self) -> bool {
        self.0.load(Relaxed) & COUNT_MASK > 0
    }

    /// Takes one waiting connection off the notice. True: the caller has to close a connection for it.
    pub(crate) fn take(self, now_us: u64) -> bool {
        let word = self.0.load(Relaxed);
        let is_fresh = now_us / 1_000 < (word >> COUNT_BITS) + NOTICE_MS;
        word & COUNT_MASK > 0 && is_fresh && self.0.compare_exchange(word, word - 1, Relaxed, Relaxed).is_ok()
    }
}

/// A notice is one number: the time in milliseconds above the count.
const COUNT_BITS: u32 = 16;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

/// Number of notices: few servers have so many applications. They take one page of memory.
const NOTICES: usize = 512;

/// How long a notice is valid: the loop that posted it may have ended.
const NOTICE_MS: u64 = 20;

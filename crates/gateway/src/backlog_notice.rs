//! How the loops of all workers hear that a connection of one of them waits in an application's backlog.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use baton_sys::shared::shared_counters;

use crate::Address;

/// A notice for each application, shared by all processes that are forked from now on. Without any, there is one loop only.
#[derive(Clone, Copy, Debug, Default)]
pub struct BacklogNotices(&'static [AtomicU64]);

/// How many connections to an application wait in its backlog, as one of the loops last saw it, and when that was.
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
    /// Says that so many connections of a loop wait. None says nothing: another loop may have some.
    pub(crate) fn post(self, waiting: usize, now_us: u64) {
        if waiting == 0 {
            return;
        }
        self.0.store(((now_us / 1_000) << COUNT_BITS) | (waiting as u64).min(COUNT_MASK), Relaxed);
    }

    /// Whether a connection waits for which no loop has closed one yet. It is the caller's to do so.
    pub(crate) fn take(self, now_us: u64) -> bool {
        let word = self.0.load(Relaxed);
        let is_fresh = now_us / 1_000 < (word >> COUNT_BITS) + NOTICE_MS;
        word & COUNT_MASK > 0 && is_fresh && self.0.compare_exchange(word, word - 1, Relaxed, Relaxed).is_ok()
    }
}

/// A notice is one number: the time in milliseconds, and the count.
const COUNT_BITS: u32 = 16;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

/// How many there are: few servers have so many applications. It is a page of memory.
const NOTICES: usize = 512;

/// How long a notice holds: the loop that has posted it may be no more.
const NOTICE_MS: u64 = 20;

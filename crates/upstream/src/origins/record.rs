//! The row of one origin, as one process sees it.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{COUNT_WORDS, SHARED_WORDS, word};

/// The row of an origin, and the counts of one worker in it.
#[derive(Clone, Debug)]
pub struct OriginRecord {
    shared: Words,
    pub(super) counts: Words,
}

/// Words of the table, or of an origin that is in none.
#[derive(Clone, Debug)]
pub(super) enum Words {
    Table(&'static [AtomicU64]),
    Own(Arc<[AtomicU64]>),
}

impl Words {
    fn own(count: usize) -> Self {
        Self::Own((0..count).map(|_| AtomicU64::new(0)).collect())
    }

    pub(super) fn get(&self) -> &[AtomicU64] {
        match self {
            Self::Table(words) => words,
            Self::Own(words) => words,
        }
    }
}

impl Default for OriginRecord {
    /// A record that is in no table: for this process alone.
    fn default() -> Self {
        Self { shared: Words::own(SHARED_WORDS), counts: Words::own(COUNT_WORDS) }
    }
}

impl OriginRecord {
    pub(super) fn in_table(shared: &'static [AtomicU64], counts: &'static [AtomicU64]) -> Self {
        Self { shared: Words::Table(shared), counts: Words::Table(counts) }
    }

    /// Whether an operator wants it to get no requests.
    pub fn is_drained(&self) -> bool {
        self.load(word::DRAINED) != 0
    }

    /// Sets that.
    pub fn set_drained(&self, is_drained: bool) {
        self.store(word::DRAINED, u64::from(is_drained));
    }

    /// The words that all processes write.
    pub(super) fn shared(&self) -> &[AtomicU64] {
        self.shared.get()
    }

    pub(crate) fn load(&self, word: usize) -> u64 {
        self.shared.get()[word].load(Ordering::Relaxed)
    }

    pub(crate) fn store(&self, word: usize, value: u64) {
        self.shared.get()[word].store(value, Ordering::Relaxed);
    }

    /// Changes a word, if it is still what the caller has seen. One of several processes succeeds.
    pub(crate) fn exchange(&self, word: usize, seen: u64, value: u64) -> bool {
        self.shared.get()[word].compare_exchange(seen, value, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Several words.
    pub(crate) fn load_all<const COUNT: usize>(&self, words: Range<usize>) -> [u64; COUNT] {
        debug_assert_eq!(words.len(), COUNT);
        std::array::from_fn(|at| self.load(words.start + at))
    }

    /// Stores those of several words that differ from what was loaded: the others may be another process's by now.
    pub(crate) fn store_changed<const COUNT: usize>(
        &self,
        words: Range<usize>,
        before: [u64; COUNT],
        after: [u64; COUNT],
    ) {
        for (word, (before, after)) in words.zip(before.into_iter().zip(after)) {
            if before != after {
                self.store(word, after);
            }
        }
    }
}

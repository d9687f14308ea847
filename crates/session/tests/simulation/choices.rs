//! The choices of a seed.

use std::ops::Range;

/// Choices in the order in which they are asked for: the same seed makes the same ones.
#[derive(Debug)]
pub(crate) struct Choices(fastrand::Rng);

impl Choices {
    pub(crate) fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// One of these numbers.
    pub(crate) fn number(&mut self, range: Range<usize>) -> usize {
        self.0.usize(range)
    }

    /// The same in milliseconds.
    pub(crate) fn ms(&mut self, range: Range<u64>) -> u64 {
        self.0.u64(range)
    }

    /// `true` so many times in a hundred.
    pub(crate) fn chance(&mut self, percent: u8) -> bool {
        self.0.u8(0..100) < percent
    }

    /// One of these.
    pub(crate) fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.0.usize(0..of.len())]
    }

    /// A size, small ones as likely as large ones: from 1 to `max`.
    pub(crate) fn size(&mut self, max: usize) -> usize {
        let bits = self.0.u32(0..=max.ilog2());
        self.0.usize(1..=(2_usize << bits).min(max))
    }

    /// Separate choices for a part.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.0.fork())
    }

    /// A seed for something else.
    pub(crate) fn seed(&mut self) -> u64 {
        self.0.u64(..)
    }
}

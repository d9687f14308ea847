//! What a peer may still look at, until it says that it does not, or its connection ends.

use std::collections::VecDeque;

/// Things that were lent to one peer, in this order. Dropping it takes all of them back.
#[derive(Debug)]
pub struct Lent<T> {
    things: VecDeque<(T, u64)>,
    bytes: u64,
    /// Returned bytes of the oldest thing, which is not returned as a whole.
    of_oldest: u64,
}

/// A peer returns more than it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotLent;

impl<T> Default for Lent<T> {
    fn default() -> Self {
        Self { things: VecDeque::new(), bytes: 0, of_oldest: 0 }
    }
}

impl<T> Lent<T> {
    /// Lends a thing of `bytes` bytes.
    pub fn lend(&mut self, thing: T, bytes: u64) {
        self.things.push_back((thing, bytes));
        self.bytes += bytes;
    }

    /// The peer returns the oldest `bytes` bytes. Things are dropped as wholes.
    ///
    /// # Errors
    /// [`NotLent`]; then nothing is returned.
    pub fn take_back(&mut self, bytes: u64) -> Result<(), NotLent> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or(NotLent)?;
        self.of_oldest += bytes;
        while let Some(&(_, len)) = self.things.front()
            && len <= self.of_oldest
        {
            self.of_oldest -= len;
            self.things.pop_front();
        }
        Ok(())
    }

    /// Takes everything back.
    pub fn clear(&mut self) {
        self.things.clear();
        (self.bytes, self.of_oldest) = (0, 0);
    }

    /// Bytes that were lent and not returned.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

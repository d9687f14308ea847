//! Reuses the memory of unreferenced buffers.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};

use crate::Buffer;

/// Recycles the memory of small, short-lived buffers, mainly response heads.
///
/// The pool keeps a reference to each buffer that it froze, and reuses the memory once that is the last one
/// (IO-Lite's free pool per stream, Pai section 2.2.2). A pool belongs to one loop; its buffers may go anywhere.
#[derive(Debug)]
pub struct Pool {
    issued: VecDeque<Buffer>,
    buffers_max: usize,
    buffer_bytes_max: usize,
}

impl Pool {
    /// A pool that remembers at most `buffers_max` buffers, none larger than `buffer_bytes_max` bytes:
    /// beyond either bound buffers are ordinary memory, freed after use.
    pub fn new(buffers_max: usize, buffer_bytes_max: usize) -> Self {
        Self { issued: VecDeque::new(), buffers_max, buffer_bytes_max }
    }

    /// An empty buffer to write into.
    pub fn take(&mut self) -> Unfrozen {
        // The oldest are most likely free; a slow client's moves to the back.
        for _ in 0..self.issued.len().min(LOOKS_MAX) {
            let Some(mut oldest) = self.issued.pop_front() else { break };
            if let Some(memory) = oldest.vec_mut() {
                memory.clear();
                return Unfrozen(oldest);
            }
            self.issued.push_back(oldest);
        }
        Unfrozen(Buffer::default())
    }

    /// Ends the writing: the bytes do not change until the buffer is unreferenced.
    pub fn freeze(&mut self, unfrozen: Unfrozen) -> Buffer {
        let buffer = unfrozen.0;
        if self.issued.len() < self.buffers_max && buffer.len() <= self.buffer_bytes_max {
            self.issued.push_back(buffer.clone());
        }
        buffer
    }
}

/// A buffer that is still being written and has one owner.
#[derive(Debug)]
pub struct Unfrozen(Buffer);

impl Unfrozen {
    /// Ends the writing; the memory is not recycled.
    pub fn freeze(self) -> Buffer {
        self.0
    }
}

impl Deref for Unfrozen {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        self.0.vec().expect(OWN)
    }
}

impl DerefMut for Unfrozen {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        self.0.vec_mut().expect(OWN)
    }
}

/// What a buffer is that is still being written.
const OWN: &str = "an unfrozen buffer has one owner, and memory of its own";

/// How many used buffers a search for a free one skips.
const LOOKS_MAX: usize = 4;

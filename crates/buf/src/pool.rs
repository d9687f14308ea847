//! Memory of buffers, used again once nobody refers to them.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};

use crate::Buffer;

/// Recycles the memory of small buffers that are written, frozen, sent and forgotten: response heads above all.
///
/// The pool keeps a reference to each buffer that it froze; when its own is the last one, the memory is
/// given out again (IO-Lite's free pool per stream, Pai section 2.2.2). A pool belongs to one loop; the
/// buffers that come from it may go anywhere.
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
        // The oldest are the likeliest to be free; a slow client's is put to the back.
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

    /// Ends the writing: from here on the bytes do not change until nobody refers to them.
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
        self.0.vec()
    }
}

impl DerefMut for Unfrozen {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        self.0.vec_mut().expect("an unfrozen buffer has one owner")
    }
}

/// How many buffers in use are passed over in search of a free one.
const LOOKS_MAX: usize = 4;

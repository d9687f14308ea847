//! Reading from applications, into reused memory.
//!
//! Large reads stay where they were read, and the pieces of the response are slices of that memory. Small reads are copied
//! out, so that they do not hold a whole buffer.

use std::ops::Range;
use std::os::fd::OwnedFd;

use baton_buf::{Buffer, Pool, Slice, Unfrozen};
use rustix::io::Errno;

/// The memory into which one loop reads.
#[derive(Debug)]
pub(crate) struct Input {
    pool: Pool,
    /// Memory of the last read, if that was small.
    spare: Option<Unfrozen>,
}

/// What was read.
#[derive(Debug)]
pub(crate) enum Received<'a> {
    /// Memory that stays unchanged: pieces may be slices of it.
    Kept(Buffer),
    /// Memory that the next read overwrites.
    Passing(&'a [u8]),
}

impl Input {
    pub(crate) fn new() -> Self {
        Self { pool: Pool::new(BUFFERS_MAX, READ_BYTES), spare: None }
    }

    /// Reads without waiting. An empty result means that the connection has ended.
    ///
    /// # Errors
    /// `EAGAIN`, `ECONNRESET` and the like.
    pub(crate) fn read(&mut self, socket: &OwnedFd) -> Result<Received<'_>, Errno> {
        let mut memory = self.spare.take().unwrap_or_else(|| self.pool.take());
        memory.clear();
        memory.reserve_exact(READ_BYTES);
        let result = rustix::io::read(socket, rustix::buffer::spare_capacity(&mut *memory));
        if matches!(result, Ok(count) if count > COPIED_BYTES_MAX) {
            return Ok(Received::Kept(self.pool.freeze(memory)));
        }
        let spare = self.spare.insert(memory);
        result.map(|_| Received::Passing(spare))
    }
}

impl Received<'_> {
    /// All of it.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Kept(buffer) => buffer,
            Self::Passing(bytes) => bytes,
        }
    }

    /// A part of it that stays valid.
    pub(crate) fn slice(&self, range: Range<usize>) -> Slice {
        match self {
            Self::Kept(buffer) => buffer.slice(range.start, range.end),
            Self::Passing(bytes) => bytes[range].to_vec().into(),
        }
    }

    /// Whether the read filled its memory: there may be more.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes().len() == READ_BYTES
    }
}

/// Bytes read at a time: the size of the largest record.
pub(crate) const READ_BYTES: usize = 64 << 10;

/// Reads up to this size are copied out: the rest of a response never holds more than four times its size.
const COPIED_BYTES_MAX: usize = 16 << 10;

/// Buffers kept for reuse by one loop: 16 MiB of memory at most.
const BUFFERS_MAX: usize = 256;

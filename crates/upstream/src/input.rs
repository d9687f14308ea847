//! Reading from applications, into reused memory.
//!
//! Large reads stay where they were read, and the pieces of the response are slices of that memory. Small reads are copied
//! out, so that they do not hold a whole buffer.

use std::sync::Arc;

use baton_buf::{Buffer, Pipe, Pipes, Pool, Unfrozen};
use rustix::io::Errno;

use crate::channel::Channel;

/// The memory into which one loop reads.
#[derive(Debug)]
pub(crate) struct Input {
    large: Pool,
    /// Memory for copies of small reads.
    small: Pool,
    /// Memory of the last read, if that was small.
    spare: Option<Unfrozen>,
    pipes: Pipes,
}

impl Input {
    pub(crate) fn new() -> Self {
        Self {
            large: Pool::new(LARGE_MAX, READ_BYTES),
            small: Pool::new(SMALL_MAX, COPIED_BYTES_MAX),
            spare: None,
            pipes: Pipes::new(PIPES_MAX),
        }
    }

    /// An empty pipe, if there is one.
    pub(crate) fn pipe(&mut self) -> Option<Arc<Pipe>> {
        self.pipes.take()
    }

    /// Reads without waiting. An empty result means that the connection has ended.
    ///
    /// # Errors
    /// `EAGAIN`, `ECONNRESET` and the like.
    pub(crate) fn read(&mut self, channel: &mut Channel) -> Result<Buffer, Errno> {
        let mut memory = self.spare.take().unwrap_or_else(|| self.large.take());
        memory.clear();
        memory.reserve_exact(READ_BYTES);
        let result = channel.read(&mut memory);
        if matches!(result, Ok(count) if count > COPIED_BYTES_MAX) {
            return Ok(self.large.freeze(memory));
        }
        let spare = self.spare.insert(memory);
        result?;
        let mut copy = self.small.take();
        copy.extend_from_slice(spare);
        Ok(self.small.freeze(copy))
    }
}

/// Whether a read filled its memory: there may be more.
pub(crate) fn is_full(received: &[u8]) -> bool {
    received.len() == READ_BYTES
}

/// Bytes read at a time: the size of the largest record.
pub(crate) const READ_BYTES: usize = 64 << 10;

/// Reads up to this size are copied out: the rest of a response never holds more than four times its size.
const COPIED_BYTES_MAX: usize = 16 << 10;

/// Buffers kept for reuse by one loop: 16 MiB of memory for large reads at most, and 4 MiB for small ones.
const LARGE_MAX: usize = 256;
const SMALL_MAX: usize = 256;

/// Pipes of one loop: 16 MiB of the kernel's memory, and two descriptors each. A response that finds none is read.
const PIPES_MAX: usize = 64;

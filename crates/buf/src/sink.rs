//! What takes the bytes of an aggregate: a socket, or another kind of transport.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::{Errno, retry_on_intr};
use rustix::net::SendFlags;

use crate::gather::{self, GATHERED_MAX};
use crate::{Aggregate, FileSlice, Piece, PipedSlice};

/// Takes bytes on their way to a peer. Each method returns how many it took. It fails with `EAGAIN` if it takes none now,
/// and with `EPIPE`, `ECONNRESET` and the like if the peer is gone. No method waits for the peer, but for
/// [`send_file`](Self::send_file) on a socket that blocks.
pub trait Sink {
    /// Takes from these bytes. `more`: others follow at once.
    fn send(&self, bytes: &[u8], more: bool) -> Result<u64, Errno>;

    /// Takes from the pieces in memory in front of `queue`, and `descriptors` with the first byte of them. `more`: other
    /// bytes follow behind the queue.
    fn send_memory(
        &self,
        queue: &Aggregate,
        more: bool,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<u64, Errno>;

    /// Takes from the first `bytes_max` bytes of a range of a file, by reference. 0: the file ends before them. It fails
    /// with `EIO` and the like if the file cannot be read.
    fn send_file(&self, slice: &FileSlice, bytes_max: u64) -> Result<u64, Errno>;

    /// Takes from bytes in a pipe.
    fn send_piped(&self, slice: &PipedSlice) -> Result<u64, Errno>;
}

/// A socket: one system call each, with `MSG_MORE` if something follows.
impl<S: AsFd> Sink for S {
    fn send(&self, bytes: &[u8], more: bool) -> Result<u64, Errno> {
        // No SIGPIPE: Rust's runtime ignores it, but a child of ours may be started with it.
        let mut flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        flags.set(SendFlags::MORE, more);
        retry_on_intr(|| rustix::net::send(self, bytes, flags)).map(|count| count as u64)
    }

    fn send_memory(
        &self,
        queue: &Aggregate,
        more: bool,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<u64, Errno> {
        let count = queue.pieces().take_while(|piece| piece.is_in_memory()).count();
        let more = more || count < queue.pieces().len() || count > GATHERED_MAX;
        match queue.front() {
            Some(Piece::Memory(slice)) if count == 1 && descriptors.is_empty() => self.send(slice, more),
            _ => retry_on_intr(|| gather::send(self, queue.pieces(), more, descriptors)),
        }
    }

    /// From the page cache.
    fn send_file(&self, slice: &FileSlice, bytes_max: u64) -> Result<u64, Errno> {
        let count = usize::try_from(bytes_max.min(slice.len())).unwrap_or(usize::MAX);
        retry_on_intr(|| rustix::fs::sendfile(self, slice.file(), Some(&mut slice.offset()), count))
            .map(|count| count as u64)
    }

    fn send_piped(&self, slice: &PipedSlice) -> Result<u64, Errno> {
        slice.send(self.as_fd())
    }
}

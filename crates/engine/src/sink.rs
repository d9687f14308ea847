//! What takes the bytes of an outlet: a socket, or another kind of transport.
//!
//! An [`Outlet`](crate::outlet::Outlet) decides what is sent next and how much of it; a sink makes the call. No method
//! waits for the client.

use std::io::IoSlice;
use std::os::fd::BorrowedFd;

use baton_buf::gather::GATHERED_MAX;
use baton_buf::{Aggregate, FileSlice, Piece};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags};

/// Takes bytes on their way to a client. Each method answers how many it took: `EAGAIN` if none for now, any other error
/// of the client's if it is gone.
pub(crate) trait Sink {
    /// Takes from these bytes. `more`: others follow at once.
    fn send(&self, bytes: &[u8], more: bool) -> Result<u64, Errno>;

    /// Takes from the pieces of memory in front of `queue`. `last`: the connection ends behind the queue.
    fn send_memory(&self, queue: &Aggregate, last: bool) -> Result<u64, Errno>;

    /// Takes from the first `window` bytes of a range of a file, by reference. 0: the file ends before them.
    fn send_file(&self, slice: &FileSlice, window: u64) -> Result<u64, Errno>;
}

impl Sink for BorrowedFd<'_> {
    fn send(&self, bytes: &[u8], more: bool) -> Result<u64, Errno> {
        rustix::net::send(self, bytes, send_flags(more)).map(|count| count as u64)
    }

    /// One call for all pieces of memory in front.
    fn send_memory(&self, queue: &Aggregate, last: bool) -> Result<u64, Errno> {
        let mut pieces = queue.pieces();
        let count = queue.pieces().take_while(|piece| !matches!(piece, Piece::File(_))).count();
        let more_follows = count < pieces.len() || count > GATHERED_MAX;
        if pieces.clone().take(count).any(|piece| matches!(piece, Piece::Shared(_))) {
            return baton_buf::gather::send(self, pieces, more_follows || last)
                .map(|count| count as u64)
                .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));
        }
        if count == 1 {
            let Some(Piece::Memory(slice)) = pieces.next() else { return Ok(0) };
            return self.send(slice, more_follows || last);
        }
        let mut vector = [IoSlice::new(&[]); GATHERED_MAX];
        let mut filled = 0;
        for (space, piece) in vector.iter_mut().zip(pieces.take(count)) {
            if let Piece::Memory(slice) = piece {
                *space = IoSlice::new(slice);
                filled += 1;
            }
        }
        let flags = send_flags(more_follows || last);
        rustix::net::sendmsg(self, &vector[..filled], &mut SendAncillaryBuffer::default(), flags)
            .map(|count| count as u64)
    }

    /// From the page cache.
    fn send_file(&self, slice: &FileSlice, window: u64) -> Result<u64, Errno> {
        let mut offset = slice.offset();
        let count = usize::try_from(window).unwrap_or(usize::MAX);
        rustix::fs::sendfile(self, slice.file(), Some(&mut offset), count).map(|count| count as u64)
    }
}

fn send_flags(more: bool) -> SendFlags {
    // No SIGPIPE: Rust's runtime ignores it, but a child of ours may be started with it.
    let mut flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    flags.set(SendFlags::MORE, more);
    flags
}

//! What an answer needs to know of the connection that its request came from.

use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

/// A message of the server during a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// So many bytes of the shared region may be written again.
    Freed(u32),
    /// Hand the rest of the response back as soon as possible.
    GiveBack,
}

/// The application's end of a FastCGI connection, as an answer uses it.
///
/// Answers write records to it themselves, but ask it for messages of the server, because the connection is parsed
/// elsewhere: by [`Connection`](crate::Connection), or by a library that passes the bytes on to a program's own
/// parser.
pub trait Link {
    /// The connection.
    fn socket(&self) -> BorrowedFd<'_>;

    /// Whether [`receive`](Self::receive) has room for more. It has none if the application does not read the
    /// request's body, which fills it; an answer then does without later controls.
    fn can_receive(&self) -> bool;

    /// Reads once without waiting. Returns false if there was nothing.
    ///
    /// # Errors
    /// Those of `recvmsg`; `EPROTO` for input that is not FastCGI, `ECONNRESET` at the end of the connection.
    fn receive(&mut self) -> Result<bool, Errno>;

    /// The oldest control that has been received and not been taken.
    fn next_control(&mut self) -> Option<Control>;
}

/// Writes all of `parts`, with as many calls as necessary. Empties `parts`.
///
/// # Errors
/// Those of `sendmsg`: `EPIPE` and `ECONNRESET` when the server is gone. Never raises `SIGPIPE`.
pub(crate) fn write_all(socket: BorrowedFd<'_>, mut parts: &mut [std::io::IoSlice<'_>]) -> Result<(), Errno> {
    use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
    while !parts.is_empty() {
        match sendmsg(socket, parts, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL) {
            Ok(taken) => std::io::IoSlice::advance_slices(&mut parts, taken),
            Err(Errno::INTR) => {}
            // The application may have made its connection non-blocking.
            Err(Errno::AGAIN) => wait(&mut [PollFd::from_borrowed_fd(socket, PollFlags::OUT)], -1)?,
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// `poll` that is not interrupted by signals. A negative timeout waits for ever.
pub(crate) fn wait(descriptors: &mut [PollFd<'_>], timeout_ms: i32) -> Result<(), Errno> {
    let timeout = rustix::event::Timespec {
        tv_sec: i64::from(timeout_ms / 1000),
        tv_nsec: i64::from(timeout_ms % 1000) * 1_000_000,
    };
    let timeout = (timeout_ms >= 0).then_some(&timeout);
    loop {
        match rustix::event::poll(descriptors, timeout) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

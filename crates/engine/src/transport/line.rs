//! What bytes run over, without waiting: a socket, or memory.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use baton_buf::{Aggregate, FileSlice, Sink};
use baton_gateway::ClientSocket;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvFlags, Shutdown};

/// A way to the client and back.
#[derive(Debug)]
pub(super) enum Line {
    Socket(Arc<ClientSocket>),
    #[cfg(test)]
    Memory(super::memory::ServerEnd),
}

impl Line {
    /// Reads what has arrived, as far as there is room. 0: the client has ended its input.
    ///
    /// # Errors
    /// `EAGAIN`: nothing for now. `ECONNRESET` and the like: the client is gone.
    fn receive(&self, into: &mut [u8]) -> Result<usize, Errno> {
        match self {
            Self::Socket(socket) => {
                retry_on_intr(|| rustix::net::recv(socket, &mut *into, RecvFlags::DONTWAIT))
                    .map(|(_, count)| count)
            }
            #[cfg(test)]
            Self::Memory(end) => end.receive(into),
        }
    }

    /// Like [`receive`](Self::receive), and notes whether there may be more.
    pub(super) fn receive_and_note(
        &self,
        into: &mut [u8],
        readable: &mut bool,
        end_announced: bool,
    ) -> Result<usize, Errno> {
        let received = self.receive(into);
        match received {
            Ok(0) => {}
            // A short read took everything. The poller announces new data, but not an end that came with this data.
            Ok(count) => *readable = count == into.len() || end_announced,
            Err(Errno::AGAIN) => *readable = false,
            Err(_) => {}
        }
        received
    }

    /// Ends the server's half of the connection. `false`: the client is gone.
    pub(super) fn end_output(&self) -> bool {
        match self {
            Self::Socket(socket) => rustix::net::shutdown(socket, Shutdown::Write).is_ok(),
            #[cfg(test)]
            Self::Memory(end) => end.end_output(),
        }
    }
}

impl Sink for Line {
    fn send(&self, bytes: &[u8], more: bool) -> Result<u64, Errno> {
        match self {
            Self::Socket(socket) => socket.as_fd().send(bytes, more),
            #[cfg(test)]
            Self::Memory(end) => end.send(bytes, more),
        }
    }

    fn send_memory(
        &self,
        queue: &Aggregate,
        more: bool,
        descriptor: Option<BorrowedFd<'_>>,
    ) -> Result<u64, Errno> {
        match self {
            Self::Socket(socket) => socket.as_fd().send_memory(queue, more, descriptor),
            #[cfg(test)]
            Self::Memory(end) => end.send_memory(queue, more, descriptor),
        }
    }

    fn send_file(&self, slice: &FileSlice, bytes_max: u64) -> Result<u64, Errno> {
        match self {
            Self::Socket(socket) => socket.as_fd().send_file(slice, bytes_max),
            #[cfg(test)]
            Self::Memory(end) => end.send_file(slice, bytes_max),
        }
    }
}

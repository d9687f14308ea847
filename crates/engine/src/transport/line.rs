//! What bytes run over, without waiting: a socket, or memory.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use baton_buf::{Aggregate, FileSlice, PipedSlice, Sink};
use baton_passport::Passport;
use baton_sys::kernel_tls::{self, TransmitKey};
use baton_tls::{Alert, KernelTransmit};
use baton_upstream::ClientSocket;
use rustix::event::{PollFd, PollFlags, Timespec};
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
    /// A socket that another process has had until now.
    pub(super) fn arrived(socket: OwnedFd, passport: &Passport) -> Self {
        let socket = ClientSocket::from(socket);
        if passport.was_passed {
            socket.note_passed();
        }
        Self::Socket(Arc::new(socket))
    }

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

    /// Whether ranges of files leave by reference. On a socket that was passed they do not: see [`ClientSocket`].
    pub(super) fn sends_files(&self) -> bool {
        match self {
            Self::Socket(socket) => !socket.was_passed(),
            #[cfg(test)]
            Self::Memory(end) => end.sends_files(),
        }
    }

    /// Whether it is a socket that only the server has used, which takes bytes from a pipe without waiting.
    pub(super) fn takes_pipes(&self) -> bool {
        match self {
            Self::Socket(socket) => !socket.was_passed(),
            #[cfg(test)]
            Self::Memory(_) => false,
        }
    }

    /// Whether the line takes more. If not, the poller will say when it does.
    pub(super) fn is_writable(&self) -> bool {
        match self {
            Self::Socket(socket) => {
                let mut poll = [PollFd::new(socket, PollFlags::OUT)];
                // An end counts: the next call that sends will meet it.
                retry_on_intr(|| rustix::event::poll(&mut poll, Some(&Timespec::default()))) != Ok(0)
            }
            #[cfg(test)]
            Self::Memory(_) => true,
        }
    }

    /// Has the kernel seal what is sent from now on. `false`: nothing has changed.
    pub(super) fn seal(&self, keys: &KernelTransmit) -> bool {
        match self {
            Self::Socket(socket) => {
                let (salt, iv, sequence) = (keys.salt(), keys.iv(), keys.sequence);
                kernel_tls::seal(socket, &TransmitKey { key: keys.key(), salt, iv, sequence }).is_ok()
            }
            #[cfg(test)]
            Self::Memory(_) => false,
        }
    }

    /// Sends an alert on a line whose records the kernel seals, if it takes it now.
    pub(super) fn send_alert(&self, alert: Alert) {
        match self {
            Self::Socket(socket) => {
                // The connection ends in any case.
                let _ = kernel_tls::send_record(socket, Alert::CONTENT_TYPE, &alert.message());
            }
            #[cfg(test)]
            Self::Memory(_) => {}
        }
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

    fn send_piped(&self, slice: &PipedSlice) -> Result<u64, Errno> {
        match self {
            Self::Socket(socket) => socket.as_fd().send_piped(slice),
            #[cfg(test)]
            Self::Memory(end) => end.send_piped(slice),
        }
    }
}

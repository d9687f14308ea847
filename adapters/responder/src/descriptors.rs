//! Descriptors that come with the bytes of a connection, in the order of their arrival.

use std::collections::VecDeque;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};

/// Most descriptors taken from one message. An offer sends one; the kernel closes surplus ones.
const DESCRIPTORS_PER_MESSAGE: usize = 8;

/// Most descriptors that wait for their offer; later ones are closed. A request brings one, so this is only reached by
/// a peer that does not speak the protocol.
const WAITING_MAX: usize = 16;

/// Descriptors that have arrived and belong to no offer yet.
///
/// Each offer says how many descriptors came with its first byte; they are the oldest in the queue. Every read of the
/// connection must go through [`Descriptors::receive`]: a plain `read` loses what a message carries.
#[derive(Debug, Default)]
pub struct Descriptors {
    waiting: VecDeque<OwnedFd>,
}

impl Descriptors {
    /// None yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { waiting: VecDeque::new() }
    }

    /// Reads from `socket` into `buffer`, as `recv` does, and keeps the descriptors that come along (close-on-exec).
    /// Returns the number of bytes; 0 is the end of the connection.
    ///
    /// # Errors
    /// Those of `recvmsg`: `EAGAIN` if there is no input and `flags` or the socket forbid waiting, `EINTR`,
    /// `ECONNRESET`, `ENOTSOCK`.
    pub fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
        buffer: &mut [u8],
        flags: RecvFlags,
    ) -> Result<usize, Errno> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_PER_MESSAGE))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = rustix::net::recvmsg(
            socket,
            &mut [IoSliceMut::new(buffer)],
            &mut control,
            flags | RecvFlags::CMSG_CLOEXEC,
        )?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(passed) = message {
                self.waiting.extend(passed);
            }
        }
        self.waiting.truncate(WAITING_MAX);
        Ok(received.bytes)
    }

    /// The oldest descriptor that waits.
    pub fn take(&mut self) -> Option<OwnedFd> {
        self.waiting.pop_front()
    }

    /// Closes the oldest `count` descriptors: those of an offer that is not taken up.
    pub fn discard(&mut self, count: usize) {
        self.waiting.drain(..count.min(self.waiting.len()));
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

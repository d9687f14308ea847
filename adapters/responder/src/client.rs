//! The client's socket while it is ours: writes without blocking the server's side of it, waits with patience.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::sockopt::set_tcp_cork;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};

use crate::link::{Control, Link, wait};

/// A response may be streamed for hours without ever filling the socket. This often it is looked whether the server
/// wants the connection back.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The socket of a client, with `O_NONBLOCK` as the server has set it: the flag is shared, and left alone.
#[derive(Debug)]
pub(crate) struct Client {
    socket: OwnedFd,
    patience: Duration,
    /// Whether sending has begun. Most responses take one send and never read the clock.
    has_begun: bool,
    /// When it was last looked for [`Control::GiveBack`], or when there was first a reason to.
    looked: Option<Instant>,
}

/// Why a write to a client ended before its last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// The client is gone.
    Gone,
    /// The socket was full for too long, or the server wants it back.
    HandBack,
}

impl Client {
    pub(crate) fn new(socket: OwnedFd, patience_ms: u32) -> Self {
        let patience = Duration::from_millis(patience_ms.into());
        Self { socket, patience, has_begun: false, looked: None }
    }

    /// Writes `parts`, as far as possible. Returns how many bytes the socket took, and why not all. With `more`, the
    /// last bytes may wait in the kernel for bytes that follow at once.
    pub(crate) fn send(
        &mut self,
        link: &mut dyn Link,
        mut parts: &mut [IoSlice<'_>],
        more: bool,
    ) -> (usize, Result<(), Stopped>) {
        let mut flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        flags.set(SendFlags::MORE, more);
        let mut taken = 0;
        IoSlice::advance_slices(&mut parts, 0);
        while !parts.is_empty() {
            match sendmsg(&self.socket, parts, &mut SendAncillaryBuffer::default(), flags) {
                Ok(bytes) => {
                    taken += bytes;
                    IoSlice::advance_slices(&mut parts, bytes);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    if let Err(stopped) = self.wait_for_room(link) {
                        return (taken, Err(stopped));
                    }
                }
                Err(_) => return (taken, Err(Stopped::Gone)),
            }
        }
        (taken, Ok(()))
    }

    /// Keeps the last packet of what is sent from now on until the server ends the connection, which has to follow at once.
    pub(crate) fn cork(&self) {
        // Without it there is one packet more.
        let _ = set_tcp_cork(&self.socket, true);
    }

    /// Whether the server has asked for the connection since the last check; costs a few calls per second at most.
    pub(crate) fn is_wanted_back(&mut self, link: &mut dyn Link) -> bool {
        if !std::mem::replace(&mut self.has_begun, true) {
            return false;
        }
        if self.looked.get_or_insert_with(Instant::now).elapsed() < LOOK_EVERY {
            return false;
        }
        self.looked = Some(Instant::now());
        link.can_receive() && matches!(link.receive(), Ok(true)) && gives_back(link)
    }

    /// Waits until the socket takes bytes again, up to the patience.
    fn wait_for_room(&mut self, link: &mut dyn Link) -> Result<(), Stopped> {
        let until = Instant::now() + self.patience;
        let mut listens = true;
        loop {
            if gives_back(link) {
                return Err(Stopped::HandBack);
            }
            let left = until.saturating_duration_since(Instant::now());
            listens &= link.can_receive();
            let (writable, heard) = self.poll(link.socket(), listens, left).map_err(|_| Stopped::Gone)?;
            if writable {
                return Ok(());
            }
            if heard {
                // A connection to the server that has ended says nothing more; the client may still be served.
                listens = link.receive().is_ok();
            } else if left.is_zero() {
                return Err(Stopped::HandBack);
            }
        }
    }

    /// Whether the client's socket can be written, and whether there is something from the server.
    fn poll(&self, server: BorrowedFd<'_>, listens: bool, left: Duration) -> Result<(bool, bool), Errno> {
        // Rounded up: a wait that ends just before its time would only be repeated.
        let left_ms = i32::try_from(left.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
        let mut polled = [
            PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::OUT),
            PollFd::from_borrowed_fd(server, PollFlags::IN),
        ];
        wait(&mut polled[..if listens { 2 } else { 1 }], left_ms)?;
        Ok((!polled[0].revents().is_empty(), !polled[1].revents().is_empty()))
    }
}

/// Takes the controls that were received: whether one of them asks for the connection.
fn gives_back(link: &mut dyn Link) -> bool {
    let mut wanted = false;
    while let Some(control) = link.next_control() {
        wanted |= control == Control::GiveBack;
    }
    wanted
}

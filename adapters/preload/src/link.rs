//! The connection to the server as an answer sees it; the inbox finds the server's messages.

use std::os::fd::{BorrowedFd, RawFd};

use baton_responder::{Control, Link};
use rustix::io::Errno;
use rustix::net::RecvFlags;

use crate::inbox::Inbox;
use crate::progress::Progress;
use crate::ready::ReadyBytes;
use crate::turn::{Held, Turn};

/// A connection to whose server an answer is being sent.
pub(crate) struct ServerLink<'a> {
    progress: &'a Progress,
    ready: &'a ReadyBytes,
    fd: BorrowedFd<'a>,
    /// None while another thread receives: it finds our messages.
    inbox: Option<Held<'a, Inbox>>,
}

impl<'a> ServerLink<'a> {
    /// `fd` has just been used by the program, for this connection.
    pub(crate) fn new(
        inbox: &'a Turn<Inbox>,
        ready: &'a ReadyBytes,
        progress: &'a Progress,
        fd: RawFd,
    ) -> Self {
        // SAFETY: it is open: the program is calling with it.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        Self { progress, ready, fd, inbox: inbox.now() }
    }

    /// The request at hand is about to end.
    pub(crate) fn before_end(&mut self) {
        self.progress.before_end(self.fd);
        if let Some(inbox) = &mut self.inbox {
            inbox.end_request();
        }
    }

    /// The descriptor.
    pub(crate) fn fd(&self) -> BorrowedFd<'a> {
        self.fd
    }
}

impl Link for ServerLink<'_> {
    fn socket(&self) -> BorrowedFd<'_> {
        self.fd
    }

    fn can_receive(&self) -> bool {
        self.inbox.as_ref().is_some_and(|inbox| inbox.has_room())
    }

    fn receive(&mut self) -> Result<bool, Errno> {
        let Some(inbox) = &mut self.inbox else { return Ok(false) };
        let received = inbox.fill(self.fd, 0, RecvFlags::DONTWAIT);
        self.ready.note(inbox);
        match received {
            Ok(0) => Err(Errno::CONNRESET),
            Ok(_) => Ok(true),
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    fn next_control(&mut self) -> Option<Control> {
        self.inbox.as_mut()?.take_control()
    }
}

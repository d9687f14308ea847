//! Where a connection is in the course of its requests, and whether it takes another.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, Ordering};

use rustix::net::Shutdown;

/// The progress of one connection.
pub(crate) struct Progress {
    /// The process that has accepted the connection.
    process: AtomicI32,
    phase: AtomicU8,
    /// The process of the connection accepts no further ones: it ends, as soon as it may.
    is_leaving: AtomicBool,
}

/// Where a connection that is kept, of a server that makes offers, is in the course of its requests.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum OfferState {
    /// There was no offer so far.
    Other,
    /// There was one for the request at hand.
    Offered,
    /// It has been answered. The next bytes are the next request.
    Answered,
    /// The program will send no more, so it gets no next request.
    Closing,
}

impl Progress {
    pub(crate) const fn new() -> Self {
        Self {
            process: AtomicI32::new(0),
            phase: AtomicU8::new(OfferState::Other as u8),
            is_leaving: AtomicBool::new(false),
        }
    }

    /// The program is about to wait for input. If its process is leaving, this is no time for another request.
    pub(crate) fn before_receive(&self, socket: BorrowedFd<'_>) {
        if self.is_leaving.load(Ordering::Relaxed) && self.is_in(OfferState::Answered) {
            refuse_more(socket);
        }
    }

    /// The process accepts no further connections. The current request is the last; once it is answered, the server
    /// cannot send another. A call that waits for one ends, as if the server had closed the connection.
    ///
    /// Can be called by signal handlers.
    pub(crate) fn leave(&self, socket: BorrowedFd<'_>) {
        if self.is_ours() {
            self.is_leaving.store(true, Ordering::Relaxed);
            if self.is_in(OfferState::Answered) {
                refuse_more(socket);
            }
        }
    }

    /// The request at hand is about to end, and the server about to send the next one.
    pub(crate) fn before_end(&self, socket: BorrowedFd<'_>) {
        if self.is_leaving.load(Ordering::Relaxed) && self.is_in(OfferState::Offered) && self.is_ours() {
            refuse_more(socket);
        }
    }

    /// Starts over, for a connection that this process has accepted.
    pub(crate) fn begin(&self, process: i32) {
        self.process.store(process, Ordering::Relaxed);
        self.is_leaving.store(false, Ordering::Relaxed);
        self.enter(OfferState::Other);
    }

    /// Whether this process has accepted the connection. Connections of its parent stay the parent's.
    pub(crate) fn is_ours(&self) -> bool {
        self.process.load(Ordering::Relaxed) == rustix::process::getpid().as_raw_nonzero().get()
    }

    pub(crate) fn is_in(&self, phase: OfferState) -> bool {
        self.phase.load(Ordering::Relaxed) == phase as u8
    }

    pub(crate) fn enter(&self, phase: OfferState) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }
}

/// Refuses further data: the server's next send fails, and it asks another process. Earlier data can still be read.
pub(crate) fn refuse_more(socket: BorrowedFd<'_>) {
    // It can only fail because the connection has ended.
    _ = rustix::net::shutdown(socket, Shutdown::Read);
}

//! What the master waits for. It has few descriptors and little to do: the list is made anew each time, so that it
//! cannot disagree with the state that it is made of.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec};

use super::management::{ConnectionId, Endpoint};

/// Something to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A signal.
    Signals,
    /// A new connection to an endpoint; there may be several admin listeners.
    Endpoint(Endpoint, usize),
    /// A connection for control or monitoring is readable, writable, or closed.
    Connection(ConnectionId),
    /// A worker that reports.
    Worker(usize),
    /// What the manager of an application prints.
    Application(usize),
    /// The server that takes the place of this one.
    Successor,
    /// The server whose place this one takes.
    Predecessor,
}

/// Descriptors and what they stand for.
#[derive(Debug, Default)]
pub(super) struct WaitList<'a> {
    sources: Vec<Source>,
    descriptors: Vec<PollFd<'a>>,
}

impl<'a> WaitList<'a> {
    /// Adds something to wait for.
    pub(super) fn add(&mut self, source: Source, descriptor: BorrowedFd<'a>, flags: PollFlags) {
        self.sources.push(source);
        self.descriptors.push(PollFd::from_borrowed_fd(descriptor, flags));
    }

    /// Waits until something is ready, or until `deadline`, and returns what is.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub(super) fn wait(mut self, deadline: Option<Instant>) -> io::Result<Vec<Source>> {
        let timeout = deadline
            .and_then(|deadline| Timespec::try_from(deadline.saturating_duration_since(Instant::now())).ok());
        match rustix::event::poll(&mut self.descriptors, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready =
            self.sources.into_iter().zip(&self.descriptors).filter(|(_, fd)| !fd.revents().is_empty());
        Ok(ready.map(|(source, _)| source).collect())
    }
}

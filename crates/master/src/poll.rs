//! The descriptors that the master polls. It has few and little to do, so it builds the list anew each time, and the
//! list always agrees with the master's state.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec};

use super::child::ChildName;
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
    /// The output of an application's manager.
    Application(usize),
    /// Messages of a child that is no worker.
    Child(ChildName),
    /// What it prints.
    ChildOutput(ChildName),
    /// Messages of the process that moves connections.
    HandoffAgent,
    /// The server that replaces this one.
    Successor,
    /// The server that this one replaces.
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

    /// Waits until something is ready or until `deadline`. Returns what is ready.
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

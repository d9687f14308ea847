//! A place for a process, and who is in it.

use std::time::Instant;

use baton_supervise::Restart;

/// A process, or the lack of one, and the one that will come after it.
#[derive(Debug)]
pub(super) struct Place {
    /// Whether there is to be one.
    pub(super) is_wanted: bool,
    pub(super) process: Option<Process>,
    /// Who has begun already.
    pub(super) heir: Option<Process>,
    /// Whether the process is to be replaced as soon as the heir can work.
    pub(super) is_to_change: bool,
    /// When the next one may be started.
    pub(super) restart: Restart,
}

/// A process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) since: Instant,
    /// The number of its socket.
    pub(super) slot: usize,
    /// Whether it has come to wait for requests.
    pub(super) is_ready: bool,
    /// How many requests it had been given when it was looked at.
    pub(super) requests_seen: u64,
}

impl Place {
    pub(super) fn new(is_wanted: bool, now: Instant) -> Self {
        Self { is_wanted, process: None, heir: None, is_to_change: false, restart: Restart::new(now) }
    }

    /// Whether a process of it can be given requests.
    pub(super) fn is_ready(&self) -> bool {
        self.process.is_some_and(|process| process.is_ready)
    }

    /// Who is in it.
    pub(super) fn processes(&self) -> impl Iterator<Item = Process> {
        self.process.into_iter().chain(self.heir)
    }

    /// The process with this number of a socket.
    pub(super) fn at(&mut self, slot: usize) -> Option<&mut Process> {
        self.process.iter_mut().chain(&mut self.heir).find(|process| process.slot == slot)
    }
}

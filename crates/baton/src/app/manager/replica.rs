//! A replica of the application: a process that is kept running.

use std::time::Instant;

use baton_supervise::Restart;

/// A place for a process and its replacement.
#[derive(Debug)]
pub(super) struct Replica {
    /// Whether a process is wanted.
    pub(super) is_wanted: bool,
    pub(super) process: Option<Process>,
    /// The next process, if it has been started already.
    pub(super) replacement: Option<Process>,
    /// Whether the process is to be replaced as soon as the replacement can work.
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
    /// Whether it has been ready for requests.
    pub(super) is_ready: bool,
    /// How many requests it had been given at the last look.
    pub(super) requests_seen: u64,
}

impl Replica {
    pub(super) fn new(is_wanted: bool, now: Instant) -> Self {
        Self { is_wanted, process: None, replacement: None, is_to_change: false, restart: Restart::new(now) }
    }

    /// Whether one of its processes can be given requests.
    pub(super) fn is_ready(&self) -> bool {
        self.process.is_some_and(|process| process.is_ready)
    }

    /// Its processes.
    pub(super) fn processes(&self) -> impl Iterator<Item = Process> {
        self.process.into_iter().chain(self.replacement)
    }

    /// The process with this number of a socket.
    pub(super) fn at(&mut self, slot: usize) -> Option<&mut Process> {
        self.process.iter_mut().chain(&mut self.replacement).find(|process| process.slot == slot)
    }
}

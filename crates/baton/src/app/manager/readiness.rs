//! Which processes are ready for requests: readiness probes, and the table that shows it to the loops of a server.
//!
//! The loops see a process once it waits for requests. The probe is a connection on which nothing is sent: programs
//! that speak FastCGI or SCGI accept and close it. A process that was left in the middle of a request is probed, too.
//!
//! Some programs die of such a connection. So the very first process must close two: one that dies of the first cannot.
//! If it dies, the loops see processes as soon as they start, and the backlogs hold the first requests.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use baton_process_table::{ProcessTable, socket_path};
use baton_report::OperatorError;
use baton_sys::passing;
use rustix::net::{AddressFamily, RecvFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType};

/// The readiness of processes that have a socket each.
#[derive(Debug)]
pub(super) struct Readiness {
    pub(super) table: ProcessTable,
    prefix: PathBuf,
    requests_max: Option<u64>,
    /// How long a process may work on a request whose client has left.
    patience: Duration,
    probes: Vec<Probe>,
    tolerance: Tolerance,
    /// Processes that have closed their first probe, which may still kill them.
    suspects: Vec<usize>,
}

/// How the program treats a connection without a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tolerance {
    Unknown,
    Closes,
    Dies,
}

/// A connection that a process should close.
#[derive(Debug)]
struct Probe {
    slot: usize,
    socket: OwnedFd,
    /// Since when, if it has waited for requests before.
    since: Option<Instant>,
}

impl Readiness {
    /// Receives the process table on standard input, from the server that has started this program.
    ///
    /// # Errors
    /// If standard input delivers no table.
    pub(super) fn inherited(
        prefix: PathBuf,
        requests_max: Option<u64>,
        patience: Duration,
    ) -> Result<Self, OperatorError> {
        let opened = || ProcessTable::open(passing::receive(io::stdin(), &mut [0; 1])?.1);
        let table =
            opened().map_err(|error| OperatorError::of("learn of the server's event loops", &error))?;
        Ok(Self {
            table,
            prefix,
            requests_max,
            patience,
            probes: Vec::new(),
            tolerance: Tolerance::Unknown,
            suspects: Vec::new(),
        })
    }

    /// A listening socket for one process alone: the kernel refuses connections once the process has ended.
    ///
    /// # Errors
    /// Those of `socket`, `bind` and `listen`.
    pub(super) fn listen(&self, slot: usize) -> io::Result<OwnedFd> {
        let path = socket_path(&self.prefix, slot);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        rustix::net::bind(&socket, &SocketAddrUnix::new(&path)?)?;
        // The folder keeps other users away.
        fs::set_permissions(&path, Permissions::from_mode(0o666))?;
        rustix::net::listen(&socket, BACKLOG)?;
        Ok(socket)
    }

    /// A process has been started. Returns whether it counts as ready.
    pub(super) fn begin(&mut self, slot: usize, pid: i32) -> bool {
        self.table.begin(slot, pid.unsigned_abs(), self.requests_max);
        let is_ready = self.tolerance == Tolerance::Dies;
        if !is_ready {
            self.probe(slot, None);
        }
        is_ready
    }

    /// The manager asks a process to end: it gets no further requests.
    pub(super) fn dismiss(&mut self, slot: usize) {
        self.table.retire(slot);
        self.forget(slot);
    }

    /// A process has ended. Returns whether its probe was the cause.
    pub(super) fn end(&mut self, slot: usize) -> bool {
        self.table.end(slot);
        let was_closed =
            |probe: &Probe| probe.slot == slot && probe.since.is_none() && probe.look() == Look::Closed;
        let is_victim = self.tolerance != Tolerance::Closes
            && (self.suspects.contains(&slot) || self.probes.iter().any(was_closed));
        if is_victim {
            self.tolerance = Tolerance::Dies;
        }
        self.forget(slot);
        is_victim
    }

    fn forget(&mut self, slot: usize) {
        self.probes.retain(|probe| probe.slot != slot);
        self.suspects.retain(|suspect| *suspect != slot);
    }

    /// Probes a process that was left in the middle of a request. One that answers several requests at a time, or would
    /// die of the probe, gets none: its next request shows whether it is done.
    pub(super) fn ask(&mut self, slot: usize, now: Instant) {
        if self.table.lanes() > 1 || self.tolerance == Tolerance::Dies {
            self.table.set_open(slot);
        } else if self.probes.iter().all(|probe| probe.slot != slot) {
            self.probe(slot, Some(now));
        }
    }

    fn probe(&mut self, slot: usize, since: Option<Instant>) {
        let connected = || {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
            rustix::net::connect(&socket, &SocketAddrUnix::new(socket_path(&self.prefix, slot))?)?;
            rustix::net::shutdown(&socket, Shutdown::Write)?;
            Ok::<_, rustix::io::Errno>(socket)
        };
        // A refused connection means that the process has ended: SIGCHLD follows.
        if let Ok(socket) = connected() {
            self.probes.push(Probe { slot, socket, since });
        }
    }

    /// The processes that have become ready for requests.
    pub(super) fn take_ready(&mut self) -> Vec<usize> {
        let mut ready = Vec::new();
        self.probes.retain(|probe| {
            let look = probe.look();
            ready.extend((look == Look::Closed).then_some(probe.slot));
            look == Look::Open
        });
        if self.tolerance != Tolerance::Closes {
            let (twice, once) = ready.into_iter().partition(|slot| self.suspects.contains(slot));
            ready = twice;
            if ready.is_empty() {
                self.suspects.extend(&once);
                once.into_iter().for_each(|slot| self.probe(slot, None));
            } else {
                self.tolerance = Tolerance::Closes;
                // Probes that other processes have closed count, too.
                ready.extend(once);
                ready.append(&mut self.suspects);
                ready.sort_unstable();
                ready.dedup();
            }
        }
        ready
    }

    /// Whether a process has worked too long on a request whose client has left.
    pub(super) fn is_lost(&self, slot: usize, now: Instant) -> bool {
        let mut probes = self.probes.iter().filter(|probe| probe.slot == slot);
        probes.any(|probe| probe.since.is_some_and(|since| now.duration_since(since) >= self.patience))
    }

    /// When [`is_lost`](Self::is_lost) may change by itself.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.probes.iter().filter_map(|probe| Some(probe.since? + self.patience)).min()
    }

    /// The descriptors to poll.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        std::iter::once(self.table.wakeups()).chain(self.probes.iter().map(|probe| probe.socket.as_fd()))
    }
}

/// The state of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Open,
    /// The process has accepted it, and closed it.
    Closed,
    /// The process has ended without accepting it.
    Refused,
}

impl Probe {
    fn look(&self) -> Look {
        match rustix::net::recv(&self.socket, &mut [0; 64], RecvFlags::DONTWAIT) {
            Ok((0, _)) => Look::Closed,
            Ok(_) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Look::Open,
            Err(_) => Look::Refused,
        }
    }
}

/// At most one connection for each request that the process answers at a time, and the probe.
const BACKLOG: i32 = 4096;

//! Processes that listen each for itself, for the loops of a server: what the manager tells them, and what it hears.
//!
//! A process is shown to the loops when it waits for requests. It says so by closing a connection on which nothing
//! comes, as programs do that speak FastCGI or SCGI; the same is asked of one that was left in the middle of a request.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use baton_gateway::{Roster, member_path};
use baton_sys::passing;
use rustix::net::{AddressFamily, RecvFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType};

use crate::run::Trouble;

/// The processes as the loops see them.
#[derive(Debug)]
pub(in crate::app) struct Keeper {
    pub(super) roster: Roster,
    prefix: PathBuf,
    requests_max: Option<u64>,
    /// How long a process may go on with a request that nobody waits for any more.
    patience: Duration,
    probes: Vec<Probe>,
}

/// A connection that a process is to close.
#[derive(Debug)]
struct Probe {
    slot: usize,
    socket: OwnedFd,
    /// Since when, if it has waited for requests before.
    since: Option<Instant>,
}

impl Keeper {
    /// The roster comes as a message to standard input, from the server that has started this program.
    ///
    /// # Errors
    /// It does not.
    pub(in crate::app) fn inherited(
        prefix: PathBuf,
        requests_max: Option<u64>,
        patience: Duration,
    ) -> Result<Self, Trouble> {
        let opened = || Roster::open(passing::receive(io::stdin(), &mut [0; 1])?.1);
        let roster = opened().map_err(|error| Trouble::of("learn of the server's event loops", &error))?;
        Ok(Self { roster, prefix, requests_max, patience, probes: Vec::new() })
    }

    /// A socket for a process to listen at. It is the process's alone: when that is gone, connections are refused.
    ///
    /// # Errors
    /// What stands in the way.
    pub(super) fn listen(&self, slot: usize) -> io::Result<OwnedFd> {
        let path = member_path(&self.prefix, slot);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        rustix::net::bind(&socket, &SocketAddrUnix::new(&path)?)?;
        // The folder is what keeps others away.
        fs::set_permissions(&path, Permissions::from_mode(0o666))?;
        rustix::net::listen(&socket, BACKLOG)?;
        Ok(socket)
    }

    /// A process has been started.
    pub(super) fn begin(&mut self, slot: usize, pid: i32) {
        self.roster.begin(slot, pid.unsigned_abs(), self.requests_max);
        self.probe(slot, None);
    }

    /// A process is told to end: it gets no further requests.
    pub(super) fn dismiss(&mut self, slot: usize) {
        self.roster.retire(slot);
        self.probes.retain(|probe| probe.slot != slot);
    }

    /// A process has ended.
    pub(super) fn end(&mut self, slot: usize) {
        self.roster.end(slot);
        self.probes.retain(|probe| probe.slot != slot);
    }

    /// Asks a process that was left in the middle of a request whether it is done. One that answers several at a time
    /// has others to look after itself.
    pub(super) fn ask(&mut self, slot: usize, now: Instant) {
        if self.roster.lanes() > 1 {
            self.roster.set_open(slot);
        } else if self.probes.iter().all(|probe| probe.slot != slot) {
            self.probe(slot, Some(now));
        }
    }

    fn probe(&mut self, slot: usize, since: Option<Instant>) {
        let connected = || {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
            rustix::net::connect(&socket, &SocketAddrUnix::new(member_path(&self.prefix, slot))?)?;
            rustix::net::shutdown(&socket, Shutdown::Write)?;
            Ok::<_, rustix::io::Errno>(socket)
        };
        // Where nobody listens the process has ended, which will be heard of.
        if let Ok(socket) = connected() {
            self.probes.push(Probe { slot, socket, since });
        }
    }

    /// The processes that wait for requests by now, and have not before.
    pub(super) fn take_ready(&mut self) -> Vec<usize> {
        let is_open = |probe: &Probe| {
            let received = rustix::net::recv(&probe.socket, &mut [0; 64], RecvFlags::DONTWAIT);
            matches!(received, Ok((1.., _)) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR))
        };
        let mut ready = Vec::new();
        self.probes.retain(|probe| {
            let is_open = is_open(probe);
            ready.extend((!is_open).then_some(probe.slot));
            is_open
        });
        ready
    }

    /// Whether a process goes on with something that nobody has waited for for too long.
    pub(super) fn is_lost(&self, slot: usize, now: Instant) -> bool {
        let mut probes = self.probes.iter().filter(|probe| probe.slot == slot);
        probes.any(|probe| probe.since.is_some_and(|since| now.duration_since(since) >= self.patience))
    }

    /// When [`is_lost`](Self::is_lost) may change by itself.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.probes.iter().filter_map(|probe| Some(probe.since? + self.patience)).min()
    }

    /// What to listen to.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        std::iter::once(self.roster.calls()).chain(self.probes.iter().map(|probe| probe.socket.as_fd()))
    }
}

/// There is never more than one connection for each request that the process answers at a time, and ours.
const BACKLOG: i32 = 4096;

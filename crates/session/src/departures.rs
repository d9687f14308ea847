//! Where clients go that another process serves on: one of the server that takes the place of this one, or another worker of
//! this server.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use baton_passport::{Address, Passport};
use baton_sys::passing;
use rustix::io::Errno;

/// The way to the processes that go on with connections, for all threads of this one.
#[derive(Debug)]
pub struct Destination {
    socket: OwnedFd,
    /// Where this process has accepted, by the ids of the listeners.
    addresses: Vec<(usize, Address)>,
    /// The highest version of passports that they read.
    version_max: u32,
}

impl Destination {
    /// Processes of another server, or other workers of the same one. `socket` keeps message boundaries, and the processes at its
    /// other end know these listeners, by their ids, by these addresses, and passports up to `version_max`.
    ///
    /// # Errors
    /// `EBADF`.
    pub fn new(socket: OwnedFd, addresses: Vec<(usize, Address)>, version_max: u32) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Self { socket, addresses, version_max })
    }
}

/// One loop's view of the destination.
#[derive(Clone, Debug)]
pub struct Departures {
    destination: Arc<Destination>,
    /// The other processes have not kept up: until then none is sent.
    full_until_ms: u64,
    /// They have ended.
    is_gone: bool,
}

impl Departures {
    /// Nothing has been sent to this destination.
    pub fn to(destination: Arc<Destination>) -> Self {
        Self { destination, full_until_ms: 0, is_gone: false }
    }

    /// Whether a connection is taken, now or soon, whose passport is of this version.
    pub fn are_possible_with(&self, version: Option<u32>) -> bool {
        !self.is_gone && version.is_some_and(|version| version <= self.destination.version_max)
    }

    /// Whether one may be sent now.
    pub fn are_open_for(&self, version: Option<u32>, now_ms: u64) -> bool {
        self.are_possible_with(version) && now_ms >= self.full_until_ms
    }

    /// When those that could not be sent may be tried again.
    pub fn again_ms(&self) -> Option<u64> {
        (!self.is_gone && self.full_until_ms > 0).then_some(self.full_until_ms)
    }

    /// The next attempt is due.
    pub fn try_again(&mut self) {
        self.full_until_ms = 0;
    }

    /// The address of a listener of this process.
    pub fn address_of(&self, listener: usize) -> Option<&Address> {
        self.destination.addresses.iter().find(|(id, _)| *id == listener).map(|(_, address)| address)
    }

    /// Sends a connection: its socket, and what else its passport counts.
    pub fn send(&mut self, passport: &Passport, descriptors: &[BorrowedFd<'_>], now_ms: u64) -> Departure {
        let Some(message) = passport.to_message() else { return Departure::Never };
        match passing::send(&self.destination.socket, &message, descriptors) {
            Ok(()) => return Departure::Done,
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.is_gone = true,
            // Longer than this system's buffers.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::MSGSIZE) => return Departure::Never,
            // Full, or too many descriptors of this user are on their way.
            Err(_) => self.full_until_ms = now_ms + PAUSE_MS,
        }
        Departure::Later
    }
}

/// What became of a connection that was to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// It is the other processes'.
    Done,
    /// It stays for now.
    Later,
    /// It stays: no message has room for what it is.
    Never,
}

/// How long to wait for other processes that have not kept up.
const PAUSE_MS: u64 = 10;

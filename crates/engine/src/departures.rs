//! Where clients go that another process serves on: one of the server that takes the place of this one, or another worker of
//! this server.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use baton_passport::{Address, Passport};
use baton_sys::passing;

use crate::listen::Listener;

/// The way to the processes that go on with connections, for all threads of this one.
#[derive(Debug)]
pub struct Destination {
    socket: OwnedFd,
    /// Where this process has accepted, by the ids of the listeners.
    addresses: Vec<(usize, Address)>,
    /// Whether the processes are workers of the same server.
    is_siblings: bool,
}

impl Destination {
    /// Processes of another server. `socket` keeps message boundaries, and the processes at its other end know these listeners
    /// by their addresses.
    ///
    /// # Errors
    /// `EBADF`.
    pub fn new(socket: OwnedFd, listeners: &[Arc<Listener>]) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        let addresses = listeners.iter().map(|one| (one.id, Address::from(&one.address))).collect();
        Ok(Self { socket, addresses, is_siblings: false })
    }

    /// Other workers of the same server, which this one leaves.
    ///
    /// # Errors
    /// `EBADF`.
    pub fn siblings(socket: OwnedFd, listeners: &[Arc<Listener>]) -> io::Result<Self> {
        Ok(Self { is_siblings: true, ..Self::new(socket, listeners)? })
    }
}

/// One loop's view of the destination.
#[derive(Clone, Debug)]
pub(crate) struct Departures {
    destination: Arc<Destination>,
    /// The other processes have not kept up: until then none is sent.
    full_until_ms: u64,
    /// They have ended.
    is_gone: bool,
}

impl Departures {
    pub(crate) fn to(destination: Arc<Destination>) -> Self {
        Self { destination, full_until_ms: 0, is_gone: false }
    }

    /// Whether other workers of the same server take them.
    pub(crate) fn are_to_siblings(&self) -> bool {
        self.destination.is_siblings
    }

    /// Whether connections are taken, now or soon.
    pub(crate) fn are_possible(&self) -> bool {
        !self.is_gone
    }

    /// Whether one may be sent now.
    pub(crate) fn are_open(&self, now_ms: u64) -> bool {
        !self.is_gone && now_ms >= self.full_until_ms
    }

    /// When those that could not be sent may be tried again.
    pub(crate) fn again_ms(&self) -> Option<u64> {
        (!self.is_gone && self.full_until_ms > 0).then_some(self.full_until_ms)
    }

    /// The next attempt is due.
    pub(crate) fn try_again(&mut self) {
        self.full_until_ms = 0;
    }

    /// The address of a listener of this process.
    pub(crate) fn address_of(&self, listener: usize) -> Option<&Address> {
        self.destination.addresses.iter().find(|(id, _)| *id == listener).map(|(_, address)| address)
    }

    /// Sends a connection. `false`: it stays.
    pub(crate) fn send(&mut self, passport: &Passport, socket: impl AsFd, now_ms: u64) -> bool {
        let Some(message) = passport.to_message() else { return false };
        match passing::send(&self.destination.socket, &message, &[socket.as_fd()]) {
            Ok(()) => return true,
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.is_gone = true,
            // Full, or too many descriptors of this user are on their way.
            Err(_) => self.full_until_ms = now_ms + PAUSE_MS,
        }
        false
    }
}

/// How long to wait for other processes that have not kept up.
const PAUSE_MS: u64 = 10;

//! Where clients come from that another process has served until now: one of the server whose place this one takes, or
//! another worker of this server.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use baton_passport::{MESSAGE_BYTES_MAX, Passport, Refused};
use baton_sys::passing;
use zeroize::Zeroize;

/// A socket over which connections arrive, for all loops of all processes of this server: each takes what it has room for.
#[derive(Debug)]
pub struct Arrivals {
    socket: OwnedFd,
    /// Whether the handoff agent brings them, for servers of other hosts.
    are_of_agent: bool,
}

/// What a look at the socket came to.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// A client, with the files of which it was being sent something.
    Client { socket: OwnedFd, files: Vec<OwnedFd>, passport: Box<Passport> },
    /// A message that is none; its connection is closed.
    Refused(Refused),
    /// Nothing for now.
    Nothing,
    /// Nothing ever again: the other server has ended, and nothing waits.
    End,
}

impl Arrivals {
    /// Another server of this host sends them, or other workers of this one. `socket` keeps message boundaries.
    ///
    /// # Errors
    /// `EBADF`.
    pub fn new(socket: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Self { socket, are_of_agent: false })
    }

    /// The handoff agent sends them, for servers of other hosts.
    ///
    /// # Errors
    /// `EBADF`.
    pub fn of_agent(socket: OwnedFd) -> io::Result<Self> {
        Ok(Self { are_of_agent: true, ..Self::new(socket)? })
    }

    /// Whether the handoff agent sends them.
    pub(crate) fn are_of_agent(&self) -> bool {
        self.are_of_agent
    }

    /// The next client.
    pub(crate) fn next(&self, buffer: &mut Vec<u8>) -> Arrival {
        buffer.resize(MESSAGE_BYTES_MAX, 0);
        let (len, sockets) = match passing::receive(&self.socket, buffer) {
            Ok((0, _)) => return Arrival::End,
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Arrival::Nothing,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Arrival::Nothing,
            // Longer than any passport, or descriptors that there was no room for.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Arrival::Refused(Refused::Length);
            }
            Err(_) => return Arrival::End,
        };
        let passport = Passport::from_message(&buffer[..len]);
        // It may have brought keys.
        buffer[..len].zeroize();
        let mut descriptors = sockets.into_iter();
        match (passport, descriptors.next()) {
            (Ok(passport), Some(socket)) => {
                Arrival::Client { socket, files: descriptors.collect(), passport: Box::new(passport) }
            }
            (Ok(_), None) => Arrival::Refused(Refused::Malformed),
            (Err(refused), _) => Arrival::Refused(refused),
        }
    }
}

impl AsFd for Arrivals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

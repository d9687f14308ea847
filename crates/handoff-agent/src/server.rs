//! A server of this host: its master and its workers.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use baton_cluster::local::{FromMaster, FromWorker, MESSAGE_BYTES_MAX, ToMaster};
use baton_passport::Passport;
use baton_report::log;
use baton_supervise::messages;
use baton_sys::passing;

/// Most messages that wait for a master that does not read: one for each node, some times over.
const WAITING_MAX: usize = 4096;

/// A server.
#[derive(Debug)]
pub(crate) struct Server {
    /// `None`: it has ended; its workers may live on for a while.
    pub(crate) master: Option<OwnedFd>,
    waiting: VecDeque<ToMaster>,
    /// What the workers say; `None` before `Hello`, and after the end of the last worker.
    pub(crate) requests: Option<OwnedFd>,
    /// Where they get connections.
    arrivals: Option<OwnedFd>,
    buffer: Vec<u8>,
}

/// What a worker has said.
#[derive(Debug)]
pub(crate) enum Said {
    /// A message, and a client's socket.
    Message(FromWorker, Option<OwnedFd>),
    /// What is no message.
    Nonsense,
    /// Nothing for now.
    Nothing,
    /// No worker is left.
    End,
}

impl Server {
    pub(crate) fn new(master: OwnedFd) -> Self {
        Self {
            master: Some(master),
            waiting: VecDeque::new(),
            requests: None,
            arrivals: None,
            buffer: vec![0; messages::MESSAGE_BYTES_MAX.max(MESSAGE_BYTES_MAX)],
        }
    }

    /// Whether nothing of it is left.
    pub(crate) fn is_gone(&self) -> bool {
        self.master.is_none() && self.requests.is_none()
    }

    /// Whether it has said `Hello`.
    pub(crate) fn has_said_hello(&self) -> bool {
        self.arrivals.is_some()
    }

    /// Whether a worker of it lives, or may be started.
    pub(crate) fn has_workers(&self) -> bool {
        self.requests.is_some()
    }

    /// Leaves the workers to another server, which has come with the same sockets: a master that has lost its connection, and
    /// made another one.
    pub(crate) fn leave_workers_to(&mut self, other: &Self) {
        let inode = |server: &Self| rustix::fs::fstat(server.requests.as_ref()?).ok().map(|stat| stat.st_ino);
        if inode(self).is_some() && inode(self) == inode(other) {
            (self.requests, self.arrivals) = (None, None);
        }
    }

    /// Whether it may be given connections.
    pub(crate) fn serves(&self) -> bool {
        self.master.is_some() && self.arrivals.is_some()
    }

    /// The sockets of `Hello`.
    pub(crate) fn meet(&mut self, requests: OwnedFd, arrivals: OwnedFd) -> io::Result<()> {
        rustix::io::ioctl_fionbio(&requests, true)?;
        rustix::io::ioctl_fionbio(&arrivals, true)?;
        (self.requests, self.arrivals) = (Some(requests), Some(arrivals));
        Ok(())
    }

    /// The next message of the master. `None`: there is none now.
    pub(crate) fn next_of_master(&mut self) -> Option<(FromMaster, Vec<OwnedFd>)> {
        match messages::receive(self.master.as_ref()?, &mut self.buffer) {
            Ok(Some(message)) => Some(message),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Ok(None) => {
                self.master = None;
                None
            }
            Err(error) => {
                log::error(format_args!("the server's message cannot be read: {error}"));
                self.master = None;
                None
            }
        }
    }

    /// The next message of the workers.
    pub(crate) fn next_of_workers(&mut self) -> Said {
        let Some(requests) = &self.requests else { return Said::Nothing };
        match passing::receive(requests, &mut self.buffer) {
            Ok((0, _)) => {}
            Ok((len, sockets)) => match FromWorker::from_message(&self.buffer[..len]) {
                Ok(message) => return Said::Message(message, sockets.into_iter().next()),
                Err(refused) => {
                    log::error(format_args!("a worker's message is refused: {refused}"));
                    return Said::Nonsense;
                }
            },
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Said::Nothing,
            // Workers that ended had not read everything; or a message is too long.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::Interrupted | io::ErrorKind::ConnectionReset | io::ErrorKind::InvalidData
                ) =>
            {
                return Said::Nonsense;
            }
            Err(error) => log::error(format_args!("workers cannot be heard: {error}")),
        }
        self.requests = None;
        Said::End
    }

    /// Tells the master. One that does not keep up is left.
    pub(crate) fn tell(&mut self, message: ToMaster) {
        self.waiting.push_back(message);
        self.flush();
        if self.waiting.len() > WAITING_MAX {
            log::error("the server does not read what its handoff agent says: it is left alone");
            self.master = None;
            self.waiting.clear();
        }
    }

    /// Whether the master's socket is full.
    pub(crate) fn wants_write(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(crate) fn flush(&mut self) {
        while let (Some(master), Some(message)) = (&self.master, self.waiting.front()) {
            match messages::send(master, message, &[]) {
                Ok(()) => _ = self.waiting.pop_front(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.master = None,
            }
        }
        self.waiting.clear();
    }

    /// Gives a connection to the workers. `false`: they have no room, or there are none.
    pub(crate) fn give(&self, socket: &OwnedFd, passport: &Passport) -> bool {
        let (Some(arrivals), Some(message)) = (&self.arrivals, passport.to_message()) else { return false };
        passing::send(arrivals, &message, &[socket.as_fd()]).is_ok()
    }
}

//! The new server's side: the sockets that it takes from the old one, and its reports.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use baton_engine::listen::ListenAddress;
use baton_report::OperatorError;
use baton_report::log;
use baton_sys::passing;
use baton_tls::TicketSecrets;

use super::message::{CHANNEL, FromPredecessor, SocketUse, ToPredecessor, of_another_version};
use crate::channel::{self, MESSAGE_BYTES_MAX};
use crate::inherited::InheritedSocket;
use crate::memory_file;

/// The server that this one replaces.
#[derive(Debug)]
pub(crate) struct Predecessor {
    /// Its master process.
    pub(crate) pid: u32,
    channel: OwnedFd,
    /// Where its clients arrive, for all workers of this server.
    pub(crate) arrivals: Option<OwnedFd>,
    /// The other end, which it gets when this server serves.
    way: Option<OwnedFd>,
}

/// The inherited sockets, and what else passes on.
#[derive(Debug, Default)]
pub(crate) struct InheritedSockets {
    /// Sockets for clients.
    pub(crate) sockets: Vec<InheritedSocket>,
    /// Sockets for monitoring, by the address that was configured.
    pub(crate) admin: Vec<(ListenAddress, OwnedFd)>,
    /// The secrets of session tickets, so that sessions go on.
    pub(crate) ticket_secrets: Option<TicketSecrets>,
    /// URLs of origins that are to get no requests.
    pub(crate) drained_origins: Vec<String>,
}

impl Predecessor {
    /// The server that has started this one to replace it, if there is one.
    ///
    /// # Errors
    /// If the environment names a channel that does not work.
    pub(crate) fn find() -> Result<Option<Self>, OperatorError> {
        let found = baton_sys::inherited_descriptor::take(CHANNEL)
            .map_err(|error| OperatorError::of("reach the server that started this one", &error))?;
        Ok(found.map(|(pid, channel)| {
            // Without a descriptor to spare, its clients stay with it.
            let (arrivals, way) = passing::message_pair().ok().unzip();
            Self { pid, channel, arrivals, way }
        }))
    }

    /// Takes the sockets.
    ///
    /// # Errors
    /// If the old server has ended, or sends messages that this one does not know.
    pub(crate) fn take_sockets(&self) -> Result<InheritedSockets, OperatorError> {
        self.receive_sockets().map_err(|error| {
            let trouble = OperatorError::of(format_args!("take the sockets of process {}", self.pid), &error);
            match error.kind() {
                io::ErrorKind::InvalidData => of_another_version(trouble),
                _ => trouble,
            }
        })
    }

    fn receive_sockets(&self) -> io::Result<InheritedSockets> {
        let mut inherited_sockets = InheritedSockets::default();
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        loop {
            let (message, descriptors) =
                channel::receive(&self.channel, &mut buffer)?.ok_or(io::ErrorKind::UnexpectedEof)?;
            let sockets = match message {
                FromPredecessor::Sockets { sockets } => sockets,
                FromPredecessor::Done { drained_origins } => {
                    // Without them, clients make full handshakes.
                    let secrets = memory_file::read(descriptors.into_iter().next()).ok();
                    inherited_sockets.ticket_secrets =
                        secrets.and_then(|bytes| TicketSecrets::from_bytes(&bytes));
                    inherited_sockets.drained_origins = drained_origins;
                    break;
                }
            };
            for (socket, descriptor) in sockets.into_iter().zip(descriptors) {
                let address = socket.address.into();
                match socket.socket_use {
                    SocketUse::Clients => {
                        inherited_sockets.sockets.push(InheritedSocket::from_predecessor(
                            address,
                            descriptor,
                            socket.managed,
                        ));
                    }
                    SocketUse::Admin => inherited_sockets.admin.push((address, descriptor)),
                }
            }
        }
        // From now on the master reads this end only when poll reports it.
        rustix::io::ioctl_fionbio(&self.channel, true)?;
        Ok(inherited_sockets)
    }

    /// Reports that this server serves.
    pub(crate) fn tell_serving(&mut self) {
        // No copy stays here: its end shows the workers that no more clients arrive.
        let way = self.way.take();
        let word = ToPredecessor::Serving { passports: baton_passport::VERSION_MAX };
        self.tell(&word, &Vec::from_iter(way.as_ref().map(AsFd::as_fd)));
    }

    /// Reports that this server cannot serve.
    pub(crate) fn tell_failed(&self, why: &str) {
        self.tell(&ToPredecessor::Failed { error: why.to_owned() }, &[]);
    }

    fn tell(&self, word: &ToPredecessor, descriptors: &[BorrowedFd<'_>]) {
        if let Err(error) = channel::send(&self.channel, word, descriptors) {
            log::warning(format_args!("cannot tell process {}, which started this one: {error}", self.pid));
        }
    }

    /// Readable when the old server has ended: it sends no further messages.
    pub(crate) fn channel(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An old server whose messages have other names.
    #[test]
    fn sockets_of_another_version_are_refused_with_an_advice() {
        let (ours, theirs) = passing::message_pair().unwrap();
        passing::send(&theirs, br#"{"bequest":"sockets","sockets":[]}"#, &[]).unwrap();
        let refused = Predecessor { pid: 1, channel: ours, arrivals: None, way: None }
            .take_sockets()
            .unwrap_err()
            .to_string();
        assert!(refused.contains("take the sockets of process 1: missing field `message`"), "{refused}");
        assert!(refused.contains("remedy: stop the old server"), "{refused}");
    }
}

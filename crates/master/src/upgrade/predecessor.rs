//! The new server's side: what it takes from the one that started it, and what it tells it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use baton_engine::listen::ListenAddress;
use baton_report::Trouble;
use baton_report::log;

use super::message::{Bequest, CHANNEL, Visitors, Word};
use crate::channel::{self, MESSAGE_BYTES_MAX};
use crate::inherited::Passed;

/// The server whose place this one is to take.
#[derive(Debug)]
pub(crate) struct Predecessor {
    /// Its master process.
    pub(crate) pid: u32,
    channel: OwnedFd,
}

/// What it leaves.
#[derive(Debug, Default)]
pub(crate) struct Estate {
    /// Sockets for clients.
    pub(crate) sockets: Vec<Passed>,
    /// Sockets for monitoring, by the address that was configured.
    pub(crate) admin: Vec<(ListenAddress, OwnedFd)>,
}

impl Predecessor {
    /// The server that started this one to take its place, if one did.
    ///
    /// # Errors
    /// If it says so, but there is no way to speak to it.
    pub(crate) fn find() -> Result<Option<Self>, Trouble> {
        let found = baton_sys::bequest::inherit(CHANNEL)
            .map_err(|error| Trouble::of("reach the server that started this one", &error))?;
        Ok(found.map(|(pid, channel)| Self { pid, channel }))
    }

    /// Takes the sockets.
    ///
    /// # Errors
    /// If the old server has ended meanwhile, or speaks another language.
    pub(crate) fn take_estate(&self) -> Result<Estate, Trouble> {
        self.receive_estate()
            .map_err(|error| Trouble::of(format_args!("take the sockets of process {}", self.pid), &error))
    }

    fn receive_estate(&self) -> io::Result<Estate> {
        let mut estate = Estate::default();
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        loop {
            let (bequest, descriptors) =
                channel::receive(&self.channel, &mut buffer)?.ok_or(io::ErrorKind::UnexpectedEof)?;
            let Bequest::Sockets { sockets } = bequest else { break };
            for (socket, descriptor) in sockets.into_iter().zip(descriptors) {
                let address = socket.address.into();
                match socket.visitors {
                    Visitors::Clients => {
                        estate.sockets.push(Passed::by_predecessor(address, descriptor, socket.managed));
                    }
                    Visitors::Admin => estate.admin.push((address, descriptor)),
                }
            }
        }
        // From now on this end is only read when poll says that there is something.
        rustix::io::ioctl_fionbio(&self.channel, true)?;
        Ok(estate)
    }

    /// Says that this server serves.
    pub(crate) fn tell_serving(&self) {
        self.tell(&Word::Serving);
    }

    /// Says that this server cannot serve.
    pub(crate) fn tell_failed(&self, why: &str) {
        self.tell(&Word::Failed { error: why.to_owned() });
    }

    fn tell(&self, word: &Word) {
        if let Err(error) = channel::send(&self.channel, word, &[]) {
            log::warning(format_args!("cannot tell process {}, which started this one: {error}", self.pid));
        }
    }

    /// Readable when the old server has ended: it has nothing more to say.
    pub(crate) fn channel(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

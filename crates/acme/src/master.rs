//! The process's end of the socket to the master.

use std::fs::File;
use std::io::{self, Seek as _};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use baton_report::log;
use baton_supervise::messages::{self, MESSAGE_BYTES_MAX};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::messages::{FromAcme, ToAcme};
use crate::settings::AcmeSettings;

/// The socket, and what came over it and is not handled yet.
#[derive(Debug)]
pub(crate) struct Master {
    socket: OwnedFd,
    buffer: Vec<u8>,
    settings: Option<AcmeSettings>,
    has_ended: bool,
}

impl Master {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self { socket, buffer: vec![0; MESSAGE_BYTES_MAX], settings: None, has_ended: false }
    }

    /// Tells the master something. Once it has ended, that is of no use, and no error either.
    pub(crate) fn tell(&mut self, message: &FromAcme) {
        self.has_ended |= messages::send(&self.socket, message, &[]).is_err();
    }

    /// Whether the master has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The newest settings, once.
    pub(crate) fn take_settings(&mut self) -> Option<AcmeSettings> {
        self.settings.take()
    }

    /// Waits for settings, for at most that long.
    pub(crate) fn wait_for_settings(&mut self, time: Duration) {
        let deadline = Instant::now() + time;
        while self.settings.is_none() && self.receive(deadline).is_some() {}
    }

    /// Waits until the master has said of all these challenges that all workers answer them. Returns false if that takes
    /// longer than `time`.
    pub(crate) fn wait_for_challenges(&mut self, ids: &[u64], time: Duration) -> bool {
        let deadline = Instant::now() + time;
        let mut missing = ids.to_vec();
        while !missing.is_empty() {
            match self.receive(deadline) {
                Some(Received::ChallengeReady(ready)) => missing.retain(|id| *id != ready),
                Some(Received::Settings) => {}
                None => return false,
            }
        }
        true
    }

    /// Waits for that long, or until the master ends.
    pub(crate) fn pause(&mut self, time: Duration) {
        let deadline = Instant::now() + time;
        while self.receive(deadline).is_some() {}
    }

    /// Waits for the next message. `None` after the deadline, or once the master has ended.
    fn receive(&mut self, deadline: Instant) -> Option<Received> {
        if self.has_ended {
            return None;
        }
        self.try_receive(deadline).unwrap_or_else(|error| {
            // Master and process are of different versions: a new process may be of the right one.
            log::error(format_args!("cannot understand the master: {error}"));
            self.has_ended = true;
            None
        })
    }

    fn try_receive(&mut self, deadline: Instant) -> io::Result<Option<Received>> {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        let mut readable = [PollFd::new(&self.socket, PollFlags::IN)];
        match poll(&mut readable, Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(None),
            result => result?,
        };
        let Some((message, descriptors)) = messages::receive(self.socket.as_fd(), &mut self.buffer)? else {
            self.has_ended = true;
            return Ok(None);
        };
        match message {
            ToAcme::ChallengeReady { id } => Ok(Some(Received::ChallengeReady(id))),
            ToAcme::Configure => {
                let file = descriptors.into_iter().next().map(File::from);
                let mut file = file.ok_or_else(|| io::Error::other("settings without a descriptor"))?;
                // The master wrote through the same description.
                file.rewind()?;
                self.settings = Some(serde_json::from_reader(io::BufReader::new(file))?);
                Ok(Some(Received::Settings))
            }
        }
    }
}

/// What came.
#[derive(Clone, Copy, Debug)]
enum Received {
    ChallengeReady(u64),
    /// They are in [`Master::settings`].
    Settings,
}

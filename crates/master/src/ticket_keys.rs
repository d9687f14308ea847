//! The secrets of session tickets: the master keeps them in memory only, rotates them, and gives them to every worker and to a
//! successor.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use baton_config::Config;
use baton_report::{OperatorError, log};
use baton_tls::TicketSecrets;

use super::channel::ToWorker;
use super::memory_file;
use super::workers::Workers;

/// The secrets of session tickets, and since when the current one seals.
#[derive(Debug)]
pub(crate) struct TicketKeys {
    secrets: TicketSecrets,
    since: Instant,
}

impl TicketKeys {
    /// The secrets of the server that this one replaces, or else new ones.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub(crate) fn begin(inherited: Option<TicketSecrets>, now: Instant) -> Result<Self, OperatorError> {
        let secrets = inherited.map_or_else(TicketSecrets::draw, Ok);
        let secrets =
            secrets.map_err(|error| OperatorError::new(format!("cannot make ticket keys: {error}")))?;
        Ok(Self { secrets, since: now })
    }

    /// When [`advance`](Self::advance) has something to do: the current secret has sealed for long enough.
    pub(crate) fn deadline(&self, config: &Config) -> Instant {
        self.since + Duration::from_secs(config.tls.session_s) / 2
    }

    /// Rotates the secrets if that is due, and tells all workers.
    pub(crate) fn advance(&mut self, config: &Config, workers: &Workers, now: Instant) {
        if now < self.deadline(config) {
            return;
        }
        self.since = now;
        if let Err(error) = self.secrets.rotate() {
            log::error(format_args!("session tickets keep their keys: {error}"));
        }
        match self.to_memory_file() {
            Ok(file) => workers.tell_all(&ToWorker::TicketSecrets, &[file.as_fd()]),
            // They go on with the old ones, and open tickets of workers that are started from now on: `next` is among
            // their keys.
            Err(error) => log::error(format_args!("cannot pass the ticket keys on: {error}")),
        }
    }

    /// The secrets, for a worker that runs or a successor.
    ///
    /// # Errors
    /// `EMFILE`, `ENOMEM`.
    pub(crate) fn to_memory_file(&self) -> io::Result<File> {
        memory_file::write("baton-tickets", self.secrets.bytes())
    }

    /// The secrets, for a worker that begins.
    pub(crate) fn into_secrets(self) -> TicketSecrets {
        self.secrets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::{MESSAGE_BYTES_MAX, receive};

    #[test]
    fn workers_get_each_new_secret() {
        let config = Config::from_toml("[[site]]\nroot = '/'\n").unwrap();
        let (workers, theirs) = Workers::for_test(1);
        let now = Instant::now();
        let mut keys = TicketKeys::begin(None, now).unwrap();
        let before = keys.secrets.bytes().to_vec();
        keys.advance(&config, &workers, now);
        assert_eq!(keys.secrets.bytes()[..], before[..], "not yet");
        let due = keys.deadline(&config);
        keys.advance(&config, &workers, due);
        assert_ne!(keys.secrets.bytes()[..], before[..]);
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        let (message, descriptors) = receive::<ToWorker>(&theirs[0], &mut buffer).unwrap().unwrap();
        assert_eq!(message, ToWorker::TicketSecrets);
        let passed = memory_file::read(descriptors.into_iter().next()).unwrap();
        assert_eq!(passed[..], keys.secrets.bytes()[..]);
    }
}

//! The keys of session tickets: the master rotates them, and every worker and a successor gets them.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::time::Instant;

use baton_report::log;

use super::Master;
use crate::channel::ToWorker;
use crate::memory_file;

impl Master {
    /// The current secret has sealed for long enough.
    pub(super) fn rotate_ticket_keys(&mut self, now: Instant) {
        self.ticket_keys.rotate(now);
        match self.ticket_secrets_in_memory() {
            Ok(file) => self.workers.tell_all(&ToWorker::TicketSecrets, &[file.as_fd()]),
            // They go on with the old ones, and open tickets of workers that are started from now on: `next` is among
            // their keys.
            Err(error) => log::error(format_args!("cannot pass the ticket keys on: {error}")),
        }
    }

    /// For a worker or a successor.
    pub(super) fn ticket_secrets_in_memory(&self) -> io::Result<File> {
        memory_file::write("baton-tickets", self.ticket_keys.secrets.bytes())
    }
}

//! The secrets of session tickets, as the master keeps them: in memory only.

use std::time::{Duration, Instant};

use baton_config::Config;
use baton_report::{Trouble, log};
use baton_tls::TicketSecrets;

/// The secrets of session tickets, and since when the current one seals.
#[derive(Debug)]
pub(crate) struct TicketKeys {
    pub(crate) secrets: TicketSecrets,
    since: Instant,
}

impl TicketKeys {
    /// The secrets of the server that this one replaces, or else new ones.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub(crate) fn begin(inherited: Option<TicketSecrets>, now: Instant) -> Result<Self, Trouble> {
        let secrets = inherited.map_or_else(TicketSecrets::draw, Ok);
        let secrets = secrets.map_err(|error| Trouble::new(format!("cannot make ticket keys: {error}")))?;
        Ok(Self { secrets, since: now })
    }

    /// When [`rotate`](Self::rotate) is due.
    pub(crate) fn due(&self, config: &Config) -> Instant {
        self.since + Duration::from_secs(config.tls.session_s) / 2
    }

    /// Rotates them.
    pub(crate) fn rotate(&mut self, now: Instant) {
        self.since = now;
        if let Err(error) = self.secrets.rotate() {
            log::error(format_args!("session tickets keep their keys: {error}"));
        }
    }
}

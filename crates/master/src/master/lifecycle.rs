//! How the server begins and how it ends.
//!
//! ```text
//! Starting ──all workers serve──► Serving ──TERM, INT──► Ending (stop) ──┐
//!     │                            │ ▲└────QUIT──► Ending (drain) ──TERM──┤
//!     │                      WINCH ▼ │ HUP                                ├─► all workers gone: exit
//!     │                          Withdrawn ──QUIT, TERM, INT──► Ending ───┘
//!     └──a worker cannot serve──► Ending (stop), with the reason
//! ```

use std::process::ExitCode;
use std::time::{Duration, Instant};

use baton_config::{Destination, Server};
use baton_report::OperatorError;
use baton_report::log;
use baton_supervise as supervise;

use super::{Master, Outcome};
use crate::channel::ToWorker;
use crate::phase::{Ending, GRACE, Phase};
use crate::upgrade::{LINGER, Predecessor, Upgrade};

impl Master {
    /// All workers serve for the first time: tells the service manager, the old server and the terminal.
    pub(super) fn begin_serving(&mut self) {
        self.phase = Phase::Serving;
        self.upgrade.tell_serving();
        self.terminal.announce(matches!(self.config.log.error, Destination::File(_)));
    }

    /// Takes the place of another server, or of none, and starts what workers will need.
    pub(crate) fn begin(&mut self, predecessor: Option<Predecessor>) {
        self.upgrade = Upgrade::new(predecessor);
        let now = Instant::now();
        if let Err(why) = self.applications.prepare(&self.config, &self.startup.user, now) {
            self.fail(why, now);
        }
        match self.documents.settings_of(&self.config, self.certificates.used()) {
            Ok(settings) => self.documents.configure(settings),
            Err(why) => self.fail(why, now),
        }
        match self.config.acme_settings() {
            Ok(settings) => self.acme.configure(settings, now),
            Err(why) => self.fail(why, now),
        }
        self.follow_orders(now);
    }

    /// The server cannot begin.
    pub(super) fn fail(&mut self, why: OperatorError, now: Instant) {
        self.failure.get_or_insert(why);
        self.begin_stop(now);
    }

    /// Accepts nothing new, lets the workers finish what is under way.
    pub(super) fn begin_drain(&mut self, now: Instant) {
        if !matches!(self.phase, Phase::Ending(_)) {
            let linger = if self.upgrade.shares_sockets() {
                LINGER
            } else {
                self.members.leave();
                Duration::ZERO
            };
            let (order, until) = self.drain_order(linger, now);
            self.begin_ending(Ending::Drain { until }, &order, now);
        }
    }

    /// Asks workers to drain, and when those that are left are killed.
    pub(super) fn drain_order(&self, linger: Duration, now: Instant) -> (ToWorker, Instant) {
        let Server { drain_timeout_ms: limit_ms, drain_tunnels_ms: tunnels_ms, .. } = self.config.server;
        let until = now + linger + Duration::from_millis(limit_ms.max(tunnels_ms)) + GRACE;
        let (linger_ms, passports) = (linger.as_millis() as u64, self.upgrade.passports());
        (ToWorker::Drain { linger_ms, limit_ms, tunnels_ms, passports }, until)
    }

    /// Asks the workers to end; when called again, kills them.
    pub(super) fn begin_stop(&mut self, now: Instant) {
        match self.phase {
            Phase::Ending(Ending::Stop { .. }) => self.workers.kill_all(),
            _ => self.begin_ending(Ending::Stop { until: now + GRACE }, &ToWorker::Stop, now),
        }
    }

    fn begin_ending(&mut self, ending: Ending, order: &ToWorker, now: Instant) {
        if !matches!(self.phase, Phase::Ending(_)) {
            self.upgrade.tell_end();
        }
        self.phase = Phase::Ending(ending);
        self.abort_reload("the server ends".to_owned(), now);
        self.workers.tell_all(order, &Vec::from_iter(self.upgrade.way()));
        if self.upgrade.shares_sockets() {
            self.listeners.leave();
        } else {
            // New connections are refused rather than left in a queue from which no process accepts.
            self.listeners.close();
        }
    }

    /// The deadline of the workers has passed: kills those that are left.
    pub(super) fn kill_remaining(&mut self, now: Instant) {
        for (index, worker) in self.workers.occupied() {
            supervise::kill_late(format_args!("worker {index} (process {})", worker.pid), worker.pid);
        }
        self.workers.kill_all();
        self.phase = Phase::Ending(Ending::Stop { until: now + GRACE });
    }

    /// All workers are gone.
    pub(super) fn end(self) -> Result<Outcome, OperatorError> {
        self.endpoints.remove(self.upgrade.shares_sockets());
        if let Some(file) = &self.pid_file {
            file.remove();
        }
        self.applications.remove_folder();
        self.documents.remove_folder();
        match self.failure {
            Some(why) => {
                // The terminal that started the server shows the error; the log does not.
                self.terminal.take_log();
                self.upgrade.tell_failed(&why.to_string());
                Err(why)
            }
            None => {
                log::notice("ended");
                Ok(Outcome::Ended(ExitCode::SUCCESS))
            }
        }
    }
}

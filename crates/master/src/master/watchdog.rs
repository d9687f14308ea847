//! The watchdog: notices a stuck worker, and kills it.
//!
//! The master looks at the heartbeats of all loops, [`LOOKS`] times in `server.watchdog_ms`:
//!
//! ```text
//!   looks without a beat   what the master does
//!   3                      wakes the loop: one that waits for events beats now
//!   5                      `/healthz` answers 503, the other workers serve the queue
//!   8                      kills the worker
//! ```
//!
//! The master counts looks, not time: it kills no worker because the machine was suspended, or too busy to run the
//! master. A thread that waits for a disk cannot be killed and is not stuck.

use std::fs;
use std::time::{Duration, Instant};

use baton_config::{Config, Sendfile};
use baton_engine::heartbeat::Beat;
use baton_report::log;

use super::Master;
use crate::channel::ToWorker;
use crate::phase::Phase;
use crate::watch::{LOOKS, Observation};
use crate::workers::Worker;

impl Master {
    /// When [`check_workers`](Self::check_workers) is due.
    pub(super) fn watchdog_due(&self) -> Option<Instant> {
        let is_on = self.phase == Phase::Serving && limit(&self.config).is_some();
        is_on.then_some(self.next_check)
    }

    /// Checks whether all workers' loops move.
    pub(super) fn check_workers(&mut self, now: Instant) {
        let Some(limit) = limit(&self.config) else { return };
        self.next_check = now + limit / LOOKS;
        for index in 0..self.workers.slots.len() {
            let slot = &mut self.workers.slots[index];
            let Some(worker) = slot.worker.as_ref().filter(|worker| worker.serves) else { continue };
            let mut beats: Vec<_> = slot.heartbeats.beats().collect();
            if beats.is_empty() {
                beats.push((0, not_begun(worker)));
            }
            let stood_still = slot.watch.stands_still();
            match slot.watch.look(beats) {
                Observation::Moves if stood_still => log::notice(format_args!("worker {index} moves again")),
                Observation::Moves => {}
                // If the message cannot be sent, the worker has ended or the next looks find it stuck.
                Observation::Silent => drop(self.workers.tell(index, &ToWorker::Wake, &[])),
                Observation::Still if stood_still => {}
                Observation::Still => log::warning(self.describe_still(index)),
                Observation::Stuck => self.handle_stuck(index, limit),
            }
        }
        self.update_failover();
    }

    /// The stuck workers, a line each.
    pub(super) fn still_workers(&self) -> String {
        let still = |index: &usize| self.workers.slots[*index].watch.stands_still();
        let lines =
            (0..self.workers.slots.len()).filter(still).map(|index| self.describe_still(index) + "\n");
        lines.collect()
    }

    fn handle_stuck(&mut self, index: usize, limit: Duration) {
        if self.excuse(index).is_some() {
            return;
        }
        log::error(format_args!("{}; it is killed after {limit:?}", self.describe_still(index)));
        self.metrics.workers_killed += 1;
        self.workers.kill(index);
        if let Some(worker) = self.workers.worker_mut(index) {
            worker.serves = false;
        }
    }

    fn describe_still(&self, index: usize) -> String {
        let slot = &self.workers.slots[index];
        let (pid, seen) = (slot.worker.as_ref().map_or(0, |worker| worker.pid), slot.watch.stillest());
        let (number, thread) = seen.map_or((0, 0), |seen| (seen.number, seen.beat.thread));
        let excuse = self.excuse(index).map_or(String::new(), |excuse| format!(", {excuse}"));
        format!("worker {index} (process {pid}) stands still: loop {number}, thread {thread}{excuse}")
    }

    /// The reason why a loop without a beat is not stuck.
    fn excuse(&self, index: usize) -> Option<&'static str> {
        let slot = &self.workers.slots[index];
        let (worker, seen) = (slot.worker.as_ref()?, slot.watch.stillest()?);
        match thread_state(worker.pid, seen.beat.thread)? {
            'D' => Some("which waits for a disk"),
            't' => Some("which a debugger has stopped"),
            _ => None,
        }
    }
}

/// The name of a worker's loops until the first of them begins.
fn not_begun(worker: &Worker) -> Beat {
    Beat { count: 0, thread: u64::from(worker.pid.unsigned_abs()) }
}

/// The state of a thread by the kernel: the letter that `ps` shows.
fn thread_state(pid: i32, thread: u64) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/task/{thread}/stat")).ok()?;
    // After the name, which may contain any characters.
    stat.rsplit_once(") ")?.1.chars().next()
}

/// How long a loop may go without a beat; `None`: for ever.
fn limit(config: &Config) -> Option<Duration> {
    let ms = match (config.server.watchdog_ms, config.send.sendfile) {
        (0, _) => return None,
        (ms, Sendfile::NonBlocking) => ms.max(LEAST_MS),
        // A client that reads nothing blocks the loop until its timeout.
        (ms, Sendfile::Blocking | Sendfile::BySize) => ms.max(LEAST_MS).max(2 * config.timeouts.send_ms),
    };
    Some(Duration::from_millis(ms))
}

/// A shorter time would mistake an ordinary pause for a stuck loop.
const LEAST_MS: u64 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocking_sends_are_given_their_time() {
        let limit_of =
            |text: &str| limit(&Config::from_toml(&format!("{text}\n[[site]]\nroot = '/'\n")).unwrap());
        assert_eq!(limit_of(""), Some(Duration::from_secs(10)));
        assert_eq!(limit_of("[server]\nwatchdog_ms = 0"), None);
        assert_eq!(
            limit_of("[server]\narchitecture = 'symped'\n[send]\nsendfile = 'blocking'"),
            Some(Duration::from_secs(120))
        );
    }
}

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
use baton_report::log;

use super::channel::ToWorker;
use super::watch::{LOOKS, Observation};
use super::workers::{WorkerSlot, Workers};

/// When the master looks at the workers again, and what came of it.
#[derive(Debug)]
pub(crate) struct Watchdog {
    next_look: Instant,
    /// Workers that it has killed.
    killed: u64,
}

impl Watchdog {
    /// The first look is due.
    pub(crate) fn new(now: Instant) -> Self {
        Self { next_look: now, killed: 0 }
    }

    /// How many workers it has killed.
    pub(crate) fn killed(&self) -> u64 {
        self.killed
    }

    /// When [`look`](Self::look) is due, while the server serves. `None`: the configuration has no watchdog.
    pub(crate) fn deadline(&self, config: &Config) -> Option<Instant> {
        limit(config).map(|_| self.next_look)
    }

    /// Checks whether all workers' loops move.
    pub(crate) fn look(&mut self, workers: &mut Workers, config: &Config, now: Instant) {
        let Some(limit) = limit(config) else { return };
        self.next_look = now + limit / LOOKS;
        for index in 0..workers.count() {
            let Some((stood_still, observation)) = workers.look_at(index) else { continue };
            match observation {
                Observation::Moves if stood_still => log::notice(format_args!("worker {index} moves again")),
                Observation::Moves => {}
                // If the message cannot be sent, the worker has ended or the next looks find it stuck.
                Observation::Silent => drop(workers.tell(index, &ToWorker::Wake, &[])),
                Observation::Still if stood_still => {}
                Observation::Still => log::warning(describe_still(index, &workers.slots()[index])),
                Observation::Stuck => self.handle_stuck(index, workers, limit),
            }
        }
    }

    fn handle_stuck(&mut self, index: usize, workers: &mut Workers, limit: Duration) {
        let slot = &workers.slots()[index];
        if excuse(slot).is_some() {
            return;
        }
        log::error(format_args!("{}; it is killed after {limit:?}", describe_still(index, slot)));
        self.killed += 1;
        workers.kill(index);
        if let Some(worker) = workers.worker_mut(index) {
            worker.serves = false;
        }
    }
}

/// The stuck workers, a line each.
pub(crate) fn still_workers(workers: &Workers) -> String {
    let still = workers.slots().iter().enumerate().filter(|(_, slot)| slot.watch.stands_still());
    still.map(|(index, slot)| describe_still(index, slot) + "\n").collect()
}

fn describe_still(index: usize, slot: &WorkerSlot) -> String {
    let (pid, seen) = (slot.worker.as_ref().map_or(0, |worker| worker.pid), slot.watch.stillest());
    let (number, thread) = seen.map_or((0, 0), |seen| (seen.number, seen.beat.thread));
    let excuse = excuse(slot).map_or(String::new(), |excuse| format!(", {excuse}"));
    format!("worker {index} (process {pid}) stands still: loop {number}, thread {thread}{excuse}")
}

/// The reason why a loop without a beat is not stuck.
fn excuse(slot: &WorkerSlot) -> Option<&'static str> {
    let (worker, seen) = (slot.worker.as_ref()?, slot.watch.stillest()?);
    match thread_state(worker.pid, seen.beat.thread)? {
        'D' => Some("which waits for a disk"),
        't' => Some("which a debugger has stopped"),
        _ => None,
    }
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
    fn a_worker_whose_loops_never_begin_is_killed_and_the_others_serve() {
        let config = Config::from_toml("[[site]]\nroot = '/'\n").unwrap();
        let (mut workers, _theirs) = Workers::for_test(1);
        let mut watchdog = Watchdog::new(Instant::now());
        for _ in 0..=LOOKS {
            assert_eq!((watchdog.killed(), workers.worker_mut(0).unwrap().serves), (0, true));
            let due = watchdog.deadline(&config).unwrap();
            watchdog.look(&mut workers, &config, due);
        }
        assert_eq!((watchdog.killed(), workers.worker_mut(0).unwrap().serves), (1, false));
        assert!(still_workers(&workers).starts_with("worker 0 (process "));
        let due = watchdog.deadline(&config).unwrap();
        watchdog.look(&mut workers, &config, due);
        assert_eq!(watchdog.killed(), 1, "once");
    }

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

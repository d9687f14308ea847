//! The watchdog: notices a worker that stands still, and ends it.
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
//! Looks are counted, not time: a machine that was suspended, or so busy that the master did not run either, costs no
//! worker its life. A thread that waits for a disk cannot be killed, and need not be: it is not stuck.

use std::fs;
use std::time::{Duration, Instant};

use baton_config::{Config, Sendfile};
use baton_engine::heartbeat::Beat;
use baton_report::log;

use super::channel::Order;
use super::crew::Worker;
use super::master::Master;
use super::phase::Phase;

/// What the master remembers of the loops of one worker.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch(Vec<Loop>);

#[derive(Clone, Copy, Debug)]
struct Loop {
    number: usize,
    beat: Beat,
    /// Looks since it was last seen to move.
    still: u32,
}

/// What a look has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sight {
    Moves,
    /// It is time to find out whether it only waits for events.
    Silent,
    Still,
    /// For so long that the worker is of no use.
    Stuck,
}

impl Watch {
    /// Looks at the loops of a worker.
    fn look(&mut self, beats: impl IntoIterator<Item = (usize, Beat)>) -> Sight {
        let seen = beats.into_iter().map(|(number, beat)| {
            let before = self.0.iter().find(|before| before.number == number);
            let before = before.filter(|before| before.beat.count == beat.count);
            Loop { number, beat, still: before.map_or(0, |before| before.still.saturating_add(1)) }
        });
        self.0 = seen.collect();
        match self.stillest().map_or(0, |stillest| stillest.still) {
            LOOKS.. => Sight::Stuck,
            LOOKS_UNTIL_STILL.. => Sight::Still,
            LOOKS_UNTIL_WOKEN => Sight::Silent,
            _ => Sight::Moves,
        }
    }

    /// Whether a loop was seen to stand still.
    pub(super) fn stands_still(&self) -> bool {
        self.stillest().is_some_and(|stillest| stillest.still >= LOOKS_UNTIL_STILL)
    }

    fn stillest(&self) -> Option<&Loop> {
        self.0.iter().rev().max_by_key(|seen| seen.still)
    }
}

impl Master {
    /// When [`look_at_workers`](Self::look_at_workers) is due.
    pub(super) fn look_due(&self) -> Option<Instant> {
        let is_on = self.phase == Phase::Serving && limit(&self.config).is_some();
        is_on.then_some(self.next_look)
    }

    /// Looks whether all workers move.
    pub(super) fn look_at_workers(&mut self, now: Instant) {
        let Some(limit) = limit(&self.config) else { return };
        self.next_look = now + limit / LOOKS;
        for index in 0..self.crew.places.len() {
            let place = &mut self.crew.places[index];
            let Some(worker) = place.worker.as_ref().filter(|worker| worker.serves) else { continue };
            let mut beats: Vec<_> = place.heartbeats.beats().collect();
            if beats.is_empty() {
                beats.push((0, not_begun(worker)));
            }
            let stood_still = place.watch.stands_still();
            match place.watch.look(beats) {
                Sight::Moves if stood_still => log::notice(format_args!("worker {index} moves again")),
                Sight::Moves => {}
                // If it cannot be told, it is gone, or will be found to stand still.
                Sight::Silent => drop(self.crew.tell(index, &Order::Wake, &[])),
                Sight::Still if stood_still => {}
                Sight::Still => log::warning(self.describe_still(index)),
                Sight::Stuck => self.handle_stuck(index, limit),
            }
        }
        self.arrange_cover();
    }

    /// The workers that stand still, a line each.
    pub(super) fn still_workers(&self) -> String {
        let still = |index: &usize| self.crew.places[*index].watch.stands_still();
        let lines = (0..self.crew.places.len()).filter(still).map(|index| self.describe_still(index) + "\n");
        lines.collect()
    }

    fn handle_stuck(&mut self, index: usize, limit: Duration) {
        if self.excuse(index).is_some() {
            return;
        }
        log::error(format_args!("{}; it is killed after {limit:?}", self.describe_still(index)));
        self.figures.workers_killed += 1;
        self.crew.kill(index);
        if let Some(worker) = self.crew.worker_mut(index) {
            worker.serves = false;
        }
    }

    fn describe_still(&self, index: usize) -> String {
        let place = &self.crew.places[index];
        let (pid, seen) = (place.worker.as_ref().map_or(0, |worker| worker.pid), place.watch.stillest());
        let (number, thread) = seen.map_or((0, 0), |seen| (seen.number, seen.beat.thread));
        let excuse = self.excuse(index).map_or(String::new(), |excuse| format!(", {excuse}"));
        format!("worker {index} (process {pid}) stands still: loop {number}, thread {thread}{excuse}")
    }

    /// Why the loop that stands still is not to be blamed.
    fn excuse(&self, index: usize) -> Option<&'static str> {
        let place = &self.crew.places[index];
        let (worker, seen) = (place.worker.as_ref()?, place.watch.stillest()?);
        if seen.beat.is_held {
            return Some("which waits for other threads");
        }
        match thread_state(worker.pid, seen.beat.thread)? {
            'D' => Some("which waits for a disk"),
            't' => Some("which a debugger has stopped"),
            _ => None,
        }
    }
}

/// What stands for the loops of a worker until the first of them begins.
fn not_begun(worker: &Worker) -> Beat {
    Beat { count: 0, thread: u64::from(worker.pid.unsigned_abs()), is_held: false }
}

/// What the kernel says of a thread: the letter that `ps` shows.
fn thread_state(pid: i32, thread: u64) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/task/{thread}/stat")).ok()?;
    // Behind the name, which may have any characters in it.
    stat.rsplit_once(") ")?.1.chars().next()
}

/// For how long a loop may stand still; `None`: for ever.
fn limit(config: &Config) -> Option<Duration> {
    let ms = match (config.server.watchdog_ms, config.send.sendfile) {
        (0, _) => return None,
        (ms, Sendfile::NonBlocking) => ms.max(LEAST_MS),
        // A client that takes nothing holds the loop for as long as it may.
        (ms, Sendfile::Blocking | Sendfile::BySize) => ms.max(LEAST_MS).max(2 * config.timeouts.send_ms),
    };
    Some(Duration::from_millis(ms))
}

/// Less would take an ordinary pause for a standstill.
const LEAST_MS: u64 = 1_000;

/// In the time after which a worker is killed.
const LOOKS: u32 = 8;
const LOOKS_UNTIL_STILL: u32 = 5;
const LOOKS_UNTIL_WOKEN: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn beat(count: u64) -> Beat {
        Beat { count, thread: 1, is_held: false }
    }

    fn look(watch: &mut Watch, counts: &[u64]) -> Sight {
        watch.look(counts.iter().map(|&count| beat(count)).enumerate())
    }

    #[test]
    fn a_loop_that_does_not_beat_is_woken_and_then_given_up() {
        use Sight::{Moves, Silent, Still, Stuck};
        let mut watch = Watch::default();
        let sights: Vec<_> = (0..10).map(|_| look(&mut watch, &[7])).collect();
        assert_eq!(sights, [Moves, Moves, Moves, Silent, Moves, Still, Still, Still, Stuck, Stuck]);
        assert!(watch.stands_still());
        assert_eq!(look(&mut watch, &[8]), Moves);
        assert!(!watch.stands_still());
    }

    #[test]
    fn one_loop_of_several_that_stands_still_is_enough() {
        let mut watch = Watch::default();
        let last = (0..9).map(|count| look(&mut watch, &[count, 3, count])).last();
        assert_eq!(last, Some(Sight::Stuck));
        assert_eq!(watch.stillest().map(|seen| seen.number), Some(1));
        assert_eq!(look(&mut watch, &[20]), Sight::Moves, "it has ended");
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

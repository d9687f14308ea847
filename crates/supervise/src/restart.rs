//! When a process that ended is started again.

use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use baton_sys::process::Ended;

use crate::backoff::Backoff;
use crate::ended::describe_end;

/// The time at which the next process may start: at once, or after a wait that grows while processes end early.
#[derive(Clone, Copy, Debug)]
pub struct Restart {
    backoff: Backoff,
    due: Instant,
}

impl Restart {
    /// The first process may start at `now`.
    pub fn new(now: Instant) -> Self {
        Self { backoff: Backoff::default(), due: now }
    }

    /// When the next process may start.
    pub fn due(&self) -> Instant {
        self.due
    }

    /// Lets the next process start at `due`, however the previous one ended.
    pub fn start_at(&mut self, due: Instant) {
        self.due = due;
    }

    /// A process that began at `since` has ended, and was not asked to.
    pub fn note_end(&mut self, ended: Ended, since: Instant, now: Instant) -> End {
        let lived = now.duration_since(since);
        let wait = self.backoff.after(lived);
        self.due = now + wait;
        End { ended, lived, wait }
    }

    /// A process could not be started: what to log about it.
    pub fn note_failed_start(&mut self, who: impl fmt::Display, error: &io::Error, now: Instant) -> String {
        let wait = self.backoff.after(Duration::ZERO);
        self.due = now + wait;
        format!("cannot start {who}: {error}; the next try is in {wait:?}")
    }
}

/// How a process ended that was not asked to end.
#[derive(Clone, Copy, Debug)]
pub struct End {
    ended: Ended,
    lived: Duration,
    wait: Duration,
}

impl End {
    /// A sentence about the process alone: no other one follows it.
    pub fn of(&self, who: impl fmt::Display) -> String {
        format!("{who} {} after {:.1?}", describe_end(self.ended), self.lived)
    }

    /// A sentence about the process and the next one.
    pub fn with_restart(&self, who: impl fmt::Display) -> String {
        format!("{}; the next one starts in {:?}", self.of(who), self.wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_process_waits_as_long_as_the_log_says() {
        let start = Instant::now();
        let mut restart = Restart::new(start);
        assert_eq!(restart.due(), start);
        let failed = restart.note_failed_start("a", &io::ErrorKind::OutOfMemory.into(), start);
        assert!(
            failed.starts_with("cannot start a: ") && failed.ends_with("the next try is in 100ms"),
            "{failed}"
        );
        let now = start + Duration::from_secs(1);
        let end = restart.note_end(Ended::Killed(9), start, now);
        assert_eq!(
            end.with_restart("a"),
            "a was killed by signal 9 (SIGKILL) after 1.0s; the next one starts in 200ms"
        );
        assert_eq!(restart.due(), now + Duration::from_millis(200));
    }
}

//! Processes that are to end: the supervisor asks first, and kills at a deadline.

use std::fmt;
use std::time::{Duration, Instant};

use baton_report::log;
use baton_sys::process;
use rustix::process::Signal;

/// A process that was asked to end, and is killed if it has not by its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopping {
    pid: i32,
    deadline: Instant,
}

impl Stopping {
    /// The process `pid`, or with `-pid` its process group, has been asked to end by `deadline`.
    pub fn new(pid: i32, deadline: Instant) -> Self {
        Self { pid, deadline }
    }

    /// When [`kill_if_late`](Self::kill_if_late) has something to do.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Moves the deadline to now.
    pub fn hurry(&mut self, now: Instant) {
        self.deadline = now;
    }

    /// Kills the process once its deadline has passed, and logs it. If the kernel cannot end the process yet, the next
    /// attempt is a minute later.
    pub fn kill_if_late(&mut self, who: impl fmt::Display, now: Instant) {
        if self.deadline <= now {
            kill_late(who, self.pid);
            self.deadline = now + AFTER_KILLING;
        }
    }
}

/// The wait before another kill: a process in a call to a disk ends only when that returns.
const AFTER_KILLING: Duration = Duration::from_secs(60);

/// Kills a process, or with `-pid` a process group, that was asked to end and has not.
pub fn kill_late(who: impl fmt::Display, pid: i32) {
    log::warning(format_args!("{who} did not end in time and is killed"));
    kill(pid);
}

/// Kills a process, or with `-pid` a process group.
pub fn kill(pid: i32) {
    signal(pid, Signal::KILL.as_raw());
}

/// Sends a signal to a child, or with `-pid` to its process group. Fails only if the child has just ended, which the
/// supervisor learns anyway.
pub fn signal(pid: i32, signal: i32) {
    let _ = process::kill(pid, signal);
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Command, Stdio};

    use super::*;

    /// Goal: a process that ignores the request to end is killed at its deadline, and not before.
    #[test]
    fn a_process_that_does_not_end_is_killed_at_its_deadline() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let start = Instant::now();
        let mut stopping = Stopping::new(i32::try_from(child.id()).unwrap(), start + Duration::from_secs(5));
        stopping.kill_if_late("cat", start);
        assert!(child.try_wait().unwrap().is_none());
        stopping.kill_if_late("cat", start + Duration::from_secs(5));
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
        assert_eq!(stopping.deadline(), start + Duration::from_secs(65));
    }
}

//! When to try a failed disk again, and what is worth a line in the log. Without a clock.

use std::time::{Duration, Instant};

use crate::disk_failure::DiskFailure;

/// Whether the disk works.
#[derive(Debug, Default)]
pub(crate) struct Health {
    failing: Option<Failing>,
}

#[derive(Debug)]
struct Failing {
    reason: DiskFailure,
    pause: Duration,
    retry_at: Instant,
}

impl Health {
    /// When to try again; `None`: nothing has failed.
    pub(crate) fn retry_at(&self) -> Option<Instant> {
        self.failing.as_ref().map(|failing| failing.retry_at)
    }

    /// Something failed. Returns how long to wait, if it is worth saying: each reason is said once.
    pub(crate) fn handle_failure(&mut self, reason: DiskFailure, now: Instant) -> Option<Duration> {
        let (pause, is_new) = match &self.failing {
            None => (PAUSE_LEAST, true),
            Some(failing) => ((failing.pause * 2).min(pause_most(reason)), failing.reason != reason),
        };
        self.failing = Some(Failing { reason, pause, retry_at: now + pause });
        is_new.then_some(pause)
    }

    /// Something was written. Returns whether that is news.
    pub(crate) fn handle_success(&mut self) -> bool {
        self.failing.take().is_some()
    }
}

/// The longest pause. A folder is locked while an upgraded server drains, and free at once when it ends.
fn pause_most(reason: DiskFailure) -> Duration {
    if reason == DiskFailure::Locked { PAUSE_LEAST * 4 } else { PAUSE_MOST }
}

const PAUSE_LEAST: Duration = Duration::from_secs(1);
const PAUSE_MOST: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_said_once_and_tried_again_ever_later() {
        let mut health = Health::default();
        let start = Instant::now();
        assert_eq!(health.retry_at(), None);
        assert_eq!(health.handle_failure(DiskFailure::Full, start), Some(PAUSE_LEAST));
        assert_eq!(health.retry_at(), Some(start + PAUSE_LEAST));
        for _ in 0..10 {
            assert_eq!(health.handle_failure(DiskFailure::Full, start), None);
        }
        assert_eq!(health.retry_at(), Some(start + PAUSE_MOST));
        assert_eq!(
            health.handle_failure(DiskFailure::ReadOnly, start),
            Some(PAUSE_MOST),
            "another reason is news"
        );
        assert_eq!(health.handle_failure(DiskFailure::Locked, start), Some(PAUSE_LEAST * 4));
        assert!(health.handle_success() && !health.handle_success());
        assert_eq!(health.handle_failure(DiskFailure::Full, start), Some(PAUSE_LEAST));
    }
}

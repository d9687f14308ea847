//! Waits that double from failure to failure.

use std::time::Duration;

use crate::time::UnixTime;

/// The wait before the next attempt at something that keeps failing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
    until: UnixTime,
}

impl Backoff {
    /// How often it has failed since the last success.
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    /// When the next attempt may be made.
    pub(super) fn until(&self) -> UnixTime {
        self.until
    }

    /// An attempt failed: the next one waits for `shortest`, doubled for each earlier failure up to `longest`, or for
    /// `at_least` if that is longer. The wait is up to a tenth shorter at random, so that servers do not retry in step.
    pub(super) fn note_failure(
        &mut self,
        now: UnixTime,
        (shortest, longest): (Duration, Duration),
        at_least: Duration,
        random: &mut fastrand::Rng,
    ) {
        let doubled = shortest.saturating_mul(1 << self.failures.min(DOUBLINGS_MAX)).min(longest);
        let wait = doubled - doubled.mul_f64(random.f64() / 10.0);
        self.failures = self.failures.saturating_add(1);
        self.until = now.plus(wait.max(at_least));
    }

    /// An attempt succeeded.
    pub(super) fn note_success(&mut self) {
        *self = Self::default();
    }

    /// Lets no wait last longer than `longest` from now: the clock may have been set back.
    pub(super) fn clamp(&mut self, now: UnixTime, longest: Duration) {
        self.until = self.until.min(now.plus(longest));
    }
}

/// Waits reach their bound long before this; it keeps the shift in range.
const DOUBLINGS_MAX: u32 = 20;

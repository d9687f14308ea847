//! One coarse clock per wake-up.
//!
//! A loop looks at the clock when it wakes up and uses that time for all it does until it sleeps again. The
//! kernel's coarse clocks (a few milliseconds) are read without a system call, and the `Date` is formatted once a
//! second (Wowra's table of the steps of a transaction: "fast clock reads").

use baton_http::Stamp;
use rustix::time::{ClockId, clock_gettime};

/// The time, as of the last wake-up.
#[derive(Debug)]
pub(crate) struct Clock {
    now_ms: u64,
    stamp: Stamp,
}

impl Clock {
    /// A clock that shows the current time.
    pub(crate) fn new() -> Self {
        let mut clock = Self { now_ms: 0, stamp: Stamp::at(0) };
        clock.tick();
        clock
    }

    /// Looks at the time.
    pub(crate) fn tick(&mut self) {
        let monotonic = clock_gettime(ClockId::MonotonicCoarse);
        self.now_ms = monotonic.tv_sec as u64 * 1000 + monotonic.tv_nsec as u64 / 1_000_000;
        let seconds = clock_gettime(ClockId::RealtimeCoarse).tv_sec as u64;
        if seconds != self.stamp.unix_seconds {
            self.stamp = Stamp::at(seconds);
        }
    }

    /// Shows another time than the kernel's.
    #[cfg(test)]
    pub(crate) fn set(&mut self, now_ms: u64, unix_seconds: u64) {
        self.now_ms = now_ms;
        self.stamp = Stamp::at(unix_seconds);
    }

    /// Milliseconds since some moment before the start; never goes back.
    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Date and time of day.
    pub(crate) fn stamp(&self) -> &Stamp {
        &self.stamp
    }
}

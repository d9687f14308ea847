//! One look at the clock per wake-up.
//!
//! A loop looks at the clock when it wakes up and uses that time for all it does until it sleeps again. Only the end of a
//! request is looked at once more, so that its duration is exact. The kernel's clocks are read without a system call
//! (where the CPU has a steady counter), and the `Date` is formatted once a second (Wowra's table of the steps of a
//! transaction: "fast clock reads").

use baton_http::Stamp;
use rustix::time::{ClockId, clock_gettime};

/// The time, as of the last wake-up.
#[derive(Debug)]
pub struct Clock {
    now_us: u64,
    stamp: Stamp,
    /// Reads the time at this moment, in nanoseconds.
    exact_ns: fn(&Self) -> u64,
}

impl Default for Clock {
    /// A clock that shows the current time.
    fn default() -> Self {
        let mut clock = Self { now_us: 0, stamp: Stamp::at(0), exact_ns: |_| monotonic_ns() };
        clock.tick();
        clock
    }
}

impl Clock {
    /// Looks at the time.
    pub fn tick(&mut self) {
        self.now_us = monotonic_ns() / 1000;
        let seconds = clock_gettime(ClockId::RealtimeCoarse).tv_sec as u64;
        if seconds != self.stamp.unix_seconds {
            self.stamp = Stamp::at(seconds);
        }
    }

    /// Milliseconds since some moment before the start; never goes back.
    pub fn now_ms(&self) -> u64 {
        self.now_us / 1000
    }

    /// Microseconds since some moment before the start; never goes back.
    pub fn now_us(&self) -> u64 {
        self.now_us
    }

    /// The time at this moment, in microseconds on the same scale.
    pub fn exact_us(&self) -> u64 {
        self.exact_ns() / 1000
    }

    /// The time at this moment, in nanoseconds on the same scale: for what takes less than a microsecond or two.
    pub fn exact_ns(&self) -> u64 {
        (self.exact_ns)(self)
    }

    /// Shows another time than the kernel's, which does not pass: the time of a simulation.
    pub fn set(&mut self, now_ms: u64, unix_seconds: u64) {
        let exact_ns = |clock: &Self| clock.now_us * 1000;
        *self = Self { now_us: now_ms * 1000, stamp: Stamp::at(unix_seconds), exact_ns };
    }

    /// Date and time of day.
    pub fn stamp(&self) -> &Stamp {
        &self.stamp
    }
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

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
    /// Microseconds from 1970 to the zero of `now_us`, as of the second that `stamp` shows.
    zero_us: u64,
    /// Reads the time at this moment, in nanoseconds.
    exact_ns: fn(&Self) -> u64,
}

impl Default for Clock {
    /// A clock that shows the current time.
    fn default() -> Self {
        let mut clock = Self { now_us: 0, stamp: Stamp::at(0), zero_us: 0, exact_ns: |_| monotonic_ns() };
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
            // The coarse clock is late by up to a tick of the kernel, 10 ms. One look right behind the other: between them, the
            // thread may be stopped.
            self.zero_us = (ns(ClockId::Realtime) / 1000).wrapping_sub(monotonic_ns() / 1000);
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
        let now_us = now_ms * 1000;
        let zero_us = (unix_seconds * 1_000_000).wrapping_sub(now_us);
        *self = Self { now_us, stamp: Stamp::at(unix_seconds), zero_us, exact_ns };
    }

    /// Milliseconds since 1970 at which [`exact_us`](Self::exact_us) was this.
    pub fn unix_ms_at(&self, exact_us: u64) -> u64 {
        self.zero_us.wrapping_add(exact_us) / 1000
    }

    /// Date and time of day.
    pub fn stamp(&self) -> &Stamp {
        &self.stamp
    }
}

fn monotonic_ns() -> u64 {
    ns(ClockId::Monotonic)
}

fn ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

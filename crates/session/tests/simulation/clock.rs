//! The time of the simulation on this thread.

use std::cell::Cell;

thread_local! {
    static NOW_US: Cell<u64> = const { Cell::new(0) };
}

pub(crate) fn set(now_ms: u64) {
    NOW_US.set(now_ms * 1000);
}

/// Microseconds, for what asks a precise clock.
pub(crate) fn now_us() -> u64 {
    NOW_US.get()
}

pub(crate) fn now_ms() -> u64 {
    now_us() / 1000
}

/// The date, in seconds since 1970.
pub(crate) fn unix_seconds() -> u64 {
    unix_seconds_at(now_ms())
}

/// The same at another time.
pub(crate) fn unix_seconds_at(now_ms: u64) -> u64 {
    START_UNIX_SECONDS + now_ms / 1000
}

/// The date at which the clock would show 0: behind that of every file.
const START_UNIX_SECONDS: u64 = 2_000_000_000;

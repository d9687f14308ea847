//! Moments of the calendar. Certificates expire by the wall clock, so the planner counts in its seconds.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// Seconds since 1970, UTC. Arithmetic stops at the ends of the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixTime(pub u64);

impl UnixTime {
    /// The moment that the wall clock shows as `time`.
    pub fn of(time: SystemTime) -> Self {
        Self(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
    }

    /// The time from `earlier` until this moment; zero if it is not earlier.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_secs(self.0.saturating_sub(earlier.0))
    }

    /// The moment that is `wait` later.
    pub fn plus(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(wait.as_secs()))
    }

    /// The moment that is `wait` earlier.
    pub fn minus(self, wait: Duration) -> Self {
        Self(self.0.saturating_sub(wait.as_secs()))
    }
}

impl From<UnixTime> for SystemTime {
    fn from(time: UnixTime) -> Self {
        // A certificate may say year 9999; anything later is as good as that.
        UNIX_EPOCH + Duration::from_secs(time.0.min(LATEST))
    }
}

/// The end of the year 9999, the last that X.509 can express (RFC 5280, 4.1.2.5).
const LATEST: u64 = 253_402_300_799;

//! The machine's time.

use std::time::{Duration, Instant};

/// Milliseconds since the process began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now_ms(self) -> u64 {
        self.0.elapsed().as_millis() as u64
    }

    /// How long until then; zero if it has been.
    pub(crate) fn until(self, at_ms: u64) -> Duration {
        // One more: a wait that ends within a millisecond before would end in vain.
        Duration::from_millis(at_ms).saturating_sub(self.0.elapsed())
    }
}

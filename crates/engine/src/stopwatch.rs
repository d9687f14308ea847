//! How long a loop is at work.

use std::time::{Duration, Instant};

/// Measures the time between [`start`](Self::start) and [`stop`](Self::stop).
#[derive(Debug, Default)]
pub(crate) struct Stopwatch {
    started: Option<Instant>,
    total: Duration,
}

impl Stopwatch {
    pub(crate) fn start(&mut self) {
        self.started = Some(Instant::now());
    }

    pub(crate) fn stop(&mut self) {
        if let Some(started) = self.started.take() {
            self.total += started.elapsed();
        }
    }

    pub(crate) fn total_us(&self) -> u64 {
        (self.total + self.started.map_or(Duration::ZERO, |started| started.elapsed())).as_micros() as u64
    }
}

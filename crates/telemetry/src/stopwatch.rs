//! How long a loop is at work.

use std::time::{Duration, Instant};

/// Measures the time between [`start`](Self::start) and [`stop`](Self::stop).
#[derive(Debug, Default)]
pub struct Stopwatch {
    started: Option<Instant>,
    total: Duration,
}

impl Stopwatch {
    /// Starts measuring.
    pub fn start(&mut self) {
        self.started = Some(Instant::now());
    }

    /// Stops measuring, if it has started.
    pub fn stop(&mut self) {
        if let Some(started) = self.started.take() {
            self.total += started.elapsed();
        }
    }

    /// All that was measured, in microseconds.
    pub fn total_us(&self) -> u64 {
        (self.total + self.started.map_or(Duration::ZERO, |started| started.elapsed())).as_micros() as u64
    }
}

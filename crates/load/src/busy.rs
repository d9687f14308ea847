//! How busy the generator was: a load that its generator limits says nothing about the server.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// The time of one thread: on the CPU, and without anything to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct BusyClock {
    start: Instant,
    cpu_start: Duration,
    idle: Duration,
}

impl BusyClock {
    pub(super) fn start() -> Self {
        Self { start: Instant::now(), cpu_start: thread_cpu(), idle: Duration::ZERO }
    }

    /// A look at the sockets, or a sleep, which showed nothing.
    pub(super) fn add_idle(&mut self, span: Duration) {
        self.idle += span;
    }

    /// CPU time since the start.
    pub(super) fn cpu(&self) -> Duration {
        thread_cpu().saturating_sub(self.cpu_start)
    }

    /// The share of the time in which there was something to do, 0 to 1. A thread that was kept from the CPU was busy.
    pub(super) fn share(&self, now: Instant) -> f64 {
        let elapsed = now.saturating_duration_since(self.start).as_secs_f64();
        if elapsed > 0.0 { 1.0 - (self.idle.as_secs_f64() / elapsed).min(1.0) } else { 0.0 }
    }
}

/// From this share on the generator, and not the server, may have been the limit.
pub(super) const BUSY_LIMIT: f64 = 0.95;

/// CPU time of this thread so far.
pub fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

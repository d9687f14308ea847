//! How long to wait before a process that ended is started again.

use std::time::Duration;

/// The wait before the next start: it doubles while processes die young.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    next: Duration,
}

impl Default for Backoff {
    /// A backoff without failures.
    fn default() -> Self {
        Self { next: Self::SHORTEST }
    }
}

impl Backoff {
    /// The wait after the first early end.
    const SHORTEST: Duration = Duration::from_millis(100);
    /// The longest wait: short enough to recover soon, long enough not to load the machine.
    const LONGEST: Duration = Duration::from_secs(10);
    /// A process that lived for this long did its work: the next wait is [`Self::SHORTEST`] again.
    const LONG_LIFE: Duration = Duration::from_secs(10);

    /// A process ended, or could not start (`lived` is zero then): returns the wait before the next one.
    pub(crate) fn after(&mut self, lived: Duration) -> Duration {
        if lived >= Self::LONG_LIFE {
            *self = Self::default();
        }
        let wait = self.next;
        self.next = (wait * 2).min(Self::LONGEST);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_while_processes_die_young() {
        let mut backoff = Backoff::default();
        let waits: Vec<u128> = (0..9).map(|_| backoff.after(Duration::ZERO).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
    }

    #[test]
    fn a_long_life_is_forgiven() {
        let mut backoff = Backoff::default();
        for _ in 0..5 {
            backoff.after(Duration::from_secs(9));
        }
        assert_eq!(backoff.after(Duration::from_secs(10)), Duration::from_millis(100));
        assert_eq!(backoff.after(Duration::ZERO), Duration::from_millis(200));
    }
}

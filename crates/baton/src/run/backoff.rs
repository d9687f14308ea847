//! How long a worker's place stays empty after it died.

use std::time::Duration;

/// The wait before the next worker is started in a place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    next: Duration,
}

impl Backoff {
    /// The wait after a death that nothing foretold.
    const SHORTEST: Duration = Duration::from_millis(100);
    /// The wait that doubling ends at: a server that cannot work must not keep its machine from working.
    const LONGEST: Duration = Duration::from_secs(10);
    /// A worker that lived for this long did its work; its death is not held against the next one.
    const LONG_LIFE: Duration = Duration::from_secs(10);

    /// For a place in which nobody has died yet.
    pub(crate) fn new() -> Self {
        Self { next: Self::SHORTEST }
    }

    /// A worker died after living for `lived`: the wait before the next one.
    pub(crate) fn after(&mut self, lived: Duration) -> Duration {
        if lived >= Self::LONG_LIFE {
            *self = Self::new();
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
    fn waits_double_while_workers_die_young() {
        let mut backoff = Backoff::new();
        let waits: Vec<u128> = (0..9).map(|_| backoff.after(Duration::ZERO).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
    }

    #[test]
    fn a_long_life_is_forgiven() {
        let mut backoff = Backoff::new();
        for _ in 0..5 {
            backoff.after(Duration::from_secs(9));
        }
        assert_eq!(backoff.after(Duration::from_secs(10)), Duration::from_millis(100));
        assert_eq!(backoff.after(Duration::ZERO), Duration::from_millis(200));
    }
}

//! When requests are due, if they are due at fixed times: an open loop over a bounded number of connections.

use std::time::{Duration, Instant};

/// The times at which requests are due, and the connections that wait for the next one.
///
/// A request that finds no connection free is taken late, by the next one that is; its latency counts from when it was
/// due. So a server that stops makes every request late that was due meanwhile, as with independent clients.
#[derive(Debug)]
pub(super) struct Pace {
    interval: Duration,
    /// When the next request is due; set by the first look.
    next: Option<Instant>,
    resting: Vec<usize>,
}

impl Pace {
    /// Requests at this rate; a rate that is not a positive number counts as one per second.
    pub(super) fn new(requests_per_second: f64) -> Self {
        let interval =
            Duration::try_from_secs_f64(requests_per_second.recip()).unwrap_or(Duration::from_secs(1));
        Self { interval, next: None, resting: Vec::new() }
    }

    /// Takes the next request if it is due, and says since when.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<Instant> {
        let due = *self.next.get_or_insert(now);
        (due <= now).then(|| {
            self.next = Some(due + self.interval);
            due
        })
    }

    /// This connection has nothing to do.
    pub(super) fn rest(&mut self, connection: usize) {
        self.resting.push(connection);
    }

    /// A connection for a request that is due, if there are both.
    pub(super) fn take_free(&mut self, now: Instant) -> Option<usize> {
        if self.next.is_some_and(|due| due <= now) { self.resting.pop() } else { None }
    }

    /// When the next request is due, if a connection waits for that.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.next.filter(|_| !self.resting.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_request_counts_from_when_it_was_due() {
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let mut pace = Pace::new(100.0);
        assert_eq!(pace.take_due(start), Some(start));
        assert_eq!(pace.take_due(after(9)), None);
        // No connection was free for 25 ms: both requests of that time are made late.
        assert_eq!(pace.take_due(after(25)), Some(after(10)));
        assert_eq!(pace.take_due(after(25)), Some(after(20)));
        assert_eq!(pace.take_due(after(25)), None);
    }

    #[test]
    fn a_connection_rests_until_a_request_is_due() {
        let start = Instant::now();
        let mut pace = Pace::new(100.0);
        assert_eq!(pace.take_due(start), Some(start));
        assert_eq!(pace.next_due(), None);
        pace.rest(7);
        assert_eq!(pace.take_free(start), None);
        assert_eq!(pace.next_due(), Some(start + Duration::from_millis(10)));
        assert_eq!(pace.take_free(start + Duration::from_millis(10)), Some(7));
        assert_eq!(pace.take_free(start + Duration::from_millis(10)), None);
    }
}

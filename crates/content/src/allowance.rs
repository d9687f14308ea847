//! So many bytes per second.

use std::sync::atomic::{AtomicU64, Ordering};

use baton_http::Stamp;

/// Bytes taken in the current second. Concurrent threads may take a little more than allowed.
#[derive(Debug, Default)]
pub(crate) struct Allowance {
    second: AtomicU64,
    taken: AtomicU64,
}

impl Allowance {
    /// Takes `bytes` if no more than `bytes_per_second` have been taken in this second.
    pub(crate) fn take(&self, bytes: u64, bytes_per_second: u64, now: &Stamp) -> bool {
        if self.second.swap(now.unix_seconds, Ordering::Relaxed) != now.unix_seconds {
            self.taken.store(0, Ordering::Relaxed);
        }
        let taken = self.taken.load(Ordering::Relaxed).saturating_add(bytes);
        let allowed = taken <= bytes_per_second;
        if allowed {
            self.taken.store(taken, Ordering::Relaxed);
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_has_its_own_allowance() {
        let allowance = Allowance::default();
        let (first, second) = (Stamp::at(1), Stamp::at(2));
        assert!(allowance.take(60, 100, &first));
        assert!(!allowance.take(60, 100, &first));
        assert!(allowance.take(40, 100, &first));
        assert!(!allowance.take(1, 100, &first));
        assert!(allowance.take(100, 100, &second));
    }
}

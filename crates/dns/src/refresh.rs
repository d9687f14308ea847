//! When a name is looked up again, and what counts meanwhile.
//!
//! The last good answer counts while no server answers. A name that the servers say is gone keeps its addresses for half a
//! minute, since an origin that restarts may be missing for some seconds; then it has none.

use std::net::IpAddr;
use std::sync::Arc;

use crate::{LookupError, Outcome};

/// The state of one name. Time is in milliseconds of any clock that does not go back.
#[derive(Clone, Debug)]
pub struct Refresh {
    addresses: Arc<[IpAddr]>,
    due_ms: u64,
    /// Lookups in a row that gave no address.
    failures: u32,
    absent_since_ms: Option<u64>,
}

/// What an operator should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The name has these addresses, and had others or none.
    Addresses(Arc<[IpAddr]>),
    /// Lookups fail from now on; `keeps`: the last answer counts.
    Failing {
        /// Why.
        error: LookupError,
        /// Whether there is a last answer.
        keeps: bool,
    },
    /// The name is gone; `keeps`: the last answer counts a little longer.
    Absent {
        /// Whether there is a last answer.
        keeps: bool,
    },
    /// Lookups work again, and the addresses are the same.
    Recovered,
}

impl Refresh {
    /// A name that was never looked up, and is due at once.
    pub fn new() -> Self {
        Self { addresses: Arc::default(), due_ms: 0, failures: 0, absent_since_ms: None }
    }

    /// The addresses that count.
    pub fn addresses(&self) -> &Arc<[IpAddr]> {
        &self.addresses
    }

    /// When it is due.
    pub fn due_ms(&self) -> u64 {
        self.due_ms
    }

    /// None of its addresses can be connected to: it may have others by now.
    pub fn hurry(&mut self, now_ms: u64) {
        // A second after the last lookup at the earliest: an origin that is down must not cost a question per request.
        self.due_ms = self.due_ms.min(now_ms.saturating_add(TTL_S_MIN * 1000));
    }

    /// A name was looked up. Returns what has changed.
    pub fn handle(&mut self, outcome: &Outcome, now_ms: u64) -> Option<Change> {
        let had_failed = self.failures > 0;
        let wait_s = match outcome {
            Outcome::Found { ttl_s, .. } => u64::from(*ttl_s).clamp(TTL_S_MIN, TTL_S_MAX),
            Outcome::Absent | Outcome::Failed(_) => (1 << self.failures.min(5)).min(RETRY_S_MAX),
        };
        self.due_ms = now_ms.saturating_add(wait_s * 1000);
        match outcome {
            Outcome::Found { addresses, .. } => {
                (self.failures, self.absent_since_ms) = (0, None);
                if !same(&self.addresses, addresses) {
                    self.addresses = addresses.as_slice().into();
                    return Some(Change::Addresses(Arc::clone(&self.addresses)));
                }
                had_failed.then_some(Change::Recovered)
            }
            Outcome::Absent => {
                self.failures = self.failures.saturating_add(1);
                let is_new = self.absent_since_ms.is_none();
                let since_ms = *self.absent_since_ms.get_or_insert(now_ms);
                if !self.addresses.is_empty() && now_ms.saturating_sub(since_ms) >= ABSENT_MS_MAX {
                    self.addresses = Arc::default();
                    return Some(Change::Absent { keeps: false });
                }
                is_new.then(|| Change::Absent { keeps: !self.addresses.is_empty() })
            }
            Outcome::Failed(error) => {
                self.failures = self.failures.saturating_add(1);
                let keeps = !self.addresses.is_empty();
                (!had_failed).then_some(Change::Failing { error: *error, keeps })
            }
        }
    }
}

impl Default for Refresh {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether the addresses are the same: servers turn them round from answer to answer.
fn same(one: &[IpAddr], other: &[IpAddr]) -> bool {
    one.len() == other.len() && one.iter().all(|address| other.contains(address))
}

/// The bounds of an answer's time: 0 would mean a question for each connection, and a day would outlive a move.
const TTL_S_MIN: u64 = 1;
const TTL_S_MAX: u64 = 3600;

/// The longest pause between two lookups that fail; it begins with a second and doubles.
const RETRY_S_MAX: u64 = 30;

/// How long addresses count of a name that is gone.
const ABSENT_MS_MAX: u64 = 30_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn found(lasts: &[u8], ttl_s: u32) -> Outcome {
        Outcome::Found { addresses: lasts.iter().map(|last| [192, 0, 2, *last].into()).collect(), ttl_s }
    }

    fn change(lasts: &[u8]) -> Option<Change> {
        Some(Change::Addresses(lasts.iter().map(|last| IpAddr::from([192, 0, 2, *last])).collect()))
    }

    #[test]
    fn answers_count_for_their_time_within_bounds() {
        let mut refresh = Refresh::new();
        assert_eq!((refresh.due_ms(), refresh.addresses().len()), (0, 0));
        for (ttl_s, due_s) in [(0, 1), (1, 1), (60, 60), (86_400, 3600), (u32::MAX, 3600)] {
            refresh.handle(&found(&[1], ttl_s), 5000);
            assert_eq!(refresh.due_ms(), 5000 + due_s * 1000, "{ttl_s}");
        }
        refresh.hurry(10_000);
        assert_eq!(refresh.due_ms(), 11_000);
        refresh.hurry(20_000);
        assert_eq!(refresh.due_ms(), 11_000, "it is due already");
    }

    #[test]
    fn changes_are_told_once() {
        let mut refresh = Refresh::new();
        assert_eq!(refresh.handle(&found(&[1, 2], 1), 0), change(&[1, 2]));
        assert_eq!(refresh.handle(&found(&[2, 1], 1), 0), None, "turned round");
        assert_eq!(refresh.handle(&found(&[2, 3], 1), 0), change(&[2, 3]));
        let failed = Outcome::Failed(LookupError::TimedOut);
        let told = Change::Failing { error: LookupError::TimedOut, keeps: true };
        assert_eq!(refresh.handle(&failed, 0), Some(told));
        assert_eq!(refresh.handle(&failed, 0), None);
        assert_eq!(refresh.handle(&found(&[2, 3], 1), 0), Some(Change::Recovered));
    }

    /// The last good answer counts while no server answers, for days.
    #[test]
    fn failures_keep_the_last_answer_and_are_repeated_ever_later() {
        let mut refresh = Refresh::new();
        refresh.handle(&found(&[1], 1), 0);
        let mut now_ms = 0;
        for wait_s in [1, 2, 4, 8, 16, 30, 30, 30] {
            refresh.handle(&Outcome::Failed(LookupError::Refused), now_ms);
            assert_eq!(refresh.due_ms(), now_ms + wait_s * 1000);
            now_ms = refresh.due_ms();
        }
        refresh.handle(&Outcome::Failed(LookupError::Refused), 86_400_000 * 7);
        assert_eq!(refresh.addresses().len(), 1);
    }

    #[test]
    fn a_name_that_is_gone_loses_its_addresses_after_a_while() {
        let mut refresh = Refresh::new();
        assert_eq!(refresh.handle(&Outcome::Absent, 0), Some(Change::Absent { keeps: false }));
        refresh.handle(&found(&[1], 1), 1000);
        assert_eq!(refresh.handle(&Outcome::Absent, 2000), Some(Change::Absent { keeps: true }));
        assert_eq!(refresh.handle(&Outcome::Absent, 31_999), None);
        assert_eq!(refresh.addresses().len(), 1);
        assert_eq!(refresh.handle(&Outcome::Absent, 32_000), Some(Change::Absent { keeps: false }));
        assert!(refresh.addresses().is_empty());
        assert_eq!(refresh.handle(&Outcome::Absent, 99_000), None);
        assert_eq!(refresh.handle(&found(&[1], 1), 99_000), change(&[1]));
    }
}

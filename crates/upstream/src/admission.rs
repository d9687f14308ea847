//! Limits how many bodies may be streamed to an application's processes at a time. Each may hold a process for as long as
//! its client takes, so some processes have to stay free.
//!
//! The server knows the number of processes that it has started. It learns the number of others: there are at least as many
//! as the open connections on which there was an answer, since each process has one connection at a time, or can handle
//! several.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// How many bodies may be streamed at a time. Clones count together.
#[derive(Clone, Debug)]
pub struct StreamedBodies {
    bound: Bound,
    shared: Arc<Shared>,
}

/// Permission to stream one body, until it is dropped.
#[derive(Debug)]
pub struct Admission(Arc<Shared>);

#[derive(Clone, Copy, Debug)]
enum Bound {
    Fixed(usize),
    Learned { sharers: usize, connections_max: usize },
}

#[derive(Debug, Default)]
struct Shared {
    now: AtomicUsize,
    seen: Mutex<Seen>,
}

/// The most processes seen at a time, forgotten after a while because there may be fewer later.
#[derive(Debug, Default)]
struct Seen {
    lately: usize,
    before: usize,
    since_ms: u64,
}

impl Default for StreamedBodies {
    /// None.
    fn default() -> Self {
        Self { bound: Bound::Fixed(0), shared: Arc::default() }
    }
}

impl StreamedBodies {
    /// The count of streamed bodies with another bound, for another route to the same processes.
    #[must_use]
    pub fn with_max(&self, max: usize) -> Self {
        Self { bound: Bound::Fixed(max), shared: Arc::clone(&self.shared) }
    }

    /// The count of streamed bodies, bounded by half of the learned number of processes, divided among `sharers`
    /// workers with up to `connections_max` connections each; 0 as long as nothing is known.
    #[must_use]
    pub fn with_learned_max(&self, sharers: usize, connections_max: usize) -> Self {
        let bound = Bound::Learned { sharers: sharers.max(1), connections_max };
        Self { bound, shared: Arc::clone(&self.shared) }
    }

    /// Whether there may be one more.
    pub fn admit(&self) -> Option<Admission> {
        let max = self.max();
        let one_more = |now| (now < max).then_some(now + 1);
        let admitted = self.shared.now.fetch_update(Relaxed, Relaxed, one_more);
        admitted.is_ok().then(|| Admission(Arc::clone(&self.shared)))
    }

    /// How many there may be at a time.
    fn max(&self) -> usize {
        match self.bound {
            Bound::Fixed(max) => max,
            Bound::Learned { sharers, connections_max } => {
                let seen = self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner);
                let known = seen.lately.max(seen.before);
                connections_max.min(known / sharers) / 2
            }
        }
    }

    /// Notes how many open connections had an answer: there are as many processes.
    pub(crate) fn note_seen(&self, processes: usize, now_ms: u64) {
        if matches!(self.bound, Bound::Fixed(_)) || processes < 2 {
            return;
        }
        let mut seen = self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let age_ms = now_ms.saturating_sub(seen.since_ms);
        if age_ms >= MEMORY_MS {
            let before = if age_ms < 2 * MEMORY_MS { seen.lately } else { 0 };
            *seen = Seen { lately: 0, before, since_ms: now_ms };
        }
        seen.lately = seen.lately.max(processes);
    }

    /// The application is gone. Its successor may have fewer processes.
    pub(crate) fn forget(&self) {
        *self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner) = Seen::default();
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Relaxed);
    }
}

/// How long the number of processes is remembered at least; at most twice as long.
const MEMORY_MS: u64 = 600_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// How many are admitted at a time.
    fn room(bodies: &StreamedBodies) -> usize {
        let admitted: Vec<_> = std::iter::from_fn(|| bodies.admit()).collect();
        admitted.len()
    }

    #[test]
    fn half_of_what_is_known_and_no_more_than_there_are_connections() {
        let bodies = StreamedBodies::default().with_learned_max(1, 8);
        assert_eq!(room(&bodies), 0, "nothing is known");
        for (seen, expected) in [(1, 0), (2, 1), (5, 2), (100, 4)] {
            bodies.note_seen(seen, 1);
            assert_eq!(room(&bodies), expected, "{seen}");
        }
        bodies.forget();
        bodies.note_seen(4, 1);
        assert_eq!(room(&bodies), 2);
        let shared = bodies.with_learned_max(2, 8);
        assert_eq!(room(&shared), 1, "another worker has the other half");
        let held = shared.admit();
        assert_eq!(room(&bodies), 1, "both count together");
        drop(held);
        bodies.forget();
        assert_eq!(room(&bodies), 0);
    }

    #[test]
    fn what_was_seen_long_ago_does_not_count() {
        let bodies = StreamedBodies::default().with_learned_max(1, 8);
        bodies.note_seen(8, MEMORY_MS);
        bodies.note_seen(4, 2 * MEMORY_MS);
        assert_eq!(room(&bodies), 4);
        bodies.note_seen(2, 3 * MEMORY_MS);
        assert_eq!(room(&bodies), 2);
        bodies.note_seen(2, 9 * MEMORY_MS);
        assert_eq!(room(&bodies), 1);
    }

    #[test]
    fn a_fixed_bound_is_not_changed_by_what_is_seen() {
        let bodies = StreamedBodies::default().with_max(1);
        bodies.note_seen(8, 1);
        assert_eq!(room(&bodies), 1);
    }
}

//! What is counted of an origin.

use std::sync::atomic::{AtomicU64, Ordering};

use baton_dispatch::{NodeId, Why};

use super::COUNT_WORDS;
use super::record::OriginRecord;
use crate::Way;

/// The reasons of failures that are counted, in the words of the log. `status`: a response whose status counts as a failure.
pub const FAILURE_LABELS: [&str; 13] = [
    "no-connection",
    "tls-failed",
    "queue-full",
    "tunnels-full",
    "queue-timeout",
    "connect-timed-out",
    "head-timed-out",
    "timed-out",
    "tunnel-idle",
    "ended-early",
    "bad-response",
    "drained",
    STATUS,
];

const STATUS: &str = "status";

/// The reasons for which nodes of the cluster are chosen, in the words of the log.
pub const CHOICE_LABELS: [&str; 13] = [
    Why::FirstAssignment.word(),
    Why::Mapped.word(),
    Why::Moved { from: NodeId(0) }.word(),
    Why::Replicated { nodes: 0 }.word(),
    Why::Shrunk { dropped: NodeId(0) }.word(),
    Why::RoundRobin.word(),
    Why::LeastLoaded.word(),
    Why::Lighter.word(),
    Why::Hashed.word(),
    Why::Overflow { from: NodeId(0) }.word(),
    Why::Cached.word(),
    Why::OldestCache.word(),
    RETRIED,
];

/// Another node has failed.
pub(crate) const RETRIED: &str = "retried";

const REQUESTS: usize = 0;
const IN_FLIGHT: usize = 1;
const RESPONSES: usize = 2;
const RESPONSE_MS: usize = 3;
const EJECTIONS: usize = 4;
const FAILURES: usize = 5;

const CHOICES: usize = FAILURES + FAILURE_LABELS.len();
const WAYS: usize = CHOICES + CHOICE_LABELS.len();

const _: () = assert!(WAYS + Way::ALL.len() <= COUNT_WORDS);

/// The counts of an origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OriginCounts {
    /// Requests that it was chosen for, those that went on to another origin included.
    pub requests: u64,
    /// Requests that it was chosen for that wait for a connection or are under way.
    pub in_flight: u64,
    /// Heads of responses.
    pub responses: u64,
    /// Milliseconds from the choice of the origin to the head of its response, summed up over all responses.
    pub response_ms: u64,
    /// How often it was ejected.
    pub ejections: u64,
    /// Failures by reason, in the order of [`FAILURE_LABELS`].
    pub failures: [u64; FAILURE_LABELS.len()],
    /// How often it was chosen as a node of the cluster, by reason, in the order of [`CHOICE_LABELS`].
    pub choices: [u64; CHOICE_LABELS.len()],
    /// Requests that got to it as a node, by their way, in the order of [`Way::ALL`].
    pub ways: [u64; Way::ALL.len()],
}

impl OriginCounts {
    /// Adds the counts of a worker.
    pub(super) fn add(&mut self, words: &[AtomicU64]) {
        let get = |word: usize| words[word].load(Ordering::Relaxed);
        self.requests = self.requests.wrapping_add(get(REQUESTS));
        self.in_flight = self.in_flight.wrapping_add(get(IN_FLIGHT));
        self.responses = self.responses.wrapping_add(get(RESPONSES));
        self.response_ms = self.response_ms.wrapping_add(get(RESPONSE_MS));
        self.ejections = self.ejections.wrapping_add(get(EJECTIONS));
        let add = |counts: &mut [u64], first: usize| {
            for (at, count) in counts.iter_mut().enumerate() {
                *count = count.wrapping_add(get(first + at));
            }
        };
        add(&mut self.failures, FAILURES);
        add(&mut self.choices, CHOICES);
        add(&mut self.ways, WAYS);
    }

    /// The worker has ended, and its requests with it.
    pub(super) fn reset_gauges(words: &[AtomicU64]) {
        words[IN_FLIGHT].store(0, Ordering::Relaxed);
    }
}

impl OriginRecord {
    /// Counts a response whose status is a failure.
    pub(crate) fn note_bad_status(&self) {
        self.note_failure(STATUS);
    }

    /// Counts an ejection.
    pub(crate) fn note_ejection(&self) {
        self.add(EJECTIONS, 1);
    }

    /// Counts a failure of a request for this reason.
    pub(crate) fn note_failure(&self, label: &str) {
        if let Some(at) = FAILURE_LABELS.iter().position(|known| *known == label) {
            self.add(FAILURES + at, 1);
        }
    }

    /// Counts a choice of the cluster.
    pub(crate) fn note_choice(&self, why: &str) {
        if let Some(at) = CHOICE_LABELS.iter().position(|known| *known == why) {
            self.add(CHOICES + at, 1);
        }
    }

    /// Counts a request that got to it as a node of the cluster. One that is relayed counts as a request elsewhere.
    pub(crate) fn note_way(&self, way: Way) {
        self.add(WAYS + way as usize, 1);
        if !way.is_through_gateway() {
            self.add(REQUESTS, 1);
        }
    }

    fn add(&self, word: usize, amount: u64) {
        self.counts.get()[word].fetch_add(amount, Ordering::Relaxed);
    }
}

/// A request at an origin, until it is dropped.
#[derive(Debug)]
pub(crate) struct AtOrigin {
    record: OriginRecord,
    begun_ms: u64,
    has_head: bool,
}

impl AtOrigin {
    pub(crate) fn begin(record: &OriginRecord, now_ms: u64) -> Self {
        record.add(REQUESTS, 1);
        record.add(IN_FLIGHT, 1);
        Self { record: record.clone(), begun_ms: now_ms, has_head: false }
    }

    /// A request that another process has counted, and whose response has begun.
    pub(crate) fn resume(record: &OriginRecord) -> Self {
        record.add(IN_FLIGHT, 1);
        Self { record: record.clone(), begun_ms: 0, has_head: true }
    }

    /// The head of the response is there; the first call counts.
    pub(crate) fn note_head(&mut self, now_ms: u64) {
        if !std::mem::replace(&mut self.has_head, true) {
            self.record.add(RESPONSES, 1);
            self.record.add(RESPONSE_MS, now_ms.saturating_sub(self.begun_ms));
        }
    }
}

impl Drop for AtOrigin {
    fn drop(&mut self) {
        self.record.add(IN_FLIGHT, 1_u64.wrapping_neg());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(record: &OriginRecord) -> OriginCounts {
        let mut counts = OriginCounts::default();
        counts.add(record.counts.get());
        counts
    }

    #[test]
    fn a_request_counts_until_it_is_dropped() {
        let record = OriginRecord::default();
        let mut first = AtOrigin::begin(&record, 100);
        let second = AtOrigin::begin(&record, 100);
        first.note_head(130);
        first.note_head(190);
        record.note_failure("ended-early");
        let seen = counts(&record);
        assert_eq!((seen.requests, seen.in_flight, seen.responses, seen.response_ms), (2, 2, 1, 30));
        assert_eq!(seen.failures.iter().sum::<u64>(), 1);
        drop((first, second));
        assert_eq!(counts(&record), OriginCounts { in_flight: 0, ..seen });
    }
}

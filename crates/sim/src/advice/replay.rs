//! A log as a stream of requests that is long enough for a cluster, with memory warm.
//!
//! A log of any length has first requests, and more of them the shorter it is. Whether a node that has run for long
//! would have those files in memory, the log does not tell. So each half of it is replayed in rounds, twice: with
//! targets that the other half lacks taken as known, which is the least that the site costs, and taken as new in each
//! round, which is the most.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use baton_dispatch::target_hash;

use crate::trace::{TargetFacts, TargetId, Trace, TraceRequest};

/// Requests per node that are measured at the least: thirty times as many as its connections, so that the beginning and
/// the end of a run matter little.
const REQUESTS_PER_NODE: usize = 2_000;

/// A half of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Half {
    First,
    Second,
}

/// How targets are taken that the other half does not request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unmatched {
    /// In memory at first, like others.
    Known,
    /// Never requested before: the first request in a round has to read the file.
    New,
}

/// A log to be replayed.
pub(super) struct Replay<'a> {
    log: &'a Trace,
    /// For each half the places of first requests for files that the other half does not have.
    first: [Vec<bool>; 2],
    made: Mutex<BTreeMap<(Half, Unmatched, usize), Arc<Trace>>>,
}

impl<'a> Replay<'a> {
    pub(super) fn new(log: &'a Trace) -> Self {
        let (first, second) = log.requests().split_at(log.requests().len() / 2);
        let first = [first_requests(log, first, second), first_requests(log, second, first)];
        Self { log, first, made: Mutex::default() }
    }

    /// The share of requests that are the first for files that only one half has.
    pub(super) fn first_share(&self) -> f64 {
        let count = self.first.iter().flatten().filter(|is_first| **is_first).count();
        count as f64 / self.log.requests().len().max(1) as f64
    }

    /// Rounds of a half for so many nodes: the first half of them warms the memory, the second is measured.
    pub(super) fn trace(&self, half: Half, unmatched: Unmatched, nodes: usize) -> Arc<Trace> {
        let rounds = (REQUESTS_PER_NODE * nodes).div_ceil(self.requests(half).len().max(1)).max(1);
        // Nothing panics with the lock held.
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let trace = made
            .entry((half, unmatched, rounds))
            .or_insert_with(|| Arc::new(self.make(half, unmatched, 2 * rounds)));
        Arc::clone(trace)
    }

    fn make(&self, half: Half, unmatched: Unmatched, rounds: usize) -> Trace {
        let (requests, first) = (self.requests(half), &self.first[half as usize]);
        let mut targets = self.log.targets().to_vec();
        let mut replayed = Vec::with_capacity(rounds * requests.len());
        for round in 0..rounds as u64 {
            for (request, is_first) in requests.iter().zip(first) {
                if *is_first && unmatched == Unmatched::New {
                    let known = targets[request.target() as usize];
                    let hash = target_hash(&[known.hash.to_le_bytes(), round.to_le_bytes()].concat());
                    replayed.push(TraceRequest::whole(targets.len() as TargetId));
                    targets.push(TargetFacts { hash, ..known });
                } else {
                    replayed.push(*request);
                }
            }
        }
        Trace::new(self.log.name.clone(), targets, replayed).with_past(self.log.requests().to_vec())
    }

    fn requests(&self, half: Half) -> &'a [TraceRequest] {
        let (first, second) = self.log.requests().split_at(self.log.requests().len() / 2);
        if half == Half::First { first } else { second }
    }
}

/// Which requests are the first for a file that `other` does not have.
fn first_requests(log: &Trace, requests: &[TraceRequest], other: &[TraceRequest]) -> Vec<bool> {
    let mut seen = vec![false; log.targets().len()];
    for request in other {
        seen[request.target() as usize] = true;
    }
    let is_first = |request: &TraceRequest| {
        let is_read = request.has_body() && !log.target(request.target()).dynamic;
        is_read && !std::mem::replace(&mut seen[request.target() as usize], true)
    };
    requests.iter().map(is_first).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> Trace {
        let file = |hash| TargetFacts { hash, bytes: 10 * hash, dynamic: false };
        let program = TargetFacts { dynamic: true, ..file(9) };
        // 0 is in both halves, 1 in the first, 2 and the program in the second.
        let requests = [0, 1, 1, 0, 2, 3, 2, 0].map(TraceRequest::whole).to_vec();
        Trace::new("t".into(), vec![file(1), file(2), file(3), program], requests)
    }

    #[test]
    fn targets_of_one_half_are_new_in_each_round() {
        let log = log();
        let replay = Replay::new(&log);
        assert_eq!(replay.first_share(), 2.0 / 8.0);
        let trace = replay.make(Half::Second, Unmatched::New, 2);
        let requests: Vec<_> = trace.requests().iter().map(|request| request.target()).collect();
        assert_eq!(requests, [4, 3, 2, 0, 5, 3, 2, 0]);
        assert_eq!((trace.target(4).bytes, trace.target(5).bytes), (30, 30));
        assert!(trace.target(4).hash != trace.target(5).hash && trace.target(4).hash != trace.target(2).hash);
        assert_eq!(trace.past(), log.requests());
        let known = replay.make(Half::First, Unmatched::Known, 1);
        assert_eq!(known.requests(), &log.requests()[..4]);
    }

    #[test]
    fn short_logs_are_replayed_until_the_cluster_is_busy() {
        let log = log();
        let replay = Replay::new(&log);
        for (nodes, expected) in [(1, 4_000), (3, 12_000)] {
            assert_eq!(replay.trace(Half::First, Unmatched::New, nodes).requests().len(), expected);
        }
    }
}

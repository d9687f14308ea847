//! What the cluster is asked for: a stream of requests for targets whose sizes are known.
//!
//! ```text
//!   access logs ──► access_log ──► log_reader ─┐
//!   published statistics ──► synthetic ────────┼──► Trace ──► simulator
//!   Zipf parameters ──► zipf ──────────────────┘      └─────► Statistics
//! ```

mod access_log;
mod hot;
mod log_reader;
mod popularity;
mod published;
mod statistics;
mod synthetic;
mod zipf;

pub use access_log::{BadLine, LogEntry, Method, parse_line};
pub use hot::{HotTargets, with_hot_targets};
pub use log_reader::{FirstBad, LeftOut, LogError, LogReader, LogSummary};
pub use published::{CHESS, IBM, Published, RICE};
pub use statistics::{Coverage, Statistics};
pub use synthetic::{Fit, FitPoint, synthesize};
pub use zipf::{Zipf, ZipfError};

/// An index into [`Trace::targets`].
pub type TargetId = u32;

/// A target: what a URL path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetFacts {
    /// What the front-end sees of the path, [`baton_dispatch::target_hash`].
    pub hash: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Made by an application for each request: costs computing time, is never read from a disk nor cached.
    pub dynamic: bool,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request(u32);

impl Request {
    /// The most targets that a trace may have.
    pub const TARGETS_MAX: u32 = Self::WITHOUT_BODY;
    const WITHOUT_BODY: u32 = 1 << 31;

    /// A request that is answered with the whole target.
    #[must_use]
    pub fn whole(target: TargetId) -> Self {
        debug_assert!(target < Self::TARGETS_MAX);
        Self(target)
    }

    /// A request that is answered with a head alone: `304 Not Modified`, or `HEAD`.
    #[must_use]
    pub fn head_only(target: TargetId) -> Self {
        debug_assert!(target < Self::TARGETS_MAX);
        Self(target | Self::WITHOUT_BODY)
    }

    /// What is asked for.
    #[must_use]
    pub fn target(self) -> TargetId {
        self.0 & !Self::WITHOUT_BODY
    }

    /// Whether the target's bytes are sent.
    #[must_use]
    pub fn has_body(self) -> bool {
        self.0 & Self::WITHOUT_BODY == 0
    }
}

/// A stream of requests.
#[derive(Clone, Debug)]
pub struct Trace {
    /// What to call it in figures.
    pub name: String,
    targets: Vec<TargetFacts>,
    requests: Vec<Request>,
    /// For each target its place by falling number of requests, from 0.
    ranks: Vec<u32>,
}

impl Trace {
    /// A trace of these requests, in their order.
    ///
    /// # Panics
    /// If a request names a target that is not there.
    #[must_use]
    pub fn new(name: String, targets: Vec<TargetFacts>, requests: Vec<Request>) -> Self {
        let counts = count(&targets, &requests);
        let mut by_count: Vec<TargetId> = (0..counts.len() as u32).collect();
        by_count.sort_by_key(|&id| (std::cmp::Reverse(counts[id as usize]), id));
        let mut ranks = vec![0; counts.len()];
        for (rank, &id) in by_count.iter().enumerate() {
            ranks[id as usize] = rank as u32;
        }
        Self { name, targets, requests, ranks }
    }

    /// All targets.
    #[must_use]
    pub fn targets(&self) -> &[TargetFacts] {
        &self.targets
    }

    /// A target's facts.
    #[must_use]
    pub fn target(&self, id: TargetId) -> &TargetFacts {
        &self.targets[id as usize]
    }

    /// All requests, in order.
    #[must_use]
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// A target's place among all by falling number of requests, from 0.
    #[must_use]
    pub fn rank(&self, id: TargetId) -> u32 {
        self.ranks[id as usize]
    }

    /// How often each target is asked for.
    #[must_use]
    pub fn counts(&self) -> Vec<u64> {
        count(&self.targets, &self.requests)
    }

    /// The first `requests` requests of this trace.
    #[must_use]
    pub fn prefix(&self, requests: usize) -> Self {
        let requests = self.requests[..requests.min(self.requests.len())].to_vec();
        Self::new(self.name.clone(), self.targets.clone(), requests)
    }
}

fn count(targets: &[TargetFacts], requests: &[Request]) -> Vec<u64> {
    let mut counts = vec![0; targets.len()];
    for request in requests {
        counts[request.target() as usize] += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_follow_the_number_of_requests() {
        let target = |hash| TargetFacts { hash, bytes: 1, dynamic: false };
        let requests = [2, 1, 2, 0, 2, 0].map(Request::whole).to_vec();
        let trace = Trace::new("t".into(), vec![target(7), target(8), target(9)], requests);
        assert_eq!([0, 1, 2].map(|id| trace.rank(id)), [1, 2, 0]);
        assert_eq!(trace.prefix(2).rank(0), 2, "not asked for in the prefix");
    }

    #[test]
    fn a_request_keeps_its_target_with_and_without_a_body() {
        let last = Request::TARGETS_MAX - 1;
        for (request, has_body) in [(Request::whole(last), true), (Request::head_only(last), false)] {
            assert_eq!((request.target(), request.has_body()), (last, has_body));
        }
    }
}

//! How concentrated the requests of a trace are: what memory could save.

use serde::Serialize;

use super::Trace;

/// Statistics of a trace.
#[derive(Clone, Debug, Serialize)]
pub struct Statistics {
    /// Number of requests.
    pub requests: u64,
    /// Requests for targets that applications make.
    pub dynamic_requests: u64,
    /// Number of requested targets.
    pub targets: u64,
    /// The sum of their sizes, in bytes; those that applications make do not count.
    pub bytes: u64,
    /// Bytes that all requests get.
    pub bytes_sent: u64,
    /// The share of the most frequent target in the requests.
    pub hottest_share: f64,
    /// How many bytes of the most frequent files cover which share of the requests for files.
    pub coverage: Vec<Coverage>,
}

/// A point of the coverage curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Coverage {
    /// The share of requests, 0 to 1.
    pub share: f64,
    /// Bytes of the most frequent files that cover it.
    pub bytes: u64,
}

/// The shares at which coverage is reported: the published ones, and some below.
const SHARES: [f64; 7] = [0.5, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99];

impl Statistics {
    /// Counts a trace.
    #[must_use]
    pub fn of(trace: &Trace) -> Self {
        let counts = trace.counts();
        let asked = || trace.targets().iter().zip(&counts).filter(|(_, count)| **count > 0);
        let requests = trace.requests().len() as u64;
        let dynamic_requests: u64 =
            asked().filter(|(target, _)| target.dynamic).map(|(_, count)| count).sum();
        let sent = trace.requests().iter().filter(|request| request.has_body());

        let mut by_rank: Vec<u32> = (0..counts.len() as u32).collect();
        by_rank.sort_by_key(|&id| trace.rank(id));
        let files = by_rank.into_iter().filter(|&id| !trace.target(id).dynamic);
        let (mut covered, mut bytes) = (0, 0);
        let mut curve = files.map(|id| {
            covered += counts[id as usize];
            bytes += trace.target(id).bytes;
            (covered as f64 / (requests - dynamic_requests) as f64, bytes)
        });
        let mut point = (0.0, 0);
        let coverage = SHARES.iter().filter_map(|&share| {
            while point.0 < share {
                point = curve.next()?;
            }
            Some(Coverage { share, bytes: point.1 })
        });

        Self {
            requests,
            dynamic_requests,
            targets: asked().count() as u64,
            coverage: coverage.collect(),
            bytes: asked().filter(|(target, _)| !target.dynamic).map(|(target, _)| target.bytes).sum(),
            bytes_sent: sent.map(|request| trace.target(request.target()).bytes).sum(),
            hottest_share: counts.iter().max().map_or(0.0, |most| *most as f64 / requests.max(1) as f64),
        }
    }

    /// Bytes of the most frequent files that cover a share of `SHARES`, if the trace has requests for files.
    #[must_use]
    pub fn bytes_covering(&self, share: f64) -> Option<u64> {
        self.coverage.iter().find(|point| point.share >= share).map(|point| point.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{TargetFacts, TraceRequest};
    use super::*;

    /// Ten requests: six for a file of 1 byte, three for one of 10 bytes, one for one of 100; and one for a program.
    #[test]
    fn coverage_counts_bytes_of_the_most_frequent_files() {
        let file = |bytes| TargetFacts { hash: bytes, bytes, dynamic: false };
        let program = TargetFacts { hash: 0, bytes: 1 << 30, dynamic: true };
        let requests = [2, 0, 0, 0, 0, 0, 0, 1, 1, 1, 3].map(TraceRequest::whole).to_vec();
        let trace = Trace::new("t".into(), vec![file(1), file(10), file(100), program], requests);
        let statistics = Statistics::of(&trace);
        let bytes: Vec<u64> = statistics.coverage.iter().map(|point| point.bytes).collect();
        assert_eq!(bytes, [1, 11, 11, 111, 111, 111, 111]);
        assert_eq!((statistics.requests, statistics.dynamic_requests, statistics.targets), (11, 1, 4));
        assert_eq!((statistics.bytes, statistics.bytes_sent), (111, 6 + 30 + 100 + (1 << 30)));
        assert_eq!(statistics.bytes_covering(0.9), Some(11));
    }

    #[test]
    fn a_trace_without_files_covers_nothing() {
        let trace = Trace::new("t".into(), Vec::new(), Vec::new());
        assert_eq!(Statistics::of(&trace).coverage, []);
    }
}

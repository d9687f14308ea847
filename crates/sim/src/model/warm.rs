//! Memory that requests before the run have filled.
//!
//! Each node begins with what it would hold if it had answered all of them. Under a policy that spreads requests
//! evenly, a node sees the same mixture as the whole cluster, so that this is what its memory tends to; under one that
//! looks at targets, the files of other nodes go as soon as room is needed.

use super::cache::Cache;
use super::simulation::Simulation;

/// Files that all nodes together begin with: some gigabytes of this process. With more, each node begins with the most
/// valuable ones.
const FILES_MAX: usize = 16_000_000;

impl Simulation<'_> {
    /// Fills the memory of all nodes.
    pub(crate) fn warm(&mut self) {
        if self.trace.past().is_empty() {
            return;
        }
        let files_max = FILES_MAX / self.nodes.len().max(1);
        // Nodes of the same size begin with the same.
        let mut filled: Vec<(u64, Cache)> = Vec::new();
        for node in 0..self.nodes.len() {
            let capacity_bytes = self.nodes[node].cache.capacity_bytes();
            let known = filled.iter().position(|(bytes, _)| *bytes == capacity_bytes);
            let at = known.unwrap_or_else(|| {
                let mut cache = self.nodes[node].cache.clone();
                self.answer_past(&mut cache);
                cache.keep_files(files_max);
                filled.push((capacity_bytes, cache));
                filled.len() - 1
            });
            self.nodes[node].cache = filled[at].1.clone();
        }
    }

    fn answer_past(&self, cache: &mut Cache) {
        for (now_ns, request) in (0..).zip(self.trace.past()) {
            let (id, target) = (request.target(), self.trace.target(request.target()));
            let is_read = request.has_body() && !target.dynamic && target.bytes > 0;
            if is_read && !cache.touch(id, now_ns) {
                cache.insert(id, target.bytes, now_ns, |_| ());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use baton_dispatch::PolicyName;

    use crate::model::{Scenario, simulate};
    use crate::trace::{TargetFacts, Trace, TraceRequest};

    /// Files that were requested before are in the memory of every node; those that do not fit are the oldest ones.
    #[test]
    fn nodes_begin_with_what_the_past_left() {
        let scenario = Scenario::published(PolicyName::Wrr, 2);
        let file = |hash| TargetFacts { hash, bytes: 1 << 20, dynamic: false };
        let trace = |past: Vec<TraceRequest>| {
            let requests = [0, 1, 2, 0, 1, 2].map(TraceRequest::whole).to_vec();
            Trace::new("t".into(), (0..40).map(file).collect(), requests).with_past(past)
        };
        let missed = |past: &[u32]| {
            simulate(&scenario, &trace(past.iter().copied().map(TraceRequest::whole).collect()), &mut |_| ())
                .miss_ratio
        };
        assert_eq!(missed(&[0, 1, 2]), 0.0);
        assert_eq!(missed(&[]), 1.0);
        let many: Vec<u32> = (0..40).collect();
        assert_eq!(missed(&many), 1.0, "32 MiB hold the last ones");
        let many: Vec<u32> = (0..40).rev().collect();
        assert_eq!(missed(&many), 0.0);
        assert_eq!(missed(&[0, 0, 1]), 2.0 / 6.0);
    }
}

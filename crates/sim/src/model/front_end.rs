//! Front-ends: requests wait here, and leave when a policy names their node.

use std::collections::VecDeque;

use baton_dispatch::{
    CacheOrder, Cluster, Decision, HandOffSeen, NodeId, Policy, PolicySettings, Prices, Target, Thresholds,
    WayChoice,
};

#[cfg(test)]
use baton_dispatch::admission_limit;

use super::Replacement;
use super::scenario::{NodeChange, Scenario, Sharing, Way};
use crate::trace::TraceRequest;

/// A request that has arrived and has no node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) request: TraceRequest,
    /// When it arrived, in nanoseconds; none if it arrives at the moment of its admission.
    pub(crate) arrived_ns: Option<u64>,
}

/// One front-end's own part.
#[derive(Debug, Default)]
pub(crate) struct FrontEnd {
    pub(crate) queue: VecDeque<Waiting>,
    /// The end of its current work, in nanoseconds.
    pub(crate) busy_until_ns: u64,
    pub(crate) worked_ns: u64,
    ways: WayChoice,
}

/// All front-ends, with shared or separate knowledge.
pub(crate) struct FrontEnds {
    pub(crate) each: Vec<FrontEnd>,
    /// One policy for all, or one for each.
    policies: Vec<Box<dyn Policy + Send>>,
    /// One picture of the nodes for all, or one for each.
    clusters: Vec<Cluster>,
    cost_ns: u64,
    way: Option<Way>,
}

/// What it costs to get a request to its node.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GettingThere {
    pub(crate) front_end_ns: u64,
    pub(crate) node_ns: u64,
}

impl FrontEnds {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let count = scenario.front_ends.count.max(1);
        let (policies, clusters) = match scenario.front_ends.sharing {
            Sharing::Nothing => (count, count),
            Sharing::Loads => (count, 1),
            Sharing::Everything => (1, 1),
        };
        let settings = PolicySettings {
            // A front-end that counts only its own connections has a part of a node's weight, but all of its memory:
            // files that the node reads for others serve all.
            node_cache_bytes: scenario.profile.cache_bytes * clusters as u64,
            node_cache_order: match scenario.profile.replacement {
                Replacement::Gds => CacheOrder::Gds,
                Replacement::Lru => CacheOrder::Lru,
            },
            seed: scenario.settings.seed ^ scenario.seed,
            ..scenario.settings.clone()
        };
        let weights: Vec<u32> = scenario.weights.iter().map(|&weight| share_of(weight, clusters)).collect();
        let policy = |number: u64| {
            let settings = PolicySettings { seed: settings.seed.wrapping_add(number), ..settings.clone() };
            scenario.policy.build_bounded(&settings)
        };
        let mut front_ends = Self {
            each: (0..count).map(|_| FrontEnd::default()).collect(),
            policies: (0..policies as u64).map(policy).collect(),
            clusters: vec![Cluster::of(&weights, scenario.slow_start_us); clusters],
            cost_ns: (scenario.front_ends.cost_us * 1000.0) as u64,
            way: scenario.front_ends.way,
        };
        front_ends.tell_membership(0);
        front_ends
    }

    /// Asks the policy of a front-end.
    pub(crate) fn choose(&mut self, front_end: usize, target: Target, now_us: u64) -> Decision {
        let cluster = &self.clusters[front_end % self.clusters.len()];
        let policies = self.policies.len();
        self.policies[front_end % policies].choose(target, cluster, now_us)
    }

    /// What it costs to get a request to its node and its answer, of so many bytes, to the client.
    pub(crate) fn get_there(&mut self, front_end: usize, target: u64, bytes: u64) -> GettingThere {
        let ways = &mut self.each[front_end].ways;
        let prices = Prices::GUESSED;
        let hands_over = match self.way {
            None => return GettingThere { front_end_ns: self.cost_ns, node_ns: 0 },
            Some(Way::Relay) => false,
            Some(Way::HandOff) => true,
            Some(Way::Auto) => ways.choose(target, 0, HandOffSeen::default()),
        };
        let (front_end_ns, node_ns) = match hands_over {
            true => (prices.hand_off_ns() - prices.node_ns(), prices.node_ns()),
            false => {
                ways.note_size(target, bytes);
                (prices.relay_ns(bytes), 0.0)
            }
        };
        GettingThere { front_end_ns: self.cost_ns + front_end_ns as u64, node_ns: node_ns as u64 }
    }

    /// The nodes as a front-end sees them, and each node as well.
    pub(crate) fn cluster(&self, front_end: usize) -> &Cluster {
        &self.clusters[front_end % self.clusters.len()]
    }

    pub(crate) fn begin(&mut self, front_end: usize, node: NodeId) {
        let clusters = self.clusters.len();
        self.clusters[front_end % clusters].begin(node);
    }

    /// A connection ended without an answer.
    pub(crate) fn end(&mut self, front_end: usize, node: NodeId) {
        let clusters = self.clusters.len();
        self.clusters[front_end % clusters].end(node);
    }

    /// A connection ended with an answer.
    pub(crate) fn complete(&mut self, front_end: usize, node: NodeId, answer: &Completion, now_us: u64) {
        self.end(front_end, node);
        let policies = self.policies.len();
        let policy = &mut self.policies[front_end % policies];
        policy.completed(answer.target, node, answer.bytes, answer.service_us, now_us);
    }

    pub(crate) fn handle_change(&mut self, change: NodeChange, now_us: u64) {
        let clusters = self.clusters.len();
        for cluster in &mut self.clusters {
            match change {
                NodeChange::Fail(node) => cluster.fail(NodeId(node)),
                NodeChange::Recover(node) => cluster.recover(NodeId(node), now_us),
                NodeChange::Drain(node) => cluster.drain(NodeId(node)),
                NodeChange::Join(weight) => {
                    cluster.join(share_of(weight, clusters), now_us);
                }
                NodeChange::LosePart { .. } | NodeChange::RegainParts(_) => {}
            }
        }
        self.tell_membership(now_us);
    }

    /// When the next step of a slow start is due, in microseconds.
    pub(crate) fn poll_timeout(&self) -> Option<u64> {
        self.clusters.iter().filter_map(Cluster::poll_timeout).min()
    }

    pub(crate) fn handle_timeout(&mut self, now_us: u64) {
        self.clusters.iter_mut().for_each(|cluster| cluster.handle_timeout(now_us));
        self.tell_membership(now_us);
    }

    fn tell_membership(&mut self, now_us: u64) {
        let clusters = self.clusters.len();
        for (number, policy) in self.policies.iter_mut().enumerate() {
            policy.handle_membership(&self.clusters[number % clusters], now_us);
        }
    }

    /// The thresholds of the first front-end.
    pub(crate) fn thresholds(&self) -> Option<Thresholds> {
        Some(self.policies.first()?.fit()?.thresholds)
    }

    /// A node's connections as the front-ends count them.
    #[cfg(test)]
    pub(crate) fn believed_load(&self, node: NodeId) -> u32 {
        self.clusters.iter().map(|cluster| cluster.load(node)).sum()
    }

    /// Connections in the cluster, and how many may be there, for all front-ends that count together.
    #[cfg(test)]
    pub(crate) fn admitted(&self) -> Vec<(u64, u64)> {
        let limits = self.clusters.iter().zip(&self.policies);
        let bound = |policy: &(dyn Policy + Send), cluster| {
            policy.fit().map_or(u64::MAX, |fit| admission_limit(fit.thresholds, cluster))
        };
        limits.map(|(cluster, policy)| (cluster.total_load(), bound(&**policy, cluster))).collect()
    }
}

/// A completed request, as reported to a policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    pub(crate) target: Target,
    pub(crate) bytes: u64,
    pub(crate) service_us: u64,
}

/// A node's weight for one of several front-ends that see only their own connections, so that their limits together
/// are those of one front-end.
fn share_of(weight: u32, front_ends: usize) -> u32 {
    (weight / front_ends as u32).max(1)
}

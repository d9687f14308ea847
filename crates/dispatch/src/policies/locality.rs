//! LB: a hash partitions the name space, without regard to loads (Pai, 1999, section 3.1.3).

use crate::policies::draw::draw;
use crate::{Cluster, Decision, NodeId, Policy, Target, Time};

/// `hash mod n` over the serving nodes, each counted as often as its weight says.
///
/// When a node joins or leaves, nearly every target changes its node; consistent hashing avoids that.
#[derive(Default)]
pub(crate) struct LocalityBased {
    /// The serving nodes, each with the end of its part of `0..total`.
    parts: Vec<(u64, NodeId)>,
    total: u64,
}

impl Policy for LocalityBased {
    fn choose(&mut self, target: Target, cluster: &Cluster, _: Time) -> Decision {
        if self.total == 0 {
            return Decision::no_node();
        }
        draw(target, cluster, |hash| self.node_of(hash))
    }

    fn handle_membership(&mut self, cluster: &Cluster, _: Time) {
        let weights = || cluster.serving().iter().map(|&node| u64::from(cluster.weight(node)));
        // Equal weights become parts of one, so that the partition is the published `hash mod n`.
        let unit = weights().fold(0, greatest_common_divisor).max(1);
        self.parts.clear();
        self.total = 0;
        for (&node, weight) in cluster.serving().iter().zip(weights()) {
            self.total += weight / unit;
            self.parts.push((self.total, node));
        }
    }
}

impl LocalityBased {
    fn node_of(&self, hash: u64) -> NodeId {
        let place = hash % self.total;
        self.parts[self.parts.partition_point(|&(end, _)| end <= place)].1
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

//! Consistent hashing: when a node comes or goes, only its own targets move. Ignores loads.

use crate::policies::ring::Ring;
use crate::{Cluster, Decision, Policy, PolicySettings, Target, Time, Why};

/// The first node on the ring, from the hash of the target on, that takes the target.
pub(crate) struct ConsistentHash {
    ring: Ring,
}

impl ConsistentHash {
    pub(crate) const fn new(settings: &PolicySettings) -> Self {
        Self { ring: Ring::new(settings) }
    }
}

impl Policy for ConsistentHash {
    fn choose(&mut self, target: Target, cluster: &Cluster, _: Time) -> Decision {
        let mut nodes = self.ring.nodes_from(target.hash);
        let Some(named) = nodes.next() else { return Decision::no_node() };
        if cluster.takes(named, target.hash) {
            return Decision::to(named, Why::Hashed);
        }
        match nodes.find(|&node| cluster.takes(node, target.hash)) {
            Some(node) => Decision::to(node, Why::Overflow { from: named }),
            // No node takes it: all that serve have just started.
            None if cluster.is_serving(named) => Decision::to(named, Why::Hashed),
            None => Decision::no_node(),
        }
    }

    fn handle_membership(&mut self, cluster: &Cluster, _: Time) {
        self.ring.rebuild(cluster);
    }
}

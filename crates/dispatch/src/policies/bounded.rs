//! Consistent hashing with bounded loads (Mirrokni, Thorup, Zadimoghaddam, 2018): what HAProxy and Envoy offer.

use crate::policies::ring::Ring;
use crate::{Cluster, Decision, Policy, PolicySettings, Target, Time, Why};

/// The first node on the ring, from the hash of the target on, whose load stays within a bound: a factor of the mean
/// load, this request included, for the node's capacity.
pub(crate) struct BoundedHash {
    ring: Ring,
    factor: f32,
}

impl BoundedHash {
    pub(crate) fn new(settings: &PolicySettings) -> Self {
        Self { ring: Ring::new(settings), factor: settings.bound() }
    }
}

impl Policy for BoundedHash {
    fn choose(&mut self, target: Target, cluster: &Cluster, _: Time) -> Decision {
        let mut nodes = self.ring.nodes_from(target.hash);
        let Some(named) = nodes.next() else { return Decision::no_node() };
        let load = cluster.total_load() as f32 + 1.0;
        // Rounded up for each node: at one request in all, every node may have one.
        let pressure_max = self.factor * load / cluster.total_capacity();
        let has_room = |node| {
            let connections_max = (pressure_max * cluster.capacity(node)).ceil();
            cluster.load(node) as f32 + 1.0 <= connections_max && cluster.takes(node, target.hash)
        };
        if has_room(named) {
            return Decision::to(named, Why::Hashed);
        }
        // Some node is within its share of the mean, but in slow start it may not take this target.
        match nodes.find(|&node| has_room(node)).or_else(|| cluster.least_loaded(named)) {
            Some(node) => Decision::to(node, Why::Overflow { from: named }),
            None => Decision::no_node(),
        }
    }

    fn handle_membership(&mut self, cluster: &Cluster, _: Time) {
        self.ring.rebuild(cluster);
    }
}

//! LARD/H: locality-aware distribution with homes.

use crate::mapping::Mapping;
use crate::node_set::{NodeSet, Replicas};
use crate::policies::lard::Thresholds;
use crate::policies::ring::Ring;
use crate::{Cluster, Decision, NodeId, Policy, PolicySettings, Target, Time, Why};

/// Homes by hash.
pub(crate) struct LardHome {
    ring: Ring,
    sets: Mapping<ServerSet>,
    replicas: Replicas,
    thresholds: Thresholds,
    quiet_us: u64,
}

#[derive(Clone, Copy)]
struct ServerSet {
    nodes: NodeSet,
    last_change: Time,
}

impl LardHome {
    pub(crate) fn new(settings: &PolicySettings) -> Self {
        Self {
            ring: Ring::new(settings),
            sets: Mapping::new(settings.mappings_max, settings.seed),
            replicas: Replicas::new(settings.replicas_max),
            thresholds: Thresholds::new(settings),
            quiet_us: settings.quiet_us,
        }
    }

    /// The first node of the target's own order that is not overloaded; if all are, the lightest.
    fn home(&self, target: Target, cluster: &Cluster) -> Option<NodeId> {
        let mut nodes = self.ring.nodes_from(target.hash);
        nodes
            .find(|&node| cluster.takes(node, target.hash) && !self.thresholds.is_imbalanced(cluster, node))
            .or_else(|| cluster.least_loaded(NodeId::default()))
    }

    fn assign(&mut self, target: Target, cluster: &Cluster, now: Time) -> Decision {
        let Some(node) = self.home(target, cluster) else { return Decision::nobody() };
        if self.sets.is_full()
            && let Some(forgotten) = self.sets.forget_oldest(0)
        {
            self.replicas.release(forgotten.nodes);
        }
        self.sets.insert(target.hash, 0, ServerSet { nodes: NodeSet::of(node), last_change: now });
        Decision::to(node, Why::FirstAssignment)
    }
}

impl Policy for LardHome {
    fn name(&self) -> &'static str {
        "lard-h"
    }

    fn choose(&mut self, target: Target, cluster: &Cluster, now: Time) -> Decision {
        let Some(set) = self.sets.get(target.hash) else { return self.assign(target, cluster, now) };
        let Some(least) = self.replicas.least_loaded(&set.nodes, cluster) else {
            if let Some(lost) = self.sets.forget(target.hash) {
                self.replicas.release(lost.nodes);
            }
            return self.assign(target, cluster, now);
        };
        let _ = self.quiet_us;
        set.last_change = set.last_change.max(now);
        Decision::to(least, Why::Mapped)
    }

    fn handle_membership(&mut self, cluster: &Cluster, _: Time) {
        self.ring.rebuild(cluster);
    }
}

//! LARD/R: a set of nodes for each target, grown under imbalance, shrunk when quiet (Pai, 1999, figure 3.3). And LARD/H,
//! our own: the same, with homes.

use crate::mapping::Mapping;
use crate::node_set::{NodeSet, Replicas};
use crate::policies::rendezvous::preferred;
use crate::{Cluster, Decision, NodeId, Policy, PolicySettings, Target, Thresholds, Time, Why};

/// Locality-aware request distribution with replication. Meant to be used under [`crate::Admission`].
///
/// Prose and pseudo-code of the source differ; this is the pseudo-code. A set remembers when it changed, and does so at
/// the end: imbalance on a set that has been quiet both adds and removes a node, so the target moves; on a set that
/// changed recently it only adds one, so the target replicates.
///
/// LARD/H differs in one rule. A new target goes to its *home*, the first node in an order of its own (rendezvous
/// hashing) that is not overloaded. LARD/R gives it to the node with the fewest connections. Front-ends agree on
/// homes without communication, so a target is cached once, not once for each front-end.
pub(crate) struct LardReplicated {
    sets: Mapping<ServerSet>,
    replicas: Replicas,
    thresholds: Thresholds,
    quiet_us: u64,
    /// Where the search for a lightly loaded node starts, for round robin among equals.
    next: NodeId,
    /// Whether new targets go to their homes: LARD/H.
    has_homes: bool,
}

#[derive(Clone, Copy)]
struct ServerSet {
    nodes: NodeSet,
    last_change: Time,
}

impl LardReplicated {
    pub(crate) fn new(settings: &PolicySettings) -> Self {
        Self::of(settings, false)
    }

    /// LARD/H.
    pub(crate) fn with_homes(settings: &PolicySettings) -> Self {
        Self::of(settings, true)
    }

    fn of(settings: &PolicySettings, has_homes: bool) -> Self {
        Self {
            sets: Mapping::new(settings.mappings_max, settings.seed),
            replicas: Replicas::new(settings.replicas_max),
            thresholds: settings.thresholds(),
            quiet_us: settings.quiet_us,
            next: NodeId::default(),
            has_homes,
        }
    }

    /// The node for a new target: the first in its order of preference that one more connection does not overload.
    fn home(&self, target: Target, cluster: &Cluster) -> Option<NodeId> {
        let pressure_max = self.thresholds.pressure_max(cluster);
        preferred(target.hash, cluster, |node| cluster.pressure_with_one_more(node) <= pressure_max)
    }

    fn assign(&mut self, target: Target, cluster: &Cluster, now: Time) -> Decision {
        let home = if self.has_homes { self.home(target, cluster) } else { None };
        let Some(node) = home.or_else(|| cluster.least_loaded(self.next)) else { return Decision::no_node() };
        self.next = node.following();
        if self.sets.is_full()
            && let Some(forgotten) = self.sets.forget_oldest()
        {
            self.replicas.release(forgotten.nodes);
        }
        self.sets.insert(target.hash, ServerSet { nodes: NodeSet::of(node), last_change: now });
        Decision::to(node, Why::FirstAssignment)
    }
}

impl Policy for LardReplicated {
    fn choose(&mut self, target: Target, cluster: &Cluster, now: Time) -> Decision {
        let Some(set) = self.sets.get(target.hash) else { return self.assign(target, cluster, now) };
        let replicas = &mut self.replicas;
        let Some(least) = replicas.least_loaded(&set.nodes, cluster) else {
            // Every node of the target is gone: it is as if it had never been assigned (section 3.1.6).
            if let Some(lost) = self.sets.forget(target.hash) {
                self.replicas.release(lost.nodes);
            }
            return self.assign(target, cluster, now);
        };
        let mut decision = Decision::to(least, Why::Mapped);
        if self.thresholds.is_imbalanced(cluster, least)
            && let Some(added) = cluster.least_loaded(self.next)
            && replicas.nodes(&set.nodes).all(|known| known != added)
            && replicas.add(&mut set.nodes, added)
        {
            self.next = added.following();
            decision = Decision::to(added, Why::Replicated { nodes: set.nodes.len() });
        }
        if set.nodes.len() > 1
            && now.saturating_sub(set.last_change) > self.quiet_us
            && let chosen = decision.node.unwrap_or(least)
            && let Some(dropped) = replicas.most_loaded(&set.nodes, cluster, chosen)
        {
            replicas.remove(&mut set.nodes, dropped);
            decision.why = match decision.why {
                Why::Replicated { .. } => Why::Moved { from: dropped },
                _ => Why::Shrunk { dropped },
            };
        }
        if decision.why != Why::Mapped {
            set.last_change = now;
        }
        decision
    }

    fn handle_membership(&mut self, _: &Cluster, _: Time) {
        // Nothing to do: nodes that are gone are passed over, and leave the sets as these shrink.
    }

    fn handle_thresholds(&mut self, thresholds: Thresholds) {
        self.thresholds = thresholds;
    }
}

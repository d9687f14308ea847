//! LB/GC: the front-end mirrors the cache of every node (Pai, 1999, section 3.3): an ideal to measure others against.

use crate::policies::mirror::{Mirror, UNKNOWN_BYTES};
use crate::{Cluster, Decision, NodeId, Policy, PolicySettings, Target, Time, Why};

/// A target goes to the node that has it in memory; otherwise to a node with room for it, or to the one with the
/// globally oldest target, which is then evicted.
///
/// The mirror is as exact as its sizes, from hints or answers. A target of unknown size counts as a mean one until it
/// was served once.
pub(crate) struct LocalityGlobalCache {
    mirror: Mirror,
    node_cache_bytes: u64,
}

impl LocalityGlobalCache {
    pub(crate) fn new(settings: &PolicySettings) -> Self {
        Self {
            mirror: Mirror::new(settings.mappings_max, settings.node_cache_order, settings.seed),
            node_cache_bytes: settings.node_cache_bytes,
        }
    }
}

impl Policy for LocalityGlobalCache {
    fn choose(&mut self, target: Target, cluster: &Cluster, _: Time) -> Decision {
        match self.mirror.use_target(target.hash) {
            Some(node) if cluster.is_serving(node) => return Decision::to(node, Why::Cached),
            Some(gone) => self.mirror.clear(gone),
            None => {}
        }
        let bytes = target.bytes_hint.unwrap_or(UNKNOWN_BYTES);
        // Caches of nodes that do not serve have no size, and are empty.
        let place = self.mirror.emptiest_with_room(bytes).or_else(|| self.mirror.globally_oldest());
        let Some(node) =
            place.filter(|&node| cluster.is_serving(node)).or_else(|| cluster.serving().first().copied())
        else {
            return Decision::no_node();
        };
        if !target.dynamic {
            self.mirror.insert(target.hash, node, bytes);
        }
        Decision::to(node, Why::OldestCache)
    }

    fn completed(&mut self, target: Target, node: NodeId, bytes: u64, _: u64, _: Time) {
        if target.bytes_hint.is_none() {
            // It may exceed the memory of the node until the next eviction there.
            self.mirror.resize(target.hash, node, bytes);
        }
    }

    fn handle_membership(&mut self, cluster: &Cluster, _: Time) {
        self.mirror.handle_membership(cluster, self.node_cache_bytes);
    }
}

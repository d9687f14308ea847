//! LB/GC: the front-end mirrors the cache of every node (Pai, 1999, section 3.3): an ideal to measure others against.

mod mirror;

use mirror::Mirror;

use crate::{Cluster, Decision, NodeId, Policy, PolicySettings, STANDARD_WEIGHT, Target, Time, Why};

/// A target goes to the node that has it in memory. One that nobody has goes to a node with room for it, or else to the one
/// that holds the globally oldest target, which it thereby evicts.
///
/// The mirror is as good as the sizes that it is told: those of hints, or of answers. A target of unknown size is taken
/// for [`UNKNOWN_BYTES`] until it was served once.
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

    /// The memory of a node: that of a standard node times its full weight, for starting slowly does not shrink it.
    fn cache_bytes(&self, cluster: &Cluster, node: NodeId) -> u64 {
        self.node_cache_bytes * u64::from(cluster.weight(node)) / u64::from(STANDARD_WEIGHT)
    }

    /// The emptiest node for its size where the target fits, or else the one that holds the oldest target.
    fn place(&mut self, cluster: &Cluster, bytes: u64) -> Option<NodeId> {
        let fits = |node: NodeId| self.mirror.used_bytes(node) + bytes <= self.cache_bytes(cluster, node);
        let filled =
            |node: NodeId| self.mirror.used_bytes(node) as f64 / self.cache_bytes(cluster, node) as f64;
        let with_room = cluster.serving().iter().copied().filter(|&node| fits(node));
        let emptiest = with_room.min_by(|&a, &b| filled(a).total_cmp(&filled(b)));
        // Caches of nodes that do not serve are empty: the oldest target is at one that does.
        emptiest.or_else(|| self.mirror.globally_oldest()).or_else(|| cluster.serving().first().copied())
    }
}

impl Policy for LocalityGlobalCache {
    fn name(&self) -> &'static str {
        "lb-gc"
    }

    fn choose(&mut self, target: Target, cluster: &Cluster, _: Time) -> Decision {
        match self.mirror.use_target(target.hash) {
            Some(node) if cluster.is_serving(node) => return Decision::to(node, Why::Cached),
            Some(gone) => self.mirror.clear(gone),
            None => {}
        }
        let bytes = target.bytes_hint.unwrap_or(UNKNOWN_BYTES);
        let Some(node) = self.place(cluster, bytes) else { return Decision::nobody() };
        let cache_bytes = self.cache_bytes(cluster, node);
        if bytes <= cache_bytes && !target.dynamic {
            while self.mirror.used_bytes(node) + bytes > cache_bytes && self.mirror.evict(node) {}
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
        self.mirror.grow(cluster.len());
        // What a node had in memory is gone with it.
        for node in cluster.nodes().filter(|&node| !cluster.is_serving(node)) {
            self.mirror.clear(node);
        }
    }
}

/// About the mean answer of the Rice trace (Pai, 1999, section 2.4.4: 17 KB).
const UNKNOWN_BYTES: u64 = 17 << 10;

//! LB/GC: the front-end mirrors the cache of every node (Pai, 1999, section 3.3): an ideal to measure others against.

use crate::mapping::Mapping;
use crate::{Cluster, Decision, NodeId, Policy, PolicySettings, Target, Time, Why};

/// A target goes to the node that has it in memory. One that nobody has goes to a node with room for it, or else to the
/// node that holds the globally oldest target, which it thereby evicts.
///
/// The mirror evicts by last use. It is as good as the sizes that it is told: those of answers, or hints. A target of
/// unknown size is taken for [`UNKNOWN_BYTES`] until it was served once.
pub(crate) struct LocalityGlobalCache {
    /// Cached targets, in a list for each node.
    cached: Mapping<Cached>,
    /// Bytes that each node has in memory.
    used: Vec<u64>,
    node_cache_bytes: u64,
    /// Grows with every use: tells what is older across lists.
    uses: u64,
}

#[derive(Clone, Copy)]
struct Cached {
    node: NodeId,
    bytes: u64,
    last_use: u64,
}

impl LocalityGlobalCache {
    pub(crate) fn new(settings: &PolicySettings) -> Self {
        Self {
            cached: Mapping::new(settings.mappings_max, settings.seed),
            used: Vec::new(),
            node_cache_bytes: settings.node_cache_bytes,
            uses: 0,
        }
    }

    /// The memory of a node: that of a standard node times its full weight, for starting slowly does not shrink it.
    fn cache_bytes(&self, cluster: &Cluster, node: NodeId) -> u64 {
        self.node_cache_bytes * u64::from(cluster.weight(node)) / u64::from(crate::STANDARD_WEIGHT)
    }

    /// The node with the most room if the target fits there, else the one that holds the oldest target.
    fn place(&self, cluster: &Cluster, bytes: u64) -> Option<NodeId> {
        let known = || cluster.serving().iter().copied().filter(|node| node.index() < self.used.len());
        let room = |node: NodeId| self.cache_bytes(cluster, node).saturating_sub(self.used[node.index()]);
        // Of equal ones the first: `max_by_key` would take the last.
        let roomiest = known().min_by_key(|&node| std::cmp::Reverse(room(node)))?;
        if room(roomiest) >= bytes {
            return Some(roomiest);
        }
        known().min_by_key(|&node| self.cached.oldest(node.0).map_or(u64::MAX, |cached| cached.last_use))
    }

    fn evict_oldest(&mut self, node: NodeId) -> bool {
        let evicted = self.cached.forget_oldest(node.0);
        if let Some(cached) = evicted {
            self.used[node.index()] -= cached.bytes;
        }
        evicted.is_some()
    }

    fn cache(&mut self, cluster: &Cluster, target: u64, node: NodeId, bytes: u64) {
        let cache_bytes = self.cache_bytes(cluster, node);
        if bytes > cache_bytes {
            return;
        }
        while self.used[node.index()] + bytes > cache_bytes && self.evict_oldest(node) {}
        if self.cached.is_full() {
            let of_all =
                |&node: &NodeId| self.cached.oldest(node.0).map_or(u64::MAX, |cached| cached.last_use);
            if let Some(oldest) = cluster.nodes().min_by_key(of_all) {
                self.evict_oldest(oldest);
            }
        }
        self.used[node.index()] += bytes;
        self.cached.insert(target, node.0, Cached { node, bytes, last_use: self.uses });
    }
}

impl Policy for LocalityGlobalCache {
    fn name(&self) -> &'static str {
        "lb-gc"
    }

    fn choose(&mut self, target: Target, cluster: &Cluster, _: Time) -> Decision {
        self.uses += 1;
        if let Some(cached) = self.cached.get(target.hash)
            && cluster.is_serving(cached.node)
        {
            cached.last_use = self.uses;
            return Decision::to(cached.node, Why::Cached);
        }
        if let Some(lost) = self.cached.forget(target.hash) {
            self.used[lost.node.index()] -= lost.bytes;
        }
        let bytes = target.bytes_hint.unwrap_or(UNKNOWN_BYTES);
        let Some(node) = self.place(cluster, bytes) else { return Decision::nobody() };
        if !target.dynamic {
            self.cache(cluster, target.hash, node, bytes);
        }
        Decision::to(node, Why::OldestCache)
    }

    fn completed(&mut self, target: Target, node: NodeId, bytes: u64, _: u64, _: Time) {
        // Correct a guess; it may exceed the node's memory until the next eviction there.
        if target.bytes_hint.is_none()
            && let Some(cached) = self.cached.get(target.hash)
            && cached.node == node
        {
            let used = &mut self.used[node.index()];
            *used = *used - cached.bytes + bytes;
            cached.bytes = bytes;
        }
    }

    fn handle_membership(&mut self, cluster: &Cluster, _: Time) {
        self.used.resize(cluster.len(), 0);
        self.cached.grow_lists(cluster.len());
        // What a node had in memory is gone with it.
        for node in cluster.nodes().filter(|&node| !cluster.is_serving(node)) {
            while self.evict_oldest(node) {}
        }
    }
}

/// About the mean answer of the Rice trace (Pai, 1999, section 2.4.4: 17 KB).
const UNKNOWN_BYTES: u64 = 17 << 10;

//! A front-end's model of the nodes' caches.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hashbrown::HashTable;

use crate::hash::pair;
use crate::{CacheOrder, Cluster, NodeId, STANDARD_WEIGHT};

/// The caches of all nodes, each with its assumed order of eviction.
///
/// A target is in one cache at most, since only one node gets its requests.
pub(crate) struct Mirror {
    index: HashTable<u32>,
    slots: Vec<Cached>,
    free: Vec<u32>,
    /// What each cache holds and can hold, and the value of its next eviction or less. Apart from the caches, for scans of
    /// all nodes.
    used_bytes: Vec<u64>,
    bytes_max: Vec<u64>,
    oldest_at_least: Vec<u64>,
    caches: Vec<Cache>,
    targets_max: usize,
    order: CacheOrder,
    uses: u64,
    seed: u64,
}

#[derive(Clone, Copy)]
struct Cached {
    target: u64,
    node: NodeId,
    bytes: u64,
    /// The target of the smallest value is evicted first. While a target is cached its value only grows.
    value: u64,
}

/// The cache of one node.
#[derive(Default)]
struct Cache {
    /// Each target once, with a value that it had some time: it may have grown since, and is corrected at the top.
    next: BinaryHeap<Reverse<(u64, u32)>>,
    /// The value of the last eviction: what makes unused targets old under Greedy-Dual-Size.
    age: f64,
}

impl Mirror {
    pub(crate) fn new(targets_max: usize, order: CacheOrder, seed: u64) -> Self {
        let targets_max = targets_max.clamp(1, u32::MAX as usize);
        Self {
            index: HashTable::with_capacity(targets_max),
            slots: Vec::with_capacity(targets_max),
            free: Vec::with_capacity(targets_max),
            used_bytes: Vec::new(),
            bytes_max: Vec::new(),
            oldest_at_least: Vec::new(),
            caches: Vec::new(),
            targets_max,
            order,
            uses: 0,
            seed,
        }
    }

    /// Nodes came or went: a standard node has a cache of so many bytes, one that does not serve has none.
    ///
    /// A node has memory by its full weight: starting slowly does not shrink it.
    pub(crate) fn handle_membership(&mut self, cluster: &Cluster, standard_bytes: u64) {
        self.bytes_max.clear();
        self.bytes_max.extend(cluster.nodes().map(|node| match cluster.is_serving(node) {
            true => standard_bytes * u64::from(cluster.weight(node)) / u64::from(STANDARD_WEIGHT),
            false => 0,
        }));
        let nodes = self.bytes_max.len();
        self.used_bytes.resize(nodes, 0);
        self.oldest_at_least.resize(nodes, NOTHING);
        self.caches.resize_with(nodes, Cache::default);
        for at in 0..nodes {
            if self.bytes_max[at] == 0 {
                self.clear(NodeId(at as u32));
            }
        }
    }

    /// The emptiest cache for its size that has room for so many bytes.
    pub(crate) fn emptiest_with_room(&self, bytes: u64) -> Option<NodeId> {
        let sizes = self.used_bytes.iter().zip(&self.bytes_max).enumerate();
        let with_room = sizes.filter(|&(_, (used, max))| used.saturating_add(bytes) <= *max);
        let filled = with_room.map(|(at, (used, max))| (*used as f64 / *max as f64, at));
        filled.min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, at)| NodeId(at as u32))
    }

    /// The node that has a target in memory, which is used by this.
    pub(crate) fn use_target(&mut self, target: u64) -> Option<NodeId> {
        let at = self.find(target)? as usize;
        let Cached { node, bytes, .. } = self.slots[at];
        self.slots[at].value = self.value_of_use(node, bytes);
        Some(node)
    }

    /// Inserts a target that no cache has into a node's, evicting others for it. Does nothing if it is larger than
    /// the cache.
    pub(crate) fn insert(&mut self, target: u64, node: NodeId, bytes: u64) {
        let Some(&bytes_max) = self.bytes_max.get(node.index()).filter(|&&max| bytes <= max) else { return };
        while self.used_bytes[node.index()] + bytes > bytes_max && self.evict(node) {}
        if self.index.len() == self.targets_max
            && let Some(oldest) = self.globally_oldest()
        {
            self.evict(oldest);
        }
        let value = self.value_of_use(node, bytes);
        let cached = Cached { target, node, bytes, value };
        let at = match self.free.pop() {
            Some(at) => {
                self.slots[at as usize] = cached;
                at
            }
            None => {
                self.slots.push(cached);
                (self.slots.len() - 1) as u32
            }
        };
        self.used_bytes[node.index()] += bytes;
        self.caches[node.index()].next.push(Reverse((value, at)));
        let oldest = &mut self.oldest_at_least[node.index()];
        *oldest = value.min(*oldest);
        let (slots, seed) = (&self.slots, self.seed);
        self.index.insert_unique(pair(target, seed), at, |&at| pair(slots[at as usize].target, seed));
    }

    /// Corrects the size of a target, if this node has it.
    pub(crate) fn resize(&mut self, target: u64, node: NodeId, bytes: u64) {
        let Some(at) = self.find(target) else { return };
        let cached = &mut self.slots[at as usize];
        if cached.node == node {
            let used_bytes = &mut self.used_bytes[node.index()];
            *used_bytes = *used_bytes - cached.bytes + bytes;
            cached.bytes = bytes;
        }
    }

    /// The node whose next eviction is the oldest of all.
    pub(crate) fn globally_oldest(&mut self) -> Option<NodeId> {
        loop {
            let bounds = self.oldest_at_least.iter().zip(0..);
            let (&at_least, at) = bounds.min().filter(|&(&at_least, _)| at_least != NOTHING)?;
            // Values only grow: if this one is unchanged, none can be smaller.
            if self.settle(NodeId(at)) == at_least {
                return Some(NodeId(at));
            }
        }
    }

    /// Empties the cache of a node.
    pub(crate) fn clear(&mut self, node: NodeId) {
        while self.evict(node) {}
        if let Some(cache) = self.caches.get_mut(node.index()) {
            cache.age = 0.0;
        }
    }

    /// Evicts the next target of a node. False if there is none.
    fn evict(&mut self, node: NodeId) -> bool {
        let value = self.settle(node);
        let Some(Reverse((_, at))) = self.caches.get_mut(node.index()).and_then(|cache| cache.next.pop())
        else {
            return false;
        };
        let Cached { target, bytes, .. } = self.slots[at as usize];
        self.used_bytes[node.index()] -= bytes;
        let cache = &mut self.caches[node.index()];
        cache.age = f64::from_bits(value);
        self.oldest_at_least[node.index()] = cache.next.peek().map_or(NOTHING, |Reverse((value, _))| *value);
        if let Ok(entry) = self.index.find_entry(pair(target, self.seed), |&other| other == at) {
            entry.remove();
        }
        self.free.push(at);
        true
    }

    /// Brings the next target to be evicted from a node to the top, and returns its value.
    fn settle(&mut self, node: NodeId) -> u64 {
        let Some(cache) = self.caches.get_mut(node.index()) else { return NOTHING };
        let oldest = loop {
            let Some(mut top) = cache.next.peek_mut() else { break NOTHING };
            let Reverse((value, at)) = *top;
            let current = self.slots[at as usize].value;
            if current == value {
                break value;
            }
            *top = Reverse((current, at));
        };
        self.oldest_at_least[node.index()] = oldest;
        oldest
    }

    fn value_of_use(&mut self, node: NodeId, bytes: u64) -> u64 {
        match self.order {
            CacheOrder::Lru => {
                self.uses += 1;
                self.uses
            }
            CacheOrder::Gds => {
                let age = self.caches.get(node.index()).map_or(0.0, |cache| cache.age);
                // The bits of positive numbers are ordered as the numbers are.
                (age + (bytes.max(1) as f64).recip()).to_bits()
            }
        }
    }

    fn find(&self, target: u64) -> Option<u32> {
        self.index.find(pair(target, self.seed), |&at| self.slots[at as usize].target == target).copied()
    }
}

/// The assumed size of unknown targets: about the mean answer of the Rice trace (Pai, 1999, section 2.4.4: 17 KB).
pub(crate) const UNKNOWN_BYTES: u64 = 17 << 10;
/// The value of an eviction from an empty cache: later than all others.
const NOTHING: u64 = u64::MAX;

//! What a front-end believes to be in the caches of the nodes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hashbrown::HashTable;

use crate::hash::pair;
use crate::{CacheOrder, NodeId};

/// The caches of all nodes, each with the order of eviction that the nodes are believed to follow.
///
/// A target is in one cache at most: the front-end sends nobody else for it.
pub(super) struct Mirror {
    index: HashTable<u32>,
    slots: Vec<Cached>,
    free: Vec<u32>,
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
    used_bytes: u64,
    /// Each target once, with a value that it had some time: it may have grown since, and is corrected at the top.
    next: BinaryHeap<Reverse<(u64, u32)>>,
    /// The value of the last eviction: what makes unused targets old under Greedy-Dual-Size.
    age: f64,
}

impl Mirror {
    pub(super) fn new(targets_max: usize, order: CacheOrder, seed: u64) -> Self {
        let targets_max = targets_max.clamp(1, u32::MAX as usize);
        Self {
            index: HashTable::with_capacity(targets_max),
            slots: Vec::with_capacity(targets_max),
            free: Vec::with_capacity(targets_max),
            caches: Vec::new(),
            targets_max,
            order,
            uses: 0,
            seed,
        }
    }

    /// Sees to it that there are caches for so many nodes.
    pub(super) fn grow(&mut self, nodes: usize) {
        self.caches.resize_with(nodes.max(self.caches.len()), Cache::default);
    }

    pub(super) fn used_bytes(&self, node: NodeId) -> u64 {
        self.caches.get(node.index()).map_or(0, |cache| cache.used_bytes)
    }

    /// The node that has a target in memory, which is used by this.
    pub(super) fn use_target(&mut self, target: u64) -> Option<NodeId> {
        let at = self.find(target)? as usize;
        let Cached { node, bytes, .. } = self.slots[at];
        self.slots[at].value = self.value_of_use(node, bytes);
        Some(node)
    }

    /// Puts a target that no cache has into that of a node.
    pub(super) fn insert(&mut self, target: u64, node: NodeId, bytes: u64) {
        if self.index.len() == self.targets_max
            && let Some(oldest) = self.globally_oldest()
        {
            self.evict(oldest);
        }
        let value = self.value_of_use(node, bytes);
        let Some(cache) = self.caches.get_mut(node.index()) else { return };
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
        cache.used_bytes += bytes;
        cache.next.push(Reverse((value, at)));
        let (slots, seed) = (&self.slots, self.seed);
        self.index.insert_unique(pair(target, seed), at, |&at| pair(slots[at as usize].target, seed));
    }

    /// Corrects the size of a target, if this node has it.
    pub(super) fn resize(&mut self, target: u64, node: NodeId, bytes: u64) {
        let Some(at) = self.find(target) else { return };
        let cached = &mut self.slots[at as usize];
        if cached.node == node {
            let used_bytes = &mut self.caches[node.index()].used_bytes;
            *used_bytes = *used_bytes - cached.bytes + bytes;
            cached.bytes = bytes;
        }
    }

    /// The node whose next eviction is the oldest of all.
    pub(super) fn globally_oldest(&mut self) -> Option<NodeId> {
        let nodes = (0..self.caches.len() as u32).map(NodeId);
        let oldest = nodes.filter_map(|node| self.oldest(node).map(|value| (value, node))).min();
        oldest.map(|(_, node)| node)
    }

    /// Evicts the next target of a node. False if there is none.
    pub(super) fn evict(&mut self, node: NodeId) -> bool {
        let Some(value) = self.oldest(node) else { return false };
        let cache = &mut self.caches[node.index()];
        let Some(Reverse((_, at))) = cache.next.pop() else { return false };
        let Cached { target, bytes, .. } = self.slots[at as usize];
        cache.used_bytes -= bytes;
        cache.age = f64::from_bits(value);
        if let Ok(entry) = self.index.find_entry(pair(target, self.seed), |&other| other == at) {
            entry.remove();
        }
        self.free.push(at);
        true
    }

    /// Empties the cache of a node.
    pub(super) fn clear(&mut self, node: NodeId) {
        while self.evict(node) {}
        if let Some(cache) = self.caches.get_mut(node.index()) {
            cache.age = 0.0;
        }
    }

    /// The value of the next target to be evicted from a node.
    fn oldest(&mut self, node: NodeId) -> Option<u64> {
        let cache = self.caches.get_mut(node.index())?;
        loop {
            let mut top = cache.next.peek_mut()?;
            let Reverse((value, at)) = *top;
            let current = self.slots[at as usize].value;
            if current == value {
                return Some(value);
            }
            *top = Reverse((current, at));
        }
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

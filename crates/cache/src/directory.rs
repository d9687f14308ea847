//! What is stored and fetched for which URI, and which requests share it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_segment::rules::{Key, RouteRules, VARIANTS_MAX};
use foldhash::fast::RandomState;

use crate::Ask;
use crate::fill::Fill;
use crate::object::Object;

/// All URIs, in parts with a lock each.
#[derive(Debug)]
pub(crate) struct Directory {
    shards: Vec<Mutex<Shard>>,
    /// Most entries of a shard that only remember what cannot be stored.
    marks_max: usize,
}

type Shard = HashMap<u64, Entry, RandomState>;

/// What there is for one URI.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    partition: Arc<str>,
    /// Responses, for different requests.
    pub(crate) variants: Vec<Arc<Object>>,
    /// Fetches whose heads have not come.
    pub(crate) asking: Vec<Arc<Fill>>,
    /// Until when responses are taken for ones that cannot be shared: nothing waits for them.
    pub(crate) passes_until_s: u64,
    /// When it was last asked for before any client did.
    pub(crate) prefetched_s: u64,
}

impl Entry {
    fn new(key: Key, partition: Arc<str>) -> Self {
        Self { key, partition, variants: Vec::new(), asking: Vec::new(), passes_until_s: 0, prefetched_s: 0 }
    }

    fn is_of(&self, key: &Key, partition: &str) -> bool {
        self.key == *key && *self.partition == *partition
    }

    /// Whether it only remembers how responses were when they were asked for.
    fn is_mark(&self) -> bool {
        self.variants.is_empty() && self.asking.is_empty()
    }

    fn is_empty(&self) -> bool {
        self.is_mark() && self.passes_until_s == 0 && self.prefetched_s == 0
    }

    /// Adds a response in the place of the one that answers the same requests, or of the oldest if there are too many.
    pub(crate) fn insert(&mut self, object: Arc<Object>) {
        self.variants.retain(|other| other.stored.variant() != object.stored.variant());
        if self.variants.len() >= VARIANTS_MAX {
            let age = |object: &Arc<Object>| object.stored.freshness().date_s();
            if let Some(oldest) = (0..self.variants.len()).min_by_key(|at| age(&self.variants[*at])) {
                self.variants.swap_remove(oldest);
            }
        }
        self.variants.push(object);
    }

    /// Judges what was found on the disk by the rules of its route, as soon as those are known.
    pub(crate) fn judge(&mut self, rules: &RouteRules) {
        for object in &mut self.variants {
            if let Some(judged) = object.judged(rules) {
                *object = Arc::new(judged);
            }
        }
    }

    /// Replaces a response, unless it has been replaced meanwhile.
    pub(crate) fn replace(&mut self, old: &Arc<Object>, new: Arc<Object>) {
        if let Some(at) = self.variants.iter().position(|other| Arc::ptr_eq(&other.content, &old.content)) {
            self.variants.remove(at);
            self.insert(new);
        }
    }
}

impl Directory {
    pub(crate) fn new(objects_max: usize) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Self { shards, marks_max: objects_max.div_ceil(SHARDS).max(MARKS_LEAST) }
    }

    /// Looks at what there is for a URI, if there is anything.
    pub(crate) fn with_known<R>(
        &self,
        (key, hash): (&Key, u64),
        partition: &str,
        look: impl FnOnce(Option<&mut Entry>) -> R,
    ) -> R {
        look(self.shard(hash).get_mut(&hash).filter(|entry| entry.is_of(key, partition)))
    }

    /// Changes what there is for the URI of a request. `None`: another URI has its place, which happens once in 2^64.
    pub(crate) fn with<R>(&self, ask: &Ask, change: impl FnOnce(&mut Entry) -> R) -> Option<R> {
        let mut shard = self.shard(ask.hash);
        let entry = shard
            .entry(ask.hash)
            .or_insert_with(|| Entry::new(ask.key.clone(), Arc::clone(&ask.route.partition)));
        if !entry.is_of(&ask.key, &ask.route.partition) {
            return None;
        }
        let changed = change(entry);
        if entry.is_empty() || entry.is_mark() && shard.len() > self.marks_max {
            shard.remove(&ask.hash);
        }
        Some(changed)
    }

    /// Adds a response that the store has found, unless a newer one has its place. Returns whether it did.
    pub(crate) fn recover(&self, hash: u64, key: &Key, partition: &Arc<str>, object: Arc<Object>) -> bool {
        let mut shard = self.shard(hash);
        let entry = shard.entry(hash).or_insert_with(|| Entry::new(key.clone(), Arc::clone(partition)));
        let is_new = |other: &Arc<Object>| other.stored.variant() != object.stored.variant();
        let has_room = entry.is_of(key, partition)
            && entry.variants.len() < VARIANTS_MAX
            && entry.variants.iter().all(is_new);
        if has_room {
            entry.variants.push(object);
        }
        has_room
    }

    /// Forgets a content that was evicted.
    pub(crate) fn forget(&self, hash: u64, content: u128) {
        let mut shard = self.shard(hash);
        let Some(entry) = shard.get_mut(&hash) else { return };
        entry.variants.retain(|object| object.content.key != content);
        if entry.is_empty() {
            shard.remove(&hash);
        }
    }

    /// Changes all entries, a shard at a time, and drops those that are empty then.
    pub(crate) fn sweep(&self, mut change: impl FnMut(&mut Entry)) {
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.retain(|_, entry| {
                change(entry);
                !entry.is_empty()
            });
        }
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard> {
        self.shards[hash as usize % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// So that loops seldom meet in one.
const SHARDS: usize = 64;

/// Marks that a shard keeps even if the cache may have few objects.
const MARKS_LEAST: usize = 64;

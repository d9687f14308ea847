//! A bounded table that many threads read and few change.
//!
//! Two tiers of locking, after shared-SYMPED (Harji, *Performance Comparison of Uniprocessor and Multiprocessor Web
//! Server Architectures*, 2010): a hit takes the table's lock for reading and notes the use in atomics of the entry;
//! only inserting and removing take it for writing, and no thread holds it across a system call. A cache of one loop
//! pays two uncontended atomic operations for it, and there is one code base for private and shared caches.
//!
//! Entries wait for their eviction in a queue ordered by value. A use does not move the entry; when it is the next
//! victim and its value has risen, it is queued again. Since values never fall, the first entry with an unchanged
//! value has the smallest one of all: the order is exact.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use hashbrown::HashTable;

use crate::policy::{Order, Policy};

/// An entry of a [`Table`].
pub(crate) trait Entry {
    /// Hash of the entry's key; does not change.
    fn hash(&self) -> u64;
    /// How much of the table's capacity the entry takes; does not change.
    fn weight(&self) -> u64;
    /// Where the table keeps its notes on the entry.
    fn seat(&self) -> &Seat;
}

/// A table's notes on one entry. An entry belongs to at most one table, once in its life.
#[derive(Debug, Default)]
pub(crate) struct Seat {
    /// The policy's value of the entry; rises with each use.
    value: AtomicU64,
    /// How often it was used, about: uses at the same instant may count once.
    uses: AtomicU64,
    /// The value under which the entry is queued; changed only under the table's write lock.
    queued: AtomicU64,
    /// Position in the order of arrival, counted from 1, which orders entries of equal value; 0 outside of a table.
    number: AtomicU64,
}

impl Seat {
    /// Whether the entry is in its table.
    pub(crate) fn is_taken(&self) -> bool {
        self.number.load(Ordering::Relaxed) != 0
    }

    /// How often the entry was used, about.
    pub(crate) fn uses(&self) -> u64 {
        self.uses.load(Ordering::Relaxed)
    }

    fn rank(&self) -> Rank {
        (self.queued.load(Ordering::Relaxed), self.number.load(Ordering::Relaxed))
    }
}

type Rank = (u64, u64);

#[derive(Debug)]
pub(crate) struct Table<E> {
    inner: RwLock<Inner<E>>,
    order: Order,
    weight_max: AtomicU64,
    evictions: AtomicU64,
}

#[derive(Debug)]
struct Inner<E> {
    index: HashTable<Arc<E>>,
    queue: BTreeMap<Rank, Arc<E>>,
    weight: u64,
    arrivals: u64,
}

impl<E: Entry> Table<E> {
    /// An empty table whose entries never weigh more than `weight_max` together.
    pub(crate) fn new(policy: Policy, weight_max: u64) -> Self {
        Self {
            inner: RwLock::new(Inner {
                index: HashTable::new(),
                queue: BTreeMap::new(),
                weight: 0,
                arrivals: 0,
            }),
            order: Order::new(policy),
            weight_max: AtomicU64::new(weight_max),
            evictions: AtomicU64::new(0),
        }
    }

    /// Looks at the entry that matches, if there is one. The lock is held while `look` runs: it must not block.
    pub(crate) fn find<R>(
        &self,
        hash: u64,
        matches: impl Fn(&E) -> bool,
        look: impl FnOnce(&Arc<E>) -> R,
    ) -> Option<R> {
        let inner = self.read();
        inner.index.find(hash, |entry| matches(entry)).map(look)
    }

    /// Notes a use of `entry`.
    pub(crate) fn touch(&self, entry: &E) {
        let seat = entry.seat();
        seat.value.store(self.order.value_of_use(entry.weight()), Ordering::Relaxed);
        seat.uses.store(seat.uses() + 1, Ordering::Relaxed);
    }

    /// Puts `entry` into the table in place of the one that matches, unless `keep` prefers that one: then `entry` is
    /// dropped. Returns the one that stays. An entry heavier than the whole table is not inserted.
    pub(crate) fn insert(
        &self,
        entry: Arc<E>,
        matches: impl Fn(&E) -> bool,
        keep: impl FnOnce(&E) -> bool,
    ) -> Arc<E> {
        let mut gone = Vec::new();
        let mut inner = self.write();
        if let Some(present) = inner.index.find(entry.hash(), |present| matches(present)).map(Arc::clone) {
            if keep(&present) {
                self.touch(&present);
                return present;
            }
            gone.extend(inner.remove(&present));
        }
        let weight_max = self.weight_max();
        if entry.weight() <= weight_max {
            self.evict_down_to(weight_max - entry.weight(), &mut inner, &mut gone);
            self.touch(&entry);
            inner.add(Arc::clone(&entry));
        }
        drop(inner);
        // The last reference to an entry may close a file: not under the lock, and so not before here.
        drop(gone);
        entry
    }

    /// Takes `entry` out of the table if it is in it.
    pub(crate) fn remove(&self, entry: &Arc<E>) {
        let gone = self.write().remove(entry);
        drop(gone);
    }

    /// Evicts up to `count` of the entries that are `wanted` and that only the table refers to, those of the smallest
    /// value first: how many went.
    ///
    /// It looks at all entries, and so is for emergencies.
    pub(crate) fn evict(&self, count: usize, wanted: impl Fn(&E) -> bool) -> usize {
        let value = |entry: &E| entry.seat().value.load(Ordering::Relaxed);
        let mut inner = self.write();
        let unused = inner.queue.values().filter(|entry| Arc::strong_count(entry) == OWN_REFERENCES);
        let mut victims: Vec<_> = unused.filter(|entry| wanted(entry)).map(Arc::clone).collect();
        victims.sort_by_key(|entry| value(entry));
        victims.truncate(count);
        for victim in &victims {
            inner.remove(victim);
            self.order.handle_eviction(value(victim));
        }
        drop(inner);
        self.evictions.fetch_add(victims.len() as u64, Ordering::Relaxed);
        victims.len()
    }

    pub(crate) fn weight_max(&self) -> u64 {
        self.weight_max.load(Ordering::Relaxed)
    }

    /// Changes the capacity and evicts surplus entries at once. Returns whether there were any.
    pub(crate) fn set_weight_max(&self, weight_max: u64) -> bool {
        self.weight_max.store(weight_max, Ordering::Relaxed);
        let mut gone = Vec::new();
        self.evict_down_to(weight_max, &mut self.write(), &mut gone);
        !gone.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.read().index.len()
    }

    pub(crate) fn weight(&self) -> u64 {
        self.read().weight
    }

    /// Number of entries evicted so far for want of room.
    pub(crate) fn evictions(&self) -> u64 {
        self.evictions.load(Ordering::Relaxed)
    }

    fn evict_down_to(&self, weight_max: u64, inner: &mut Inner<E>, gone: &mut Vec<Arc<E>>) {
        while inner.weight > weight_max {
            match self.evict_one(inner) {
                Some(victim) => gone.push(victim),
                None => return,
            }
        }
    }

    fn evict_one(&self, inner: &mut Inner<E>) -> Option<Arc<E>> {
        loop {
            let ((queued, number), entry) = inner.queue.pop_first()?;
            let seat = entry.seat();
            let value = seat.value.load(Ordering::Relaxed);
            if value > queued {
                seat.queued.store(value, Ordering::Relaxed);
                inner.queue.insert((value, number), entry);
                continue;
            }
            inner.forget(&entry);
            self.order.handle_eviction(value);
            self.evictions.fetch_add(1, Ordering::Relaxed);
            return Some(entry);
        }
    }

    // A thread that panicked with the lock in hand did so between complete steps: the table is sound.
    fn read(&self) -> RwLockReadGuard<'_, Inner<E>> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner<E>> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<E: Entry> Inner<E> {
    fn add(&mut self, entry: Arc<E>) {
        self.arrivals += 1;
        let seat = entry.seat();
        seat.number.store(self.arrivals, Ordering::Relaxed);
        seat.queued.store(seat.value.load(Ordering::Relaxed), Ordering::Relaxed);
        self.weight += entry.weight();
        self.queue.insert(seat.rank(), Arc::clone(&entry));
        self.index.insert_unique(entry.hash(), entry, |entry| entry.hash());
    }

    fn remove(&mut self, entry: &Arc<E>) -> Option<Arc<E>> {
        if !entry.seat().is_taken() {
            return None;
        }
        let queued = self.queue.remove(&entry.seat().rank());
        self.forget(entry);
        queued
    }

    /// Removes from everything but the queue.
    fn forget(&mut self, entry: &Arc<E>) {
        if let Ok(found) = self.index.find_entry(entry.hash(), |other| Arc::ptr_eq(other, entry)) {
            found.remove();
            self.weight -= entry.weight();
        }
        entry.seat().number.store(0, Ordering::Relaxed);
    }
}

/// By how many references a table keeps an entry: the index's and the queue's.
const OWN_REFERENCES: usize = 2;

#[cfg(test)]
mod tests;

//! What is known about targets: a bounded table in the order of use.
//!
//! "The mappings can be maintained in an LRU cache": a target that has not been requested for so long has most likely
//! left the caches of the nodes, too (Pai, 1999, section 3.1.6).
//!
//! Entries lie in one slab and are linked into lists, newest first; most tables need one list, a mirror of caches one for
//! each node. All memory is reserved when the table is made.

use hashbrown::HashTable;

use crate::hash::pair;

/// Values by target hash. Looking up and inserting take constant time and allocate nothing.
#[derive(Debug)]
pub(crate) struct Mapping<V> {
    index: HashTable<u32>,
    slots: Vec<Slot<V>>,
    /// Slots that were filled once and are empty now.
    free: Vec<u32>,
    lists: Vec<Ends>,
    entries_max: usize,
    /// Hashes of targets are public: without it, a client could choose paths that meet in one place of the table.
    seed: u64,
}

#[derive(Debug)]
struct Slot<V> {
    target: u64,
    list: u32,
    newer: u32,
    older: u32,
    value: V,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    newest: u32,
    oldest: u32,
}

/// A link to nothing.
const NONE: u32 = u32::MAX;

impl<V: Copy> Mapping<V> {
    /// A table of up to `entries_max` targets (at least one), with one list.
    pub(crate) fn new(entries_max: usize, seed: u64) -> Self {
        let entries_max = entries_max.clamp(1, NONE as usize);
        let mut mapping = Self {
            index: HashTable::with_capacity(entries_max),
            slots: Vec::with_capacity(entries_max),
            free: Vec::with_capacity(entries_max),
            lists: Vec::new(),
            entries_max,
            seed,
        };
        mapping.grow_lists(1);
        mapping
    }

    /// Sees to it that there are this many lists at least.
    pub(crate) fn grow_lists(&mut self, lists: usize) {
        if lists > self.lists.len() {
            self.lists.resize(lists, Ends { newest: NONE, oldest: NONE });
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() == self.entries_max
    }

    /// What is known of a target, which becomes the newest of its list.
    pub(crate) fn get(&mut self, target: u64) -> Option<&mut V> {
        let at = self.find(target)?;
        let list = self.slots[at as usize].list;
        if self.lists[list as usize].newest != at {
            self.unlink(at);
            self.link_newest(at, list);
        }
        Some(&mut self.slots[at as usize].value)
    }

    /// Remembers a target that is not in the table, as the newest of a list.
    ///
    /// The table may not be full: the caller forgets another one before, because it knows which one and what hangs on it.
    pub(crate) fn insert(&mut self, target: u64, list: u32, value: V) {
        debug_assert!(!self.is_full() && self.find(target).is_none());
        let slot = Slot { target, list, newer: NONE, older: NONE, value };
        let at = match self.free.pop() {
            Some(at) => {
                self.slots[at as usize] = slot;
                at
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
        };
        self.link_newest(at, list);
        let (slots, seed) = (&self.slots, self.seed);
        self.index.insert_unique(pair(target, seed), at, |&at| pair(slots[at as usize].target, seed));
    }

    /// The value that has been unused for the longest time in a list.
    pub(crate) fn oldest(&self, list: u32) -> Option<&V> {
        self.slots.get(self.lists[list as usize].oldest as usize).map(|slot| &slot.value)
    }

    /// Forgets the target that has been unused for the longest time in a list, and returns what was known of it.
    pub(crate) fn forget_oldest(&mut self, list: u32) -> Option<V> {
        let at = self.lists[list as usize].oldest;
        if at == NONE {
            return None;
        }
        Some(self.forget_at(at))
    }

    /// Forgets a target, and returns what was known of it.
    pub(crate) fn forget(&mut self, target: u64) -> Option<V> {
        let at = self.find(target)?;
        Some(self.forget_at(at))
    }

    fn find(&self, target: u64) -> Option<u32> {
        self.index.find(pair(target, self.seed), |&at| self.slots[at as usize].target == target).copied()
    }

    fn forget_at(&mut self, at: u32) -> V {
        self.unlink(at);
        let Slot { target, value, .. } = self.slots[at as usize];
        if let Ok(entry) = self.index.find_entry(pair(target, self.seed), |&other| other == at) {
            entry.remove();
        }
        self.free.push(at);
        value
    }

    fn link_newest(&mut self, at: u32, list: u32) {
        let ends = &mut self.lists[list as usize];
        let older = std::mem::replace(&mut ends.newest, at);
        if older == NONE {
            ends.oldest = at;
        } else {
            self.slots[older as usize].newer = at;
        }
        let slot = &mut self.slots[at as usize];
        (slot.list, slot.older, slot.newer) = (list, older, NONE);
    }

    fn unlink(&mut self, at: u32) {
        let Slot { list, newer, older, .. } = self.slots[at as usize];
        let ends = &mut self.lists[list as usize];
        match newer {
            NONE => ends.newest = older,
            newer => self.slots[newer as usize].older = older,
        }
        match older {
            NONE => self.lists[list as usize].oldest = newer,
            older => self.slots[older as usize].newer = newer,
        }
    }
}

impl<V: Copy> Clone for Slot<V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V: Copy> Copy for Slot<V> {}

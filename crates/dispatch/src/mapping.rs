//! A bounded table of targets in the order of use.
//!
//! "The mappings can be maintained in an LRU cache": a target that has not been requested for so long has most likely
//! left the caches of the nodes, too (Pai, 1999, section 3.1.6).
//!
//! Entries are in one slab, linked into a list, newest first. All memory is allocated at creation.

use hashbrown::HashTable;

use crate::hash::pair;

/// Values by target hash. Looking up and inserting take constant time and allocate nothing.
#[derive(Debug)]
pub(crate) struct Mapping<V> {
    index: HashTable<u32>,
    slots: Vec<Slot<V>>,
    /// Slots that were filled once and are empty now.
    free: Vec<u32>,
    newest: u32,
    oldest: u32,
    entries_max: usize,
    /// Hashes of targets are public: without a seed, clients could choose paths that collide in the table.
    seed: u64,
}

#[derive(Clone, Copy, Debug)]
struct Slot<V> {
    target: u64,
    newer: u32,
    older: u32,
    value: V,
}

/// A link to nothing.
const NONE: u32 = u32::MAX;

impl<V: Copy> Mapping<V> {
    /// A table of up to `entries_max` targets, and at least one.
    pub(crate) fn new(entries_max: usize, seed: u64) -> Self {
        let entries_max = entries_max.clamp(1, NONE as usize);
        Self {
            index: HashTable::with_capacity(entries_max),
            slots: Vec::with_capacity(entries_max),
            free: Vec::with_capacity(entries_max),
            newest: NONE,
            oldest: NONE,
            entries_max,
            seed,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() == self.entries_max
    }

    /// The value of a target, which becomes the newest.
    pub(crate) fn get(&mut self, target: u64) -> Option<&mut V> {
        let at = self.find(target)?;
        if self.newest != at {
            self.unlink(at);
            self.link_newest(at);
        }
        Some(&mut self.slots[at as usize].value)
    }

    /// Remembers a target that is not in the table, as the newest.
    ///
    /// The table may not be full: the caller forgets the oldest before, because it knows what hangs on it.
    pub(crate) fn insert(&mut self, target: u64, value: V) {
        debug_assert!(!self.is_full() && self.find(target).is_none());
        let slot = Slot { target, newer: NONE, older: NONE, value };
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
        self.link_newest(at);
        let (slots, seed) = (&self.slots, self.seed);
        self.index.insert_unique(pair(target, seed), at, |&at| pair(slots[at as usize].target, seed));
    }

    /// Removes the least recently used target, and returns its value.
    pub(crate) fn forget_oldest(&mut self) -> Option<V> {
        match self.oldest {
            NONE => None,
            at => Some(self.forget_at(at)),
        }
    }

    /// Removes a target, and returns its value.
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

    fn link_newest(&mut self, at: u32) {
        let older = std::mem::replace(&mut self.newest, at);
        match older {
            NONE => self.oldest = at,
            older => self.slots[older as usize].newer = at,
        }
        let slot = &mut self.slots[at as usize];
        (slot.older, slot.newer) = (older, NONE);
    }

    fn unlink(&mut self, at: u32) {
        let Slot { newer, older, .. } = self.slots[at as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.slots[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.slots[older as usize].newer = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a plain list in the order of use: values, order of removal, and capacity.
        #[test]
        fn the_table_is_a_list_in_the_order_of_use(
            entries_max in 1_usize..6,
            steps in prop::collection::vec((0_u8..4, 0_u64..9), 0..200),
        ) {
            let mut mapping = Mapping::new(entries_max, 7);
            let mut expected: Vec<(u64, u64)> = Vec::new();
            for (number, (step, target)) in (0..).zip(steps) {
                let at = expected.iter().position(|(known, _)| *known == target);
                match step {
                    0 => prop_assert_eq!(mapping.forget(target), at.map(|at| expected.remove(at).1)),
                    _ => match mapping.get(target) {
                        Some(value) => {
                            let at = at.expect("only known targets are found");
                            prop_assert_eq!(*value, expected[at].1);
                            let used = expected.remove(at);
                            expected.push(used);
                        }
                        None => {
                            prop_assert_eq!(at, None);
                            if mapping.is_full() {
                                prop_assert_eq!(mapping.forget_oldest(), Some(expected.remove(0).1));
                            }
                            mapping.insert(target, number);
                            expected.push((target, number));
                        }
                    },
                }
                prop_assert!(expected.len() <= entries_max);
                prop_assert_eq!(mapping.len(), expected.len());
            }
            for (_, value) in expected {
                prop_assert_eq!(mapping.forget_oldest(), Some(value));
            }
            prop_assert_eq!(mapping.forget_oldest(), None);
        }
    }
}

//! The indexes of both tiers, each behind a lock of its own.

use std::sync::{Mutex, MutexGuard, PoisonError};

use baton_segment::index::{Facts, Index, Removed};
use baton_segment::rules::KeyHash;

/// What the memory has, and what the disk has if there is one. One lock is taken at a time.
#[derive(Debug)]
pub(super) struct Tiers {
    memory: Mutex<Index>,
    disk: Option<Mutex<Index>>,
}

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tier {
    Memory,
    Disk,
}

impl Tiers {
    pub(super) fn new(memory: Index, disk: Option<Index>) -> Self {
        Self { memory: Mutex::new(memory), disk: disk.map(Mutex::new) }
    }

    pub(super) fn has_disk(&self) -> bool {
        self.disk.is_some()
    }

    /// The tiers that there are, the memory first.
    pub(super) fn each(&self) -> impl Iterator<Item = Tier> {
        std::iter::once(Tier::Memory).chain(self.disk.as_ref().map(|_| Tier::Disk))
    }

    pub(super) fn lock(&self, tier: Tier) -> MutexGuard<'_, Index> {
        self.index(tier).lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` while another loop has it.
    pub(super) fn try_lock(&self, tier: Tier) -> Option<MutexGuard<'_, Index>> {
        self.index(tier).try_lock().ok()
    }

    /// Changes an index. What it gives up thereby is for the store to drop.
    pub(super) fn change<R>(&self, tier: Tier, change: impl FnOnce(&mut Index) -> R) -> (R, Vec<Removed>) {
        let mut index = self.lock(tier);
        let changed = change(&mut index);
        (changed, std::iter::from_fn(|| index.next_removed()).collect())
    }

    /// What is known of a content.
    pub(super) fn facts(&self, content: u128) -> Option<Facts> {
        self.each().find_map(|tier| {
            let index = self.lock(tier);
            index.find(KeyHash(content)).map(|object| index.facts(object))
        })
    }

    /// The length of a content in bytes, if it is known to one of them.
    pub(super) fn length(&self, content: u128) -> Option<u64> {
        self.each().find_map(|tier| {
            let index = self.lock(tier);
            index.find(KeyHash(content)).and_then(|object| index.facts(object).length)
        })
    }

    /// Whether one of them has the block.
    pub(super) fn contains(&self, content: u128, block: u32) -> bool {
        self.each().any(|tier| {
            let index = self.lock(tier);
            index.find(KeyHash(content)).is_some_and(|object| index.contains(object, block))
        })
    }

    /// A block is not there after all. Returns whether the index had it.
    pub(super) fn lose(&self, tier: Tier, content: u128, block: u32) -> bool {
        let mut index = self.lock(tier);
        let Some(object) = index.find(KeyHash(content)) else { return false };
        let had_it = index.contains(object, block);
        index.lose(object, block);
        had_it
    }

    fn index(&self, tier: Tier) -> &Mutex<Index> {
        match (tier, &self.disk) {
            (Tier::Disk, Some(disk)) => disk,
            _ => &self.memory,
        }
    }
}

//! The record of an object: who it is, how long, which blocks are here, how many readers it has.

use hashbrown::HashTable;

use super::bitmap::Bitmap;
use super::shares::ClassId;
use crate::policy::CachePolicy;
use crate::rules::KeyHash;
use crate::units::ObjectId;

/// Tells versions of an object apart: no two objects of an index have the same, within four thousand million. Later ones
/// have higher ones, until they begin anew.
pub type Generation = u32;

/// What an index keeps about an object for others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The length in bytes, if it is known already.
    pub length: Option<u64>,
    /// A hash of the strong validator: blocks of one object all have the same. None if the object has no such; its
    /// blocks come from one response then.
    pub validator: Option<u64>,
    /// A keyed hash of what is asked for, of which the object is one version: where its head and freshness are found, and how
    /// policies know it again when it has gone or another version has come. Freshness is the object's, not a segment's.
    pub handle: u64,
    /// The policy that the object gets, with its grouping; `None`: the index's own.
    pub policy: Option<CachePolicy>,
}

/// Sorted by size, since there may be a million.
#[derive(Clone, Debug)]
pub(super) struct Object {
    key: [u64; 2],
    /// `u64::MAX` if it is unknown.
    length: u64,
    /// 0 if there is none.
    validator: u64,
    pub(super) handle: u64,
    pub(super) generation: Generation,
    pub(super) blocks: Bitmap,
    pub(super) readers: u32,
    pub(super) class: ClassId,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The object is found by its key.
    Current,
    /// Purged; kept for its readers.
    Purged,
    /// The slot is free.
    Free,
}

impl Object {
    fn new(key: KeyHash, facts: Facts, class: ClassId, generation: Generation) -> Self {
        Self {
            key: [key.0 as u64, (key.0 >> 64) as u64],
            length: facts.length.unwrap_or(u64::MAX),
            validator: facts.validator.unwrap_or(0),
            handle: facts.handle,
            generation,
            blocks: Bitmap::default(),
            readers: 0,
            class,
            state: State::Current,
        }
    }

    pub(super) fn key(&self) -> KeyHash {
        KeyHash(u128::from(self.key[1]) << 64 | u128::from(self.key[0]))
    }

    pub(super) fn length(&self) -> Option<u64> {
        Some(self.length).filter(|length| *length != u64::MAX)
    }

    pub(super) fn set_length(&mut self, length: u64) {
        self.length = length;
    }

    /// What the caller said, but for the policy.
    pub(super) fn facts(&self) -> Facts {
        let validator = Some(self.validator).filter(|validator| *validator != 0);
        Facts { length: self.length(), validator, handle: self.handle, policy: None }
    }

    pub(super) fn is_current(&self) -> bool {
        self.state == State::Current
    }
}

/// The half of a key by which tables find objects. Keys are keyed hashes already: clients, who
/// choose what is hashed, cannot make them collide.
pub(super) fn low(key: KeyHash) -> u64 {
    key.0 as u64
}

/// All objects of an index.
#[derive(Debug, Default)]
pub(super) struct Objects {
    slots: Vec<Object>,
    free: Vec<u32>,
    by_key: HashTable<u32>,
}

impl Objects {
    /// Objects, those that are purged and still read included.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn find(&self, key: KeyHash) -> Option<ObjectId> {
        self.by_key.find(low(key), |at| self.slots[*at as usize].key() == key).map(|at| ObjectId(*at))
    }

    /// Adds an object whose key is not there.
    pub(super) fn insert(
        &mut self,
        key: KeyHash,
        facts: Facts,
        class: ClassId,
        generation: Generation,
    ) -> ObjectId {
        let object = Object::new(key, facts, class, generation);
        let at = match self.free.pop() {
            Some(at) => {
                self.slots[at as usize] = object;
                at
            }
            None => {
                self.slots.push(object);
                (self.slots.len() - 1) as u32
            }
        };
        let slots = &self.slots;
        self.by_key.insert_unique(low(key), at, |at| low(slots[*at as usize].key()));
        ObjectId(at)
    }

    /// A current one is no longer found by its key.
    pub(super) fn detach(&mut self, object: ObjectId) {
        self[object].state = State::Purged;
        let low = low(self[object].key());
        if let Ok(entry) = self.by_key.find_entry(low, |at| *at == object.0) {
            entry.remove();
        }
    }

    /// Removes one that was detached.
    pub(super) fn remove(&mut self, object: ObjectId) {
        self[object].state = State::Free;
        self[object].blocks = Bitmap::default();
        self.free.push(object.0);
    }

    /// Heap bytes in use.
    pub(super) fn heap_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Object>()
            + self.free.capacity() * size_of::<u32>()
            + self.by_key.allocation_size()
            + self.slots.iter().map(|object| object.blocks.heap_bytes()).sum::<usize>()
    }
}

impl std::ops::Index<ObjectId> for Objects {
    type Output = Object;

    fn index(&self, object: ObjectId) -> &Object {
        &self.slots[object.at()]
    }
}

impl std::ops::IndexMut<ObjectId> for Objects {
    fn index_mut(&mut self, object: ObjectId) -> &mut Object {
        &mut self.slots[object.at()]
    }
}

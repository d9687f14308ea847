//! The segments that are here, each with a dense number: what policies order, and what the index counts bytes by.
//!
//! A million objects have a million units or more, so a unit is 16 bytes, and policies keep what they know of it in
//! arrays indexed by [`UnitId`].

use hashbrown::HashTable;

use crate::layout::SegmentNumber;

/// The number of an object in its index; reused after the object has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(pub(crate) u32);

/// The number of a unit; reused after the unit has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnitId(pub(crate) u32);

impl UnitId {
    pub(crate) const NONE: Self = Self(u32::MAX);

    pub(crate) fn at(self) -> usize {
        self.0 as usize
    }
}

impl ObjectId {
    const NONE: Self = Self(u32::MAX);

    pub(crate) fn at(self) -> usize {
        self.0 as usize
    }
}

/// A segment of which at least one block is here.
#[derive(Clone, Copy, Debug)]
struct Unit {
    /// `ObjectId::NONE` in a free slot.
    object: ObjectId,
    /// In a free slot the next free one.
    segment: SegmentNumber,
    /// Bytes that are here.
    bytes: u64,
}

/// All units of an index.
#[derive(Debug)]
pub struct Units {
    slots: Vec<Unit>,
    free: UnitId,
    by_place: HashTable<UnitId>,
}

impl Default for Units {
    fn default() -> Self {
        Self { slots: Vec::new(), free: UnitId::NONE, by_place: HashTable::new() }
    }
}

impl Units {
    /// How many units there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_place.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_place.is_empty()
    }

    /// The object and the segment of a unit.
    #[must_use]
    pub fn place_of(&self, unit: UnitId) -> (ObjectId, SegmentNumber) {
        let unit = &self.slots[unit.at()];
        (unit.object, unit.segment)
    }

    /// The bytes of a unit that are here.
    #[must_use]
    pub fn bytes_of(&self, unit: UnitId) -> u64 {
        self.slots[unit.at()].bytes
    }

    /// The unit of a segment, if any of it is here.
    #[must_use]
    pub fn find(&self, object: ObjectId, segment: SegmentNumber) -> Option<UnitId> {
        let is_it = |unit: &UnitId| self.place_of(*unit) == (object, segment);
        self.by_place.find(hash_of(object, segment), is_it).copied()
    }

    /// Slots, used ones and free ones: all numbers of units are below.
    pub(crate) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The unit in a slot, if it is used.
    pub(crate) fn in_slot(&self, slot: usize) -> Option<UnitId> {
        self.slots.get(slot).filter(|unit| unit.object != ObjectId::NONE).map(|_| UnitId(slot as u32))
    }

    /// Adds an empty unit for a segment that has none.
    pub(crate) fn insert(&mut self, object: ObjectId, segment: SegmentNumber) -> UnitId {
        debug_assert!(self.find(object, segment).is_none());
        let unit = Unit { object, segment, bytes: 0 };
        let id = self.free;
        let id = if id == UnitId::NONE {
            self.slots.push(unit);
            UnitId((self.slots.len() - 1) as u32)
        } else {
            self.free = UnitId(self.slots[id.at()].segment);
            self.slots[id.at()] = unit;
            id
        };
        let slots = &self.slots;
        let rehash = |unit: &UnitId| hash_of(slots[unit.at()].object, slots[unit.at()].segment);
        self.by_place.insert_unique(hash_of(object, segment), id, rehash);
        id
    }

    /// Removes a unit.
    pub(crate) fn remove(&mut self, id: UnitId) {
        let (object, segment) = self.place_of(id);
        if let Ok(entry) = self.by_place.find_entry(hash_of(object, segment), |unit| *unit == id) {
            entry.remove();
            self.slots[id.at()] = Unit { object: ObjectId::NONE, segment: self.free.0, bytes: 0 };
            self.free = id;
        }
    }

    pub(crate) fn set_bytes(&mut self, unit: UnitId, bytes: u64) {
        self.slots[unit.at()].bytes = bytes;
    }

    /// Heap bytes in use.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Unit>() + self.by_place.allocation_size()
    }
}

/// Numbers that the index gives out: clients cannot choose them to collide.
fn hash_of(object: ObjectId, segment: SegmentNumber) -> u64 {
    let place = u64::from(object.0) << 32 | u64::from(segment);
    let mixed = place.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 32)
}

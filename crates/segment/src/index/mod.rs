//! The index of a cache: which blocks of which objects are here, within a bound of bytes and of objects.
//!
//! ```text
//! key ──► object: length, validator, handle, blocks that are here, readers
//!            └──► units: its segments that are here ──► policy: which one goes
//! ```
//!
//! The index decides; the store acts. After each call that may remove something, [`Index::next_removed`] names blocks and
//! objects that the store drops, before it writes what the call let in. A purge gives an object's key free at once: who reads the object may finish, and the
//! next request begins another one of a higher generation. Freshness is the object's, and the caller's affair.
//!
//! An object stays while it has a block or a reader. After a crash, [`Index::recover`] is told what the store found.

mod bitmap;
mod object;

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;

pub use object::{Facts, Generation};

use self::object::Objects;
use crate::layout::{BlockNumber, Layout, SegmentNumber};
use crate::policy::{Aim, Millis, Place, Policy, PolicyName, Removal};
use crate::rules::KeyHash;
pub use crate::units::ObjectId;
use crate::units::{UnitId, Units};

/// What an index is made for.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How objects are divided.
    pub layout: Layout,
    /// The most bytes of blocks, at least 1.
    pub bytes_max: u64,
    /// The most objects, 1 to 2^31.
    pub objects_max: usize,
    /// Which segments are kept.
    pub policy: PolicyName,
    /// What the policy makes the most of.
    pub aim: Aim,
    /// What the policy's random choices start from.
    pub seed: u64,
}

/// Why nothing was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotStored {
    /// Longer than the layout can divide, or a block beyond the end.
    OutOfRange,
    /// All objects are being read, and there may be no more of them.
    TooManyObjects,
    /// Purged, or replaced by a newer version.
    Purged,
    /// Not worth what it would displace.
    NotWorthIt,
}

impl NotStored {
    /// The word in logs and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OutOfRange => "out-of-range",
            Self::TooManyObjects => "too-many-objects",
            Self::Purged => "purged",
            Self::NotWorthIt => "not-worth-it",
        }
    }
}

impl fmt::Display for NotStored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What the store is to drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// A block.
    Block {
        /// The object's key.
        key: KeyHash,
        /// The object's generation.
        generation: Generation,
        /// The block.
        block: BlockNumber,
    },
    /// The record of an object, whose blocks have been named before.
    Object {
        /// The object's key.
        key: KeyHash,
        /// The object's generation.
        generation: Generation,
        /// The handle that the caller gave.
        handle: u64,
    },
}

/// The index of a cache.
#[derive(Debug)]
pub struct Index {
    layout: Layout,
    bytes_max: u64,
    objects_max: usize,
    objects: Objects,
    units: Units,
    policy: Box<dyn Policy>,
    bytes: u64,
    /// Blocks count as the slots that they lie in: powers of two of at least this. 0: by their length.
    slot_bytes_min: u64,
    next_generation: Generation,
    removed: VecDeque<Removed>,
}

/// How many victims are looked at for an object that has no reader.
const VICTIMS_TRIED: usize = 16;

impl Index {
    /// An empty index.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            layout: settings.layout,
            bytes_max: settings.bytes_max,
            objects_max: settings.objects_max,
            objects: Objects::default(),
            units: Units::default(),
            policy: settings.policy.machine(settings.aim, settings.bytes_max, settings.seed),
            bytes: 0,
            slot_bytes_min: 0,
            next_generation: 1,
            removed: VecDeque::new(),
        }
    }

    /// The same for blocks that each take a slot of a power of two of bytes, at least so many: those count.
    #[must_use]
    pub fn in_slots(self, slot_bytes_min: u64) -> Self {
        Self { slot_bytes_min, ..self }
    }

    /// Changes the bound of bytes. What is beyond a lower one goes when something is stored.
    pub fn set_bytes_max(&mut self, bytes_max: u64) {
        self.bytes_max = bytes_max;
    }

    /// The bound of bytes.
    #[must_use]
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// How objects are divided.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Bytes of all blocks that are here.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Objects, those that are purged and still read included.
    #[must_use]
    pub fn objects(&self) -> usize {
        self.objects.len()
    }

    /// Segments of which something is here.
    #[must_use]
    pub fn segments(&self) -> usize {
        self.units.len()
    }

    /// Memory that the index itself takes, in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.objects.heap_bytes() + self.units.heap_bytes() + self.policy.heap_bytes()
    }

    /// Whether a segment that was begun is worth fetching to its end after its reader has left.
    #[must_use]
    pub fn completes_segments(&self) -> bool {
        self.policy.completes_segments()
    }

    /// The object of a key.
    #[must_use]
    pub fn find(&self, key: KeyHash) -> Option<ObjectId> {
        self.objects.find(key)
    }

    /// What the caller said of an object.
    #[must_use]
    pub fn facts(&self, object: ObjectId) -> Facts {
        self.objects[object].facts()
    }

    /// The generation of an object.
    #[must_use]
    pub fn generation(&self, object: ObjectId) -> Generation {
        self.objects[object].generation
    }

    /// Whether an object was not purged.
    #[must_use]
    pub fn is_current(&self, object: ObjectId) -> bool {
        self.objects[object].is_current()
    }

    /// Whether a block is here.
    #[must_use]
    pub fn contains(&self, object: ObjectId, block: BlockNumber) -> bool {
        self.objects[object].blocks.contains(block)
    }

    /// Whether all blocks are here, and known to be all.
    #[must_use]
    pub fn is_complete(&self, object: ObjectId) -> bool {
        self.blocks_in(object).is_some_and(|blocks| self.objects[object].blocks.len() == blocks)
    }

    /// A reader comes: the object stays until [`Index::close`] is called as often.
    pub fn open(&mut self, object: ObjectId) {
        self.objects[object].readers += 1;
    }

    /// A reader does not need the object any more.
    pub fn close(&mut self, object: ObjectId) {
        let readers = &mut self.objects[object].readers;
        debug_assert!(*readers > 0, "closed more often than opened");
        *readers = readers.saturating_sub(1);
        self.remove_if_idle(object);
    }

    /// Begins an object, which has no block yet and one reader. One of the same key is purged.
    ///
    /// # Errors
    /// [`NotStored::OutOfRange`] if it is too long, [`NotStored::TooManyObjects`].
    pub fn insert(&mut self, key: KeyHash, facts: Facts, now: Millis) -> Result<ObjectId, NotStored> {
        if facts.length.is_some_and(|length| length > self.layout.length_max()) {
            return Err(NotStored::OutOfRange);
        }
        self.purge(key);
        self.make_room_for_object(now)?;
        let object = self.objects.insert(key, facts, self.next_generation);
        self.next_generation = self.next_generation.wrapping_add(1);
        self.open(object);
        Ok(object)
    }

    /// The length has become known, with the end of a response. Blocks beyond it go.
    ///
    /// # Errors
    /// [`NotStored::OutOfRange`] if it is too long, or not the known one: the object is purged.
    pub fn set_length(&mut self, object: ObjectId, length: u64) -> Result<(), NotStored> {
        let known = self.objects[object].length();
        if known == Some(length) {
            return Ok(());
        }
        if known.is_some() || length > self.layout.length_max() {
            self.purge_object(object);
            return Err(NotStored::OutOfRange);
        }
        // The last block changes its segment, and maybe its size.
        let last = self.layout.blocks_in(length) - 1;
        let from_last: Vec<_> = self.objects[object].blocks.blocks_back(last..u32::MAX).collect();
        for block in &from_last {
            self.remove_block(object, *block, Removal::Invalid);
        }
        self.objects[object].set_length(length);
        for block in from_last {
            if block == last {
                self.put_block(object, block, 0);
            } else {
                self.announce_block(object, block);
            }
        }
        Ok(())
    }

    /// A reader goes from a block, or from nowhere at its start, to another one; counts if that is in another segment.
    /// To be called before the block is stored.
    pub fn handle_use(
        &mut self,
        object: ObjectId,
        from: Option<BlockNumber>,
        block: BlockNumber,
        now: Millis,
    ) {
        let unit = self.units.find(object, self.segment_of(object, block));
        self.note_reached(object, from, block, unit, now);
    }

    /// The same for the reader that the block is fetched for, and that may get it when it is here: no use of what is kept.
    pub fn handle_miss(
        &mut self,
        object: ObjectId,
        from: Option<BlockNumber>,
        block: BlockNumber,
        now: Millis,
    ) {
        self.note_reached(object, from, block, None, now);
    }

    /// A reader leaves, having reached this block last.
    pub fn handle_leave(&mut self, object: ObjectId, last: BlockNumber) {
        let place = self.place_of(object, self.segment_of(object, last));
        self.policy.handle_leave(&place);
    }

    /// Stores blocks of an object. Those that are here already stay.
    ///
    /// # Errors
    /// [`NotStored`]; blocks of segments before the one that is refused are stored.
    pub fn store(
        &mut self,
        object: ObjectId,
        blocks: Range<BlockNumber>,
        now: Millis,
    ) -> Result<(), NotStored> {
        if !self.is_current(object) {
            return Err(NotStored::Purged);
        }
        if blocks.end > self.blocks_in(object).unwrap_or_else(|| self.layout.blocks_in(u64::MAX)) {
            return Err(NotStored::OutOfRange);
        }
        // It stays, even if what is stored displaces all that it has.
        self.objects[object].readers += 1;
        let stored = self.store_by_segment(object, blocks, now);
        self.objects[object].readers -= 1;
        self.remove_if_idle(object);
        stored
    }

    /// A block is not there after all: unreadable, or never written.
    pub fn lose(&mut self, object: ObjectId, block: BlockNumber) {
        if self.contains(object, block) {
            self.remove_block(object, block, Removal::Invalid);
            self.announce_block(object, block);
            self.remove_if_idle(object);
        }
    }

    /// Forgets the object of a key; false if there is none. Its readers keep its number until they close it, and
    /// find none of its blocks.
    pub fn purge(&mut self, key: KeyHash) -> bool {
        let Some(object) = self.find(key) else { return false };
        self.purge_object(object);
        true
    }

    /// After a crash, or at a start: an object that the store found, and its blocks. No policy is asked.
    ///
    /// # Errors
    /// [`NotStored::OutOfRange`], [`NotStored::TooManyObjects`]; [`NotStored::NotWorthIt`] for blocks that exceed the
    /// bound of bytes, [`NotStored::Purged`] if a newer generation of the key was recovered. What is not here after
    /// that the store drops.
    pub fn recover(
        &mut self,
        key: KeyHash,
        facts: Facts,
        generation: Generation,
        blocks: impl IntoIterator<Item = BlockNumber>,
    ) -> Result<ObjectId, NotStored> {
        if facts.length.is_some_and(|length| length > self.layout.length_max()) {
            return Err(NotStored::OutOfRange);
        }
        if self.find(key).is_some_and(|object| !is_later(generation, self.generation(object))) {
            return Err(NotStored::Purged);
        }
        self.purge(key);
        if self.objects.len() >= self.objects_max {
            return Err(NotStored::TooManyObjects);
        }
        let next = generation.wrapping_add(1);
        if is_later(next, self.next_generation) {
            self.next_generation = next;
        }
        let object = self.objects.insert(key, facts, generation);
        let end = self.blocks_in(object).unwrap_or_else(|| self.layout.blocks_in(u64::MAX));
        let mut result = Ok(object);
        for block in blocks {
            let bytes = self.bytes_of(object, block);
            if block >= end {
                result = Err(NotStored::OutOfRange);
            } else if self.bytes + bytes > self.bytes_max {
                result = Err(NotStored::NotWorthIt);
            } else if !self.contains(object, block) {
                self.put_block(object, block, 0);
            }
        }
        self.remove_if_idle(object);
        result
    }

    /// What the store is to drop next.
    pub fn next_removed(&mut self) -> Option<Removed> {
        self.removed.pop_front()
    }

    fn note_reached(
        &mut self,
        object: ObjectId,
        from: Option<BlockNumber>,
        block: BlockNumber,
        unit: Option<UnitId>,
        now: Millis,
    ) {
        let from = from.map(|block| self.segment_of(object, block));
        let segment = self.segment_of(object, block);
        if from != Some(segment) {
            let place = self.place_of(object, segment);
            self.policy.handle_use(now, &place, unit, from);
        }
    }

    fn blocks_in(&self, object: ObjectId) -> Option<u32> {
        self.objects[object].length().map(|length| self.layout.blocks_in(length))
    }

    fn segment_of(&self, object: ObjectId, block: BlockNumber) -> SegmentNumber {
        self.layout.segment_of(block, self.blocks_in(object))
    }

    fn bytes_of(&self, object: ObjectId, block: BlockNumber) -> u64 {
        let bytes = self.layout.bytes_of(block, self.objects[object].length());
        match bytes.end - bytes.start {
            len if len == 0 || self.slot_bytes_min == 0 => len,
            len => len.max(self.slot_bytes_min).next_power_of_two(),
        }
    }

    fn place_of(&self, object: ObjectId, segment: SegmentNumber) -> Place {
        let length = self.objects[object].length();
        let object_blocks = self.blocks_in(object);
        let span = self.layout.blocks_of(segment, object_blocks);
        let start_of = |block| self.layout.bytes_of(block, length).start;
        let tail = span.tail.map_or(0, |block| self.bytes_of(object, block));
        Place {
            key: self.objects[object].handle,
            object,
            segment,
            first_block: span.body.start,
            blocks: (span.body.len() as u32 + u32::from(span.tail.is_some())).max(1),
            object_blocks,
            is_only: object_blocks.is_some_and(|blocks| self.layout.segments_in(blocks) == 1),
            bytes: start_of(span.body.end) - start_of(span.body.start) + tail,
        }
    }

    fn store_by_segment(
        &mut self,
        object: ObjectId,
        blocks: Range<BlockNumber>,
        now: Millis,
    ) -> Result<(), NotStored> {
        let mut next = blocks.start;
        while next < blocks.end {
            let segment = self.segment_of(object, next);
            let in_it = |block: &BlockNumber| self.segment_of(object, *block) == segment;
            let end = (next..blocks.end).find(|block| !in_it(block)).unwrap_or(blocks.end);
            self.store_in_segment(object, segment, next..end, now)?;
            next = end;
        }
        Ok(())
    }

    fn store_in_segment(
        &mut self,
        object: ObjectId,
        segment: SegmentNumber,
        blocks: Range<BlockNumber>,
        now: Millis,
    ) -> Result<(), NotStored> {
        let missing: Vec<_> = blocks.filter(|block| !self.contains(object, *block)).collect();
        let bytes = missing.iter().map(|block| self.bytes_of(object, *block)).sum();
        self.make_room(object, segment, bytes, now)?;
        for block in missing {
            self.put_block(object, block, now);
        }
        Ok(())
    }

    fn make_room(
        &mut self,
        object: ObjectId,
        segment: SegmentNumber,
        bytes: u64,
        now: Millis,
    ) -> Result<(), NotStored> {
        if self.bytes + bytes <= self.bytes_max {
            return Ok(());
        }
        let place = self.place_of(object, segment);
        if bytes > self.bytes_max || !self.policy.admits(now, &place, &self.units) {
            return Err(NotStored::NotWorthIt);
        }
        while self.bytes + bytes > self.bytes_max {
            let Some(victim) = self.policy.victim(now, &self.units) else {
                return Err(NotStored::NotWorthIt);
            };
            if self.units.place_of(victim) == (object, segment) {
                return Err(NotStored::NotWorthIt);
            }
            let wanted = if self.policy.peels() { self.bytes + bytes - self.bytes_max } else { u64::MAX };
            self.evict(victim, wanted);
        }
        Ok(())
    }

    fn make_room_for_object(&mut self, now: Millis) -> Result<(), NotStored> {
        for _ in 0..VICTIMS_TRIED {
            if self.objects.len() < self.objects_max {
                return Ok(());
            }
            let Some(victim) = self.policy.victim(now, &self.units) else { break };
            let (object, _) = self.units.place_of(victim);
            if self.objects[object].readers == 0 {
                self.drop_blocks(object, Removal::Evicted);
                self.remove_if_idle(object);
            } else {
                // It stays for its readers; without this unit the policy names another one.
                self.evict(victim, u64::MAX);
            }
        }
        if self.objects.len() < self.objects_max { Ok(()) } else { Err(NotStored::TooManyObjects) }
    }

    /// Evicts the last blocks of a unit, of so many bytes at least, or all.
    fn evict(&mut self, victim: UnitId, wanted: u64) {
        let (object, segment) = self.units.place_of(victim);
        let span = self.layout.blocks_of(segment, self.blocks_in(object));
        let blocks = &self.objects[object].blocks;
        let tail = span.tail.filter(|tail| blocks.contains(*tail));
        let mut freed = 0;
        let enough = |block: &BlockNumber| {
            let before = freed;
            freed += self.bytes_of(object, *block);
            before < wanted
        };
        // The last block goes last: it is read at a start, as the first ones are.
        let victims: Vec<_> = blocks.blocks_back(span.body).chain(tail).take_while(enough).collect();
        for block in victims {
            self.remove_block(object, block, Removal::Evicted);
            self.announce_block(object, block);
        }
        self.remove_if_idle(object);
    }

    fn purge_object(&mut self, object: ObjectId) {
        self.detach(object);
        self.drop_blocks(object, Removal::Invalid);
        self.remove_if_idle(object);
    }

    /// The object is not found by its key any more.
    fn detach(&mut self, object: ObjectId) {
        if self.is_current(object) {
            self.policy.handle_gone(self.objects[object].handle);
            self.objects.detach(object);
        }
    }

    fn drop_blocks(&mut self, object: ObjectId, why: Removal) {
        let blocks: Vec<_> = self.objects[object].blocks.blocks_back(0..u32::MAX).collect();
        for block in blocks {
            self.remove_block(object, block, why);
            self.announce_block(object, block);
        }
    }

    fn remove_if_idle(&mut self, object: ObjectId) {
        let record = &self.objects[object];
        if record.readers == 0 && record.blocks.is_empty() {
            let (key, generation, handle) = (record.key(), record.generation, record.handle);
            self.detach(object);
            self.objects.remove(object);
            self.removed.push_back(Removed::Object { key, generation, handle });
        }
    }

    fn announce_block(&mut self, object: ObjectId, block: BlockNumber) {
        let record = &self.objects[object];
        self.removed.push_back(Removed::Block { key: record.key(), generation: record.generation, block });
    }

    /// Adds a block that is not here.
    fn put_block(&mut self, object: ObjectId, block: BlockNumber, now: Millis) {
        let segment = self.segment_of(object, block);
        let unit = self.units.find(object, segment).unwrap_or_else(|| {
            let unit = self.units.insert(object, segment);
            self.policy.handle_inserted(now, unit, &self.place_of(object, segment));
            unit
        });
        self.objects[object].blocks.insert(block);
        self.resize(unit, self.units.bytes_of(unit) + self.bytes_of(object, block));
    }

    /// Removes a block that is here, and its unit if that was the last one.
    fn remove_block(&mut self, object: ObjectId, block: BlockNumber, why: Removal) {
        let segment = self.segment_of(object, block);
        self.objects[object].blocks.remove(block);
        let Some(unit) = self.units.find(object, segment) else { return };
        self.resize(unit, self.units.bytes_of(unit).saturating_sub(self.bytes_of(object, block)));
        if self.is_bare(object, segment) {
            let place = self.place_of(object, segment);
            self.policy.handle_removed(unit, &place, why);
            self.units.remove(unit);
        }
    }

    /// Whether no block of a segment is here; empty blocks count.
    fn is_bare(&self, object: ObjectId, segment: SegmentNumber) -> bool {
        let span = self.layout.blocks_of(segment, self.blocks_in(object));
        let blocks = &self.objects[object].blocks;
        blocks.blocks_back(span.body).next().is_none() && !span.tail.is_some_and(|tail| blocks.contains(tail))
    }

    fn resize(&mut self, unit: UnitId, after: u64) {
        let before = self.units.bytes_of(unit);
        self.units.set_bytes(unit, after);
        self.bytes = self.bytes - before + after;
        self.policy.handle_resized(unit, before, after);
    }
}

/// Whether a generation is later than another, numbers beginning anew after the last.
fn is_later(one: Generation, other: Generation) -> bool {
    one.wrapping_sub(other).cast_signed() > 0
}

//! The index of a cache: which blocks of which objects are here, within a bound of bytes and of objects.
//!
//! ```text
//! key ──► object: length, validator, handle, blocks that are here, readers
//!            └──► class: one policy and grouping ──► units: segments that are here; which one goes
//! ```
//!
//! The index decides; the store acts. After each call that may remove something, [`Index::next_removed`] names blocks and
//! objects that the store drops, before it writes what the call let in. A purge gives an object's key free at once: who reads the object may finish, and the
//! next request begins another one of a higher generation. Freshness is the object's, and the caller's affair.
//!
//! An object stays while it has a block or a reader. After a crash, [`Index::recover`] is told what the store found.

mod bitmap;
mod class;
mod object;
mod outcome;
mod shares;
mod stock;

use std::ops::Range;

pub use object::{Facts, Generation};
pub use outcome::{NotStored, Removed};

use self::class::Classes;
use self::stock::Stock;
use crate::layout::{BlockNumber, Layout, SegmentNumber};
use crate::policy::{Aim, CachePolicy, Millis, PolicyName, Removal, SegmentPlace};
use crate::rules::KeyHash;
pub use crate::units::ObjectId;
use crate::units::UnitId;

/// What an index is made for.
#[derive(Clone, Copy, Debug)]
pub struct IndexSettings {
    /// The size of blocks, and how those of objects are grouped that come without a policy.
    pub layout: Layout,
    /// The most bytes of blocks, at least 1.
    pub bytes_max: u64,
    /// The most objects, 1 to 2^31.
    pub objects_max: usize,
    /// Which segments are kept of objects that come without a policy.
    pub policy: PolicyName,
    /// What policies make the most of.
    pub aim: Aim,
    /// What the policies' random choices start from.
    pub seed: u64,
}

/// The index of a cache.
#[derive(Debug)]
pub struct Index {
    stock: Stock,
    bytes_max: u64,
    objects_max: usize,
    next_generation: Generation,
}

/// How many victims are looked at for an object that has no reader.
const VICTIMS_TRIED: usize = 16;

impl Index {
    /// An empty index.
    #[must_use]
    pub fn new(settings: IndexSettings) -> Self {
        let IndexSettings { layout, aim, bytes_max, seed, .. } = settings;
        let policy = CachePolicy { name: settings.policy, grouping: layout.grouping() };
        Self {
            stock: Stock::new(Classes::new(layout, policy, aim, bytes_max, seed)),
            bytes_max: settings.bytes_max,
            objects_max: settings.objects_max,
            next_generation: 1,
        }
    }

    /// The index for blocks that each take a slot of a power of two of bytes, at least so many: those count.
    #[must_use]
    pub fn in_slots(mut self, slot_bytes_min: u64) -> Self {
        self.stock.slot_bytes_min = slot_bytes_min;
        self
    }

    /// Changes the bound of bytes. What is beyond a lower one goes when something is stored, or by [`evict`](Self::evict).
    pub fn set_bytes_max(&mut self, bytes_max: u64) {
        self.bytes_max = bytes_max;
        self.stock.classes.set_bytes_max(bytes_max);
    }

    /// The bound of bytes.
    #[must_use]
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// How an object is divided.
    #[must_use]
    pub fn layout(&self, object: ObjectId) -> Layout {
        self.stock.layout(object)
    }

    /// Bytes of all blocks that are here.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.stock.bytes()
    }

    /// Objects, those that are purged and still read included.
    #[must_use]
    pub fn objects(&self) -> usize {
        self.stock.objects.len()
    }

    /// Segments of which something is here.
    #[must_use]
    pub fn segments(&self) -> usize {
        self.stock.classes.iter().map(|class| class.units.len()).sum()
    }

    /// Memory that the index itself takes, in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.stock.objects.heap_bytes() + self.stock.classes.heap_bytes()
    }

    /// The object of a key.
    #[must_use]
    pub fn find(&self, key: KeyHash) -> Option<ObjectId> {
        self.stock.objects.find(key)
    }

    /// What the caller said of an object.
    #[must_use]
    pub fn facts(&self, object: ObjectId) -> Facts {
        let class = self.stock.objects[object].class;
        Facts { policy: Some(self.stock.classes.policy_of(class)), ..self.stock.objects[object].facts() }
    }

    /// The generation of an object.
    #[must_use]
    pub fn generation(&self, object: ObjectId) -> Generation {
        self.stock.objects[object].generation
    }

    /// Whether an object was not purged.
    #[must_use]
    pub fn is_current(&self, object: ObjectId) -> bool {
        self.stock.objects[object].is_current()
    }

    /// The blocks of an object that are here, by falling number.
    pub fn blocks_back(&self, object: ObjectId) -> impl Iterator<Item = BlockNumber> {
        self.stock.objects[object].blocks.blocks_back(0..u32::MAX)
    }

    /// Whether a block is here.
    #[must_use]
    pub fn contains(&self, object: ObjectId, block: BlockNumber) -> bool {
        self.stock.contains(object, block)
    }

    /// Whether all blocks are here, and known to be all.
    #[must_use]
    pub fn is_complete(&self, object: ObjectId) -> bool {
        self.stock.blocks_in(object).is_some_and(|blocks| self.stock.objects[object].blocks.len() == blocks)
    }

    /// A reader comes: the object stays until [`Index::close`] is called as often.
    pub fn open(&mut self, object: ObjectId) {
        self.stock.objects[object].readers += 1;
    }

    /// A reader does not need the object any more.
    pub fn close(&mut self, object: ObjectId) {
        let readers = &mut self.stock.objects[object].readers;
        debug_assert!(*readers > 0, "closed more often than opened");
        *readers = readers.saturating_sub(1);
        self.stock.remove_if_idle(object);
    }

    /// Begins an object, which has no block yet and one reader. One of the same key is purged.
    ///
    /// # Errors
    /// [`NotStored::OutOfRange`] if it is too long, [`NotStored::TooManyObjects`].
    pub fn insert(&mut self, key: KeyHash, facts: Facts, now: Millis) -> Result<ObjectId, NotStored> {
        if facts.length.is_some_and(|length| length > self.length_max()) {
            return Err(NotStored::OutOfRange);
        }
        self.purge(key);
        self.make_room_for_object(now)?;
        let object = self.insert_object(key, facts, self.next_generation);
        self.next_generation = self.next_generation.wrapping_add(1);
        self.open(object);
        Ok(object)
    }

    /// The length has become known, with the end of a response. Blocks beyond it go.
    ///
    /// # Errors
    /// [`NotStored::OutOfRange`] if it is too long, or not the known one: the object is purged.
    pub fn set_length(&mut self, object: ObjectId, length: u64) -> Result<(), NotStored> {
        let known = self.stock.objects[object].length();
        if known == Some(length) {
            return Ok(());
        }
        if known.is_some() || length > self.length_max() {
            self.stock.purge_object(object);
            return Err(NotStored::OutOfRange);
        }
        // The last block changes its segment, and maybe its size.
        let last = self.stock.layout(object).blocks_in(length) - 1;
        let from_last: Vec<_> = self.stock.objects[object].blocks.blocks_back(last..u32::MAX).collect();
        for block in &from_last {
            self.stock.remove_block(object, *block, Removal::Invalid);
        }
        self.stock.objects[object].set_length(length);
        for block in from_last {
            if block == last {
                self.stock.put_block(object, block, 0);
            } else {
                self.stock.announce_block(object, block);
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
        let unit = self.stock.class(object).units.find(object, self.stock.segment_of(object, block));
        self.note_reached(object, from, block, unit, now);
    }

    /// A reader goes to a block that is fetched for it, and may get it when it is here: no use of what is kept.
    /// Otherwise as [`handle_use`](Self::handle_use).
    pub fn handle_miss(
        &mut self,
        object: ObjectId,
        from: Option<BlockNumber>,
        block: BlockNumber,
        now: Millis,
    ) {
        self.note_reached(object, from, block, None, now);
    }

    /// A reader that has reached this block last may go on from there, or have left.
    pub fn handle_pause(&mut self, object: ObjectId, last: BlockNumber) {
        let place = self.stock.place_of(object, self.stock.segment_of(object, last));
        self.stock.class_mut(object).machine.handle_pause(&place);
    }

    /// A reader leaves, having reached this block last.
    pub fn handle_leave(&mut self, object: ObjectId, last: BlockNumber) {
        let place = self.stock.place_of(object, self.stock.segment_of(object, last));
        self.stock.class_mut(object).machine.handle_leave(&place);
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
        if blocks.end > self.blocks_max(object) {
            return Err(NotStored::OutOfRange);
        }
        // It stays, even if what is stored displaces all that it has.
        self.stock.objects[object].readers += 1;
        let stored = self.store_by_segment(object, blocks, now);
        self.stock.objects[object].readers -= 1;
        self.stock.remove_if_idle(object);
        stored
    }

    /// What goes next while there is more than the bound allows: a content and a block of its segment.
    ///
    /// Until it is evicted, or [used](Self::handle_use), the answer stays the same.
    pub fn beyond_bound(&mut self, now: Millis) -> Option<(KeyHash, BlockNumber)> {
        if self.bytes() <= self.bytes_max {
            return None;
        }
        let number = self.stock.classes.fullest(0, 0);
        let class = &mut self.stock.classes[number];
        let victim = class.machine.victim(now, &class.units)?;
        let (object, segment) = class.units.place_of(victim);
        let span = self.stock.layout(object).blocks_of(segment, self.stock.blocks_in(object));
        let record = &self.stock.objects[object];
        let tail = span.tail.filter(|tail| record.blocks.contains(*tail));
        Some((record.key(), record.blocks.blocks_back(span.body).next().or(tail)?))
    }

    /// Evicts the segment of a block.
    pub fn evict(&mut self, object: ObjectId, block: BlockNumber) {
        let segment = self.stock.segment_of(object, block);
        if let Some(unit) = self.stock.class(object).units.find(object, segment) {
            self.stock.evict(self.stock.objects[object].class, unit, u64::MAX);
        }
    }

    /// A block is not there after all: unreadable, or never written.
    pub fn lose(&mut self, object: ObjectId, block: BlockNumber) {
        if self.stock.contains(object, block) {
            self.stock.remove_block(object, block, Removal::Invalid);
            self.stock.announce_block(object, block);
            self.stock.remove_if_idle(object);
        }
    }

    /// Forgets the object of a key; false if there is none. Its readers keep its number until they close it, and
    /// find none of its blocks.
    pub fn purge(&mut self, key: KeyHash) -> bool {
        let Some(object) = self.find(key) else { return false };
        self.stock.purge_object(object);
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
        if facts.length.is_some_and(|length| length > self.length_max()) {
            return Err(NotStored::OutOfRange);
        }
        if self.find(key).is_some_and(|object| !is_later(generation, self.generation(object))) {
            return Err(NotStored::Purged);
        }
        self.purge(key);
        if self.stock.objects.len() >= self.objects_max {
            return Err(NotStored::TooManyObjects);
        }
        let next = generation.wrapping_add(1);
        if is_later(next, self.next_generation) {
            self.next_generation = next;
        }
        let object = self.insert_object(key, facts, generation);
        let end = self.blocks_max(object);
        let mut result = Ok(object);
        for block in blocks {
            let bytes = self.stock.bytes_of(object, block);
            if block >= end {
                result = Err(NotStored::OutOfRange);
            } else if self.stock.bytes() + bytes > self.bytes_max {
                result = Err(NotStored::NotWorthIt);
            } else if !self.stock.contains(object, block) {
                self.stock.put_block(object, block, 0);
            }
        }
        self.stock.remove_if_idle(object);
        result
    }

    /// What the store is to drop next.
    pub fn next_removed(&mut self) -> Option<Removed> {
        self.stock.next_removed()
    }

    fn insert_object(&mut self, key: KeyHash, facts: Facts, generation: Generation) -> ObjectId {
        let class = facts.policy.map_or(0, |policy| self.stock.classes.of_policy(policy));
        self.stock.classes[class].objects += 1;
        self.stock.objects.insert(key, facts, class, generation)
    }

    /// The length of the longest object.
    fn length_max(&self) -> u64 {
        self.stock.classes[0].layout.length_max()
    }

    /// How many blocks an object has; as many as any can have, if its length is unknown.
    fn blocks_max(&self, object: ObjectId) -> u32 {
        self.stock.blocks_in(object).unwrap_or_else(|| self.stock.layout(object).blocks_in(u64::MAX))
    }

    fn note_reached(
        &mut self,
        object: ObjectId,
        from: Option<BlockNumber>,
        block: BlockNumber,
        unit: Option<UnitId>,
        now: Millis,
    ) {
        let from = from.map(|block| self.stock.segment_of(object, block));
        let segment = self.stock.segment_of(object, block);
        if from != Some(segment) {
            let place = self.stock.place_of(object, segment);
            if unit.is_none() {
                self.stock.classes.note_missed(self.stock.objects[object].class, &place);
            }
            self.stock.class_mut(object).machine.handle_use(now, &place, unit, from);
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
            let segment = self.stock.segment_of(object, next);
            let in_it = |block: &BlockNumber| self.stock.segment_of(object, *block) == segment;
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
        let missing: Vec<_> = blocks.filter(|block| !self.stock.contains(object, *block)).collect();
        let bytes = missing.iter().map(|block| self.stock.bytes_of(object, *block)).sum();
        self.make_room(object, segment, bytes, now)?;
        for block in missing {
            self.stock.put_block(object, block, now);
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
        if self.stock.bytes() + bytes <= self.bytes_max {
            return Ok(());
        }
        let place = self.stock.place_of(object, segment);
        let made = if bytes > self.bytes_max {
            Err(NotStored::NotWorthIt)
        } else {
            self.displace_for(&place, bytes, now)
        };
        if made.is_err() {
            self.stock.classes.note_gone(self.stock.objects[object].class, &place);
        }
        made
    }

    /// Evicts what a segment displaces: of its own class what it is worth more than, of others what is beyond their shares.
    fn displace_for(&mut self, place: &SegmentPlace, bytes: u64, now: Millis) -> Result<(), NotStored> {
        let own = self.stock.objects[place.object].class;
        let mut is_admitted = false;
        while self.stock.bytes() + bytes > self.bytes_max {
            let number = self.stock.classes.fullest(own, bytes);
            let class = &mut self.stock.classes[number];
            is_admitted |= number != own || class.machine.admits(now, place, &class.units);
            let victim = class.machine.victim(now, &class.units).filter(|_| is_admitted);
            let is_itself = |unit| class.units.place_of(unit) == (place.object, place.segment);
            let Some(victim) = victim.filter(|unit| number != own || !is_itself(*unit)) else {
                return Err(NotStored::NotWorthIt);
            };
            let peels = class.machine.peels();
            let wanted = if peels { self.stock.bytes() + bytes - self.bytes_max } else { u64::MAX };
            self.stock.evict(number, victim, wanted);
        }
        Ok(())
    }

    fn make_room_for_object(&mut self, now: Millis) -> Result<(), NotStored> {
        for _ in 0..VICTIMS_TRIED {
            if self.stock.objects.len() < self.objects_max {
                return Ok(());
            }
            let number = self.stock.classes.most_numerous(self.objects_max);
            let class = &mut self.stock.classes[number];
            let Some(victim) = class.machine.victim_by_number(now, &class.units) else { break };
            let (object, _) = class.units.place_of(victim);
            if self.stock.objects[object].readers == 0 {
                self.stock.drop_blocks(object, Removal::Evicted);
                self.stock.remove_if_idle(object);
            } else {
                // It stays for its readers; without this unit the policy names another one.
                self.stock.evict(number, victim, u64::MAX);
            }
        }
        if self.stock.objects.len() < self.objects_max { Ok(()) } else { Err(NotStored::TooManyObjects) }
    }
}

/// Whether a generation is later than another, numbers beginning anew after the last.
fn is_later(one: Generation, other: Generation) -> bool {
    one.wrapping_sub(other).cast_signed() > 0
}

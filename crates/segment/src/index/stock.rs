//! What is here: objects and their blocks, counted, with the policy told of each change.
//!
//! A block comes and goes in one place, so that bitmaps, units, bytes and the policy agree, and the store hears of all that
//! goes. What may come, and what goes for it, the [index](super::Index) decides.

use std::collections::VecDeque;

use super::class::{Class, Classes};
use super::object::Objects;
use super::outcome::Removed;
use super::shares::ClassId;
use crate::layout::{BlockNumber, Layout, SegmentNumber};
use crate::policy::{Millis, Removal, SegmentPlace};
use crate::units::{ObjectId, UnitId};

/// The blocks that are here.
#[derive(Debug)]
pub(super) struct Stock {
    pub(super) objects: Objects,
    pub(super) classes: Classes,
    bytes: u64,
    /// Blocks count as the slots that they lie in: powers of two of at least this. 0: by their length.
    pub(super) slot_bytes_min: u64,
    removed: VecDeque<Removed>,
}

impl Stock {
    pub(super) fn new(classes: Classes) -> Self {
        Self { objects: Objects::default(), classes, bytes: 0, slot_bytes_min: 0, removed: VecDeque::new() }
    }

    /// Bytes of all blocks.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What the store is to drop next.
    pub(super) fn next_removed(&mut self) -> Option<Removed> {
        self.removed.pop_front()
    }

    pub(super) fn contains(&self, object: ObjectId, block: BlockNumber) -> bool {
        self.objects[object].blocks.contains(block)
    }

    /// The class of an object.
    pub(super) fn class(&self, object: ObjectId) -> &Class {
        &self.classes[self.objects[object].class]
    }

    pub(super) fn class_mut(&mut self, object: ObjectId) -> &mut Class {
        &mut self.classes[self.objects[object].class]
    }

    /// How an object is divided.
    pub(super) fn layout(&self, object: ObjectId) -> Layout {
        self.class(object).layout
    }

    pub(super) fn blocks_in(&self, object: ObjectId) -> Option<u32> {
        self.objects[object].length().map(|length| self.layout(object).blocks_in(length))
    }

    pub(super) fn segment_of(&self, object: ObjectId, block: BlockNumber) -> SegmentNumber {
        self.layout(object).segment_of(block, self.blocks_in(object))
    }

    pub(super) fn bytes_of(&self, object: ObjectId, block: BlockNumber) -> u64 {
        let bytes = self.layout(object).bytes_of(block, self.objects[object].length());
        match bytes.end - bytes.start {
            len if len == 0 || self.slot_bytes_min == 0 => len,
            len => len.max(self.slot_bytes_min).next_power_of_two(),
        }
    }

    pub(super) fn place_of(&self, object: ObjectId, segment: SegmentNumber) -> SegmentPlace {
        let length = self.objects[object].length();
        let object_blocks = self.blocks_in(object);
        let layout = self.layout(object);
        let span = layout.blocks_of(segment, object_blocks);
        let start_of = |block| layout.bytes_of(block, length).start;
        let tail = span.tail.map_or(0, |block| self.bytes_of(object, block));
        SegmentPlace {
            key: self.objects[object].handle,
            object,
            segment,
            first_block: span.body.start,
            blocks: (span.body.len() as u32 + u32::from(span.tail.is_some())).max(1),
            object_blocks,
            is_only: object_blocks.is_some_and(|blocks| layout.segments_in(blocks) == 1),
            bytes: start_of(span.body.end) - start_of(span.body.start) + tail,
        }
    }

    /// Evicts the last blocks of a unit, of so many bytes at least, or all.
    pub(super) fn evict(&mut self, class: ClassId, victim: UnitId, wanted: u64) {
        let (object, segment) = self.classes[class].units.place_of(victim);
        let span = self.layout(object).blocks_of(segment, self.blocks_in(object));
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

    pub(super) fn purge_object(&mut self, object: ObjectId) {
        self.detach(object);
        self.drop_blocks(object, Removal::Invalid);
        self.remove_if_idle(object);
    }

    /// The object is not found by its key any more.
    fn detach(&mut self, object: ObjectId) {
        if self.objects[object].is_current() {
            let handle = self.objects[object].handle;
            self.class_mut(object).machine.handle_gone(handle);
            self.objects.detach(object);
        }
    }

    pub(super) fn drop_blocks(&mut self, object: ObjectId, why: Removal) {
        let blocks: Vec<_> = self.objects[object].blocks.blocks_back(0..u32::MAX).collect();
        for block in blocks {
            self.remove_block(object, block, why);
            self.announce_block(object, block);
        }
    }

    pub(super) fn remove_if_idle(&mut self, object: ObjectId) {
        let record = &self.objects[object];
        if record.readers == 0 && record.blocks.is_empty() {
            let (key, generation, handle) = (record.key(), record.generation, record.handle);
            self.detach(object);
            self.class_mut(object).objects -= 1;
            self.objects.remove(object);
            self.removed.push_back(Removed::Object { key, generation, handle });
        }
    }

    pub(super) fn announce_block(&mut self, object: ObjectId, block: BlockNumber) {
        let record = &self.objects[object];
        self.removed.push_back(Removed::Block { key: record.key(), generation: record.generation, block });
    }

    /// Adds a block that is not here.
    pub(super) fn put_block(&mut self, object: ObjectId, block: BlockNumber, now: Millis) {
        let segment = self.segment_of(object, block);
        let unit = self.class(object).units.find(object, segment).unwrap_or_else(|| {
            let place = self.place_of(object, segment);
            let class = self.class_mut(object);
            let unit = class.units.insert(object, segment);
            class.machine.handle_inserted(now, unit, &place);
            unit
        });
        self.objects[object].blocks.insert(block);
        self.resize(object, unit, self.class(object).units.bytes_of(unit) + self.bytes_of(object, block));
    }

    /// Removes a block that is here, and its unit if that was the last one.
    pub(super) fn remove_block(&mut self, object: ObjectId, block: BlockNumber, why: Removal) {
        let segment = self.segment_of(object, block);
        self.objects[object].blocks.remove(block);
        let units = &self.class(object).units;
        let Some(unit) = units.find(object, segment) else { return };
        self.resize(object, unit, units.bytes_of(unit).saturating_sub(self.bytes_of(object, block)));
        if self.is_bare(object, segment) {
            let place = self.place_of(object, segment);
            let class = self.class_mut(object);
            class.machine.handle_removed(unit, &place, why);
            class.units.remove(unit);
            if why == Removal::Evicted {
                self.classes.note_gone(self.objects[object].class, &place);
            }
        }
    }

    /// Whether no block of a segment is here; empty blocks count.
    fn is_bare(&self, object: ObjectId, segment: SegmentNumber) -> bool {
        let span = self.layout(object).blocks_of(segment, self.blocks_in(object));
        let blocks = &self.objects[object].blocks;
        blocks.blocks_back(span.body).next().is_none() && !span.tail.is_some_and(|tail| blocks.contains(tail))
    }

    fn resize(&mut self, object: ObjectId, unit: UnitId, after: u64) {
        let class = self.class_mut(object);
        let before = class.units.bytes_of(unit);
        class.units.set_bytes(unit, after);
        class.bytes = class.bytes - before + after;
        class.machine.handle_resized(unit, before, after);
        self.bytes = self.bytes - before + after;
    }
}

//! What the index and its policy say to each other.

use std::fmt;

use crate::layout::{BlockNumber, SegmentNumber};
use crate::units::{ObjectId, UnitId, Units};

/// Milliseconds since a moment of the caller's choice.
pub type Millis = u64;

/// What a policy is to make the most of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aim {
    /// Bytes that the origin need not send: for a disk.
    #[default]
    Bytes,
    /// Requests that are answered from here: for memory.
    Hits,
}

/// A segment of an object, whether it is here or not.
#[derive(Clone, Copy, Debug)]
pub struct SegmentPlace {
    /// The object's handle: by it a policy knows the object again after it has gone, and its next version.
    pub key: u64,
    /// The object.
    pub object: ObjectId,
    /// The segment.
    pub segment: SegmentNumber,
    /// The segment's first block.
    pub first_block: BlockNumber,
    /// How many blocks the whole segment has, at least 1.
    pub blocks: u32,
    /// How many blocks the object has, if its length is known.
    pub object_blocks: Option<u32>,
    /// Whether the object has no other segment.
    pub is_only: bool,
    /// Bytes of the whole segment; what a segment can hold at most, if the object's length is unknown.
    pub bytes: u64,
}

/// Why a unit is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// The policy named it as a victim.
    Evicted,
    /// Purged, replaced by a newer version, or unreadable.
    Invalid,
}

/// A policy of admission and replacement.
pub trait Policy: fmt::Debug + Send {
    /// A reader reaches a segment, which may be here or not, from another one, or none at its start. Once for each
    /// reader and segment, in front of all questions about storing it.
    fn handle_use(
        &mut self,
        now: Millis,
        place: &SegmentPlace,
        unit: Option<UnitId>,
        from: Option<SegmentNumber>,
    );

    /// How many bytes the policy's segments may have from now on, about.
    fn handle_room(&mut self, _bytes_max: u64) {}

    /// A reader may have left, having reached this segment last, or go on from it.
    fn handle_pause(&mut self, _: &SegmentPlace) {}

    /// A reader leaves, having reached this segment last.
    fn handle_leave(&mut self, _: &SegmentPlace) {}

    /// An object with this handle has gone: the policy may not hear any more of its readers.
    fn handle_gone(&mut self, _key: u64) {}

    /// Whether a segment is worth displacing another one. CacheRequest only when there is no room for it.
    fn admits(&mut self, now: Millis, place: &SegmentPlace, units: &Units) -> bool;

    /// A segment's first block is stored: it is a unit now, still of 0 bytes.
    fn handle_inserted(&mut self, now: Millis, unit: UnitId, place: &SegmentPlace);

    /// The bytes of a unit change.
    fn handle_resized(&mut self, unit: UnitId, before: u64, after: u64);

    /// A unit is about to be removed; its bytes are 0 already.
    fn handle_removed(&mut self, unit: UnitId, place: &SegmentPlace, why: Removal);

    /// The unit to evict, none if there is none.
    fn victim(&mut self, now: Millis, units: &Units) -> Option<UnitId>;

    /// The unit to evict where there are too many objects: how many bytes they have does not matter then.
    fn victim_by_number(&mut self, now: Millis, units: &Units) -> Option<UnitId> {
        self.victim(now, units)
    }

    /// Whether a victim loses its last blocks only, as many as are needed, rather than all.
    fn peels(&self) -> bool {
        false
    }

    /// Heap bytes in use.
    fn heap_bytes(&self) -> usize;
}

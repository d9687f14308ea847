//! Keys of segments that are gone: those that are asked for again soon were worth their room.

use std::collections::VecDeque;

use hashbrown::HashSet;

use super::interface::SegmentPlace;
use crate::layout::SegmentNumber;

type GhostKey = (u64, SegmentNumber);

/// Segments that are gone, the oldest forgotten first.
#[derive(Debug, Default)]
pub(crate) struct Ghosts {
    queue: VecDeque<(GhostKey, u64)>,
    keys: HashSet<GhostKey, foldhash::fast::FixedState>,
    bytes: u64,
}

/// A bound in number, for segments of few bytes.
const GHOSTS_MAX: usize = 1 << 20;

impl Ghosts {
    /// A segment is gone. As many are remembered as had `bytes_max` bytes.
    pub(crate) fn add(&mut self, place: &SegmentPlace, bytes_max: u64) {
        if self.keys.insert((place.key, place.segment)) {
            self.queue.push_back(((place.key, place.segment), place.bytes));
            self.bytes += place.bytes;
        }
        while (self.bytes > bytes_max || self.queue.len() > GHOSTS_MAX)
            && let Some((key, bytes)) = self.queue.pop_front()
        {
            self.keys.remove(&key);
            self.bytes -= bytes;
        }
    }

    /// Whether a segment is one; it stays one until its turn, even if it comes back.
    pub(crate) fn contains(&self, place: &SegmentPlace) -> bool {
        self.keys.contains(&(place.key, place.segment))
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.queue.capacity() * size_of::<(GhostKey, u64)>() + self.keys.allocation_size()
    }
}

//! The readers of one object that has several segments: how far they get, and where they are.

use super::stages::{AllReaders, STAGES, stage_of};
use crate::layout::{BlockNumber, SegmentNumber};
use crate::policy::interface::{Millis, SegmentPlace};

#[derive(Debug)]
pub(super) struct Viewing {
    /// Readers who reached each stage; halved before they overflow.
    reached: [u8; STAGES],
    starts: u8,
    /// Milliseconds that a reader takes for a block, 0 as long as that is unknown.
    pace_ms: f32,
    readers: Vec<Reader>,
}

/// A reader, and the segment that it reached last.
#[derive(Clone, Copy, Debug)]
struct Reader {
    segment: SegmentNumber,
    first_block: BlockNumber,
    at: Millis,
    /// It may ask for more, or have left.
    pauses: bool,
}

/// Readers whose places are remembered. Of an object with more that read on, all parts are wanted anyway.
const READERS_MAX: usize = 32;
/// A reader that pauses, and has not come further in so many times the time that a segment takes, has left: only its silence
/// tells.
const LATE: f32 = 4.0;
/// So many readers of other objects weigh as much as an object's own.
const PRIOR_READERS: f32 = 4.0;

impl Viewing {
    pub(super) fn new() -> Self {
        Self { reached: [0; STAGES], starts: 0, pace_ms: 0.0, readers: Vec::new() }
    }

    /// A reader reaches a segment.
    pub(super) fn handle_use(
        &mut self,
        now: Millis,
        place: &SegmentPlace,
        from: Option<SegmentNumber>,
        all: &mut AllReaders,
    ) {
        let came_from = from.and_then(|segment| self.take_reader(segment));
        if let Some(before) = came_from.filter(|before| before.segment + 1 == place.segment) {
            let blocks = place.first_block.saturating_sub(before.first_block).max(1);
            let pace_ms = now.saturating_sub(before.at) as f32 / blocks as f32;
            self.pace_ms = if self.pace_ms == 0.0 { pace_ms } else { self.pace_ms * 0.75 + pace_ms * 0.25 };
        }
        self.add_reader(Reader {
            segment: place.segment,
            first_block: place.first_block,
            at: now,
            pauses: false,
        });
        if from.is_none() {
            self.starts += 1;
            all.handle_start(place.object_blocks);
        }
        let stage = stage_of(place.first_block);
        let stage_before = came_from.map(|before| stage_of(before.first_block));
        if stage_before != Some(stage) {
            self.reached[stage] += 1;
            all.handle_reached(stage);
        }
        if self.starts == u8::MAX || self.reached[stage] == u8::MAX {
            for count in self.reached.iter_mut().chain([&mut self.starts]) {
                *count /= 2;
            }
        }
    }

    /// A reader may have left, from a segment.
    pub(super) fn handle_pause(&mut self, segment: SegmentNumber) {
        let its = |reader: &&mut Reader| reader.segment == segment && !reader.pauses;
        if let Some(reader) = self.readers.iter_mut().find(its) {
            reader.pauses = true;
        }
    }

    /// A reader leaves, from a segment.
    pub(super) fn handle_leave(&mut self, segment: SegmentNumber) {
        self.take_reader(segment);
    }

    /// All readers leave.
    pub(super) fn forget_readers(&mut self) {
        self.readers = Vec::new();
    }

    /// The share of readers who reach a block, 0 to 1.
    pub(super) fn share(&self, block: BlockNumber, all: &AllReaders) -> f32 {
        let stage = stage_of(block);
        let reached = f32::from(self.reached[stage]) + PRIOR_READERS * all.share(stage);
        (reached / (f32::from(self.starts) + PRIOR_READERS)).min(1.0)
    }

    /// How often a millisecond the segment will be asked for by readers who are on their way to it: each with the
    /// probability that it gets there, within the time that it needs.
    pub(super) fn on_their_way(
        &self,
        now: Millis,
        first_block: BlockNumber,
        blocks: u32,
        all: &AllReaders,
    ) -> f32 {
        let share = self.share(first_block, all);
        // Nearer than the time to read a segment need not be told apart.
        let soonest_ms = (self.pace_ms * blocks as f32).max(1.0);
        let of_reader = |reader: &Reader| {
            let way_ms = (first_block - reader.first_block) as f32 * self.pace_ms;
            let left_ms = way_ms - now.saturating_sub(reader.at) as f32;
            let gets_there = (share / self.share(reader.first_block, all)).min(1.0);
            gets_there / left_ms.max(soonest_ms)
        };
        let is_late =
            |reader: &Reader| reader.pauses && now.saturating_sub(reader.at) as f32 > LATE * soonest_ms;
        let behind =
            self.readers.iter().filter(|reader| reader.first_block < first_block && !is_late(reader));
        if self.pace_ms == 0.0 { 0.0 } else { behind.map(of_reader).sum() }
    }

    /// Whether no reader is there.
    pub(super) fn is_idle(&self) -> bool {
        self.readers.is_empty()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.readers.capacity() * size_of::<Reader>()
    }

    /// Where there is no room, the reader that has paused longest makes some.
    fn add_reader(&mut self, reader: Reader) {
        if self.readers.len() < READERS_MAX {
            self.readers.push(reader);
        } else if let Some(silent) =
            self.readers.iter_mut().filter(|known| known.pauses).min_by_key(|known| known.at)
        {
            *silent = reader;
        }
    }

    fn take_reader(&mut self, segment: SegmentNumber) -> Option<Reader> {
        let at = self.readers.iter().position(|reader| reader.segment == segment)?;
        Some(self.readers.swap_remove(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::ObjectId;

    fn place(segment: SegmentNumber) -> SegmentPlace {
        SegmentPlace {
            key: 1,
            object: ObjectId(0),
            segment,
            first_block: segment,
            blocks: 1,
            object_blocks: Some(100),
            is_only: false,
            bytes: 4096,
        }
    }

    /// Goal: a reader counts also where as many as are remembered have broken off, and not where they read on.
    #[test]
    fn readers_that_pause_make_room() {
        for breaks_off in [true, false] {
            let (mut all, mut viewing) = (AllReaders::default(), Viewing::new());
            for _ in 0..READERS_MAX {
                viewing.handle_use(0, &place(0), None, &mut all);
                viewing.handle_use(1_000, &place(1), Some(0), &mut all);
                if breaks_off {
                    viewing.handle_pause(1);
                }
            }
            viewing.handle_use(100_000, &place(50), None, &mut all);
            let [behind, ahead] = [50, 51].map(|block| viewing.on_their_way(100_000, block, 1, &all));
            assert_eq!(ahead > behind, breaks_off, "{behind} {ahead}");
        }
    }
}

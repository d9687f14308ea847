//! How far readers get: stages of an object, and the share of readers who reach each.
//!
//! Stage 0 begins with block 0, stage 1 with block 2, then 6, 14, …: as exponential segments do, whatever the grouping.

use crate::layout::BlockNumber;

/// Up to 2^24 blocks; what is beyond belongs to the last stage.
pub(super) const STAGES: usize = 24;

/// The stage of a block.
pub(super) fn stage_of(block: BlockNumber) -> usize {
    (block.saturating_add(2).ilog2() as usize - 1).min(STAGES - 1)
}

/// The readers of all objects.
#[derive(Debug)]
pub(super) struct AllReaders {
    /// Readers who reached a stage, and readers whose object has it.
    reached: [u32; STAGES],
    could: [u32; STAGES],
}

/// Then both counters are halved: habits change.
const COUNT_MAX: u32 = 1 << 16;

impl Default for AllReaders {
    fn default() -> Self {
        Self { reached: [1; STAGES], could: [1; STAGES] }
    }
}

impl AllReaders {
    /// A reader starts with an object of so many blocks; all stages if that is unknown.
    pub(super) fn handle_start(&mut self, blocks: Option<u32>) {
        let last = blocks.map_or(STAGES - 1, |blocks| stage_of(blocks.saturating_sub(1)));
        for could in &mut self.could[..=last] {
            *could += 1;
        }
        if self.could[0] >= COUNT_MAX {
            for count in self.could.iter_mut().chain(&mut self.reached) {
                *count = (*count / 2).max(1);
            }
        }
    }

    /// A reader reaches a stage.
    pub(super) fn handle_reached(&mut self, stage: usize) {
        self.reached[stage] += 1;
    }

    /// The share of readers who reach a stage, 0 to 1.
    pub(super) fn share(&self, stage: usize) -> f32 {
        (self.reached[stage] as f32 / self.could[stage] as f32).min(1.0)
    }
}

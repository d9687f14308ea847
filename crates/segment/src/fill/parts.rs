//! A reader and a fill of an object.

use std::collections::VecDeque;
use std::ops::Range;

use super::events::{FillId, ReaderId};
use crate::layout::BlockNumber;

#[derive(Debug)]
pub(super) struct Reader {
    pub(super) id: ReaderId,
    /// What is left of it; the first block is wanted now.
    pub(super) wanted: Range<BlockNumber>,
    /// Was it served a block?
    pub(super) began: bool,
    /// Waits for the first block of `wanted`; if not, the caller gives it that block.
    pub(super) waits: bool,
    /// The fill that it joined.
    pub(super) fill: Option<FillId>,
}

#[derive(Debug)]
pub(super) struct Fill {
    pub(super) id: FillId,
    /// The block that comes next.
    pub(super) at: BlockNumber,
    /// Where it ends, if that is known.
    pub(super) end: Option<BlockNumber>,
    /// Where the response ends, which is later if another fill has begun in front of that.
    pub(super) asked_end: Option<BlockNumber>,
    /// The fill goes on until there without a reader.
    pub(super) finish_to: BlockNumber,
    pub(super) state: FillState,
    /// Its last blocks, which are in memory.
    pub(super) last: VecDeque<BlockNumber>,
    /// Fills that ended too soon in a row, this one included.
    pub(super) failures: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FillState {
    /// The head has not come.
    Asked,
    Flows,
    Paused,
    /// Nothing comes any more; readers still want its last blocks.
    Ended,
}

impl Fill {
    /// Whether more may come.
    pub(super) fn is_open(&self) -> bool {
        self.state != FillState::Ended
    }
}

//! How an object is divided: into blocks, which are fetched and stored, and segments, which are kept and evicted.
//!
//! ```text
//! blocks       0 1 2 3 4 5 6 7 8 9 …        last
//! uniform(4)   0 0 0 0 1 1 1 1 2 2 …        0
//! exponential  0 0 1 1 1 1 2 2 2 2 …        0
//! pyramid      0 1 2 2 3 3 3 3 4 4 …        0
//! ```
//!
//! The last block counts as part of segment 0, the prefix: players of MP4 read the index of a film at its end before
//! they show the first picture. An empty object has one empty block, so that every stored object has a block.

use std::fmt;
use std::num::NonZeroU32;
use std::ops::Range;
use std::str::FromStr;

/// The number of a block within its object, from 0.
pub type BlockNumber = u32;

/// The number of a segment within its object, from 0.
pub type SegmentNumber = u32;

/// How blocks are grouped into segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Grouping {
    /// Segments of this many blocks.
    Uniform(NonZeroU32),
    /// Segment *n* has 2^(n+1) blocks: 2, 4, 8, … (Wowra's seminar on server optimizations).
    Exponential,
    /// Segment 0 is block 0, segment *n* has 2^(n-1) blocks: 1, 1, 2, 4, … (Wu, Yu and Wolf, WWW10, 2001).
    Pyramid,
    /// The object is one segment.
    Whole,
}

impl Grouping {
    /// Segments of four blocks: a megabyte of blocks of the default size, as caches that slice files have it.
    pub const UNIFORM: Self = Self::Uniform(NonZeroU32::new(4).unwrap());

    /// What is accepted as a grouping.
    pub const WORDS: &str = "uniform, uniform:BLOCKS, exponential, pyramid, whole";
}

/// `uniform:4`, `exponential`, `pyramid`, `whole`.
impl fmt::Display for Grouping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform(blocks) => write!(f, "uniform:{blocks}"),
            Self::Exponential => f.write_str("exponential"),
            Self::Pyramid => f.write_str("pyramid"),
            Self::Whole => f.write_str("whole"),
        }
    }
}

/// A word that is no grouping's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupingError(String);

impl fmt::Display for GroupingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no grouping is called `{}`; there are {}", self.0, Grouping::WORDS)
    }
}

impl std::error::Error for GroupingError {}

impl FromStr for Grouping {
    type Err = GroupingError;

    fn from_str(word: &str) -> Result<Self, GroupingError> {
        let blocks = word.strip_prefix("uniform:").map(str::parse::<NonZeroU32>);
        match (word, blocks) {
            (_, Some(Ok(blocks))) => Ok(Self::Uniform(blocks)),
            ("uniform", _) => Ok(Self::UNIFORM),
            ("exponential", _) => Ok(Self::Exponential),
            ("pyramid", _) => Ok(Self::Pyramid),
            ("whole", _) => Ok(Self::Whole),
            _ => Err(GroupingError(word.into())),
        }
    }
}

/// The division of an object into blocks and segments. All objects of a cache have blocks of the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    block_shift: u32,
    grouping: Grouping,
}

/// A block size that is no power of two, or out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizeError(u64);

impl fmt::Display for BlockSizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a block cannot have {} bytes: expected a power of two from {} to {}",
            self.0,
            Layout::BLOCK_BYTES_MIN,
            Layout::BLOCK_BYTES_MAX
        )
    }
}

impl std::error::Error for BlockSizeError {}

impl Layout {
    /// A page, which is what a disk reads at least.
    pub const BLOCK_BYTES_MIN: u64 = 4 << 10;
    /// More would be fetched ahead than a client is likely to read.
    pub const BLOCK_BYTES_MAX: u64 = 64 << 20;
    /// A second of film at 2 Mbit/s, and a thousandth of a percent of a disk.
    pub const BLOCK_BYTES_DEFAULT: u64 = 256 << 10;

    /// Blocks of `block_bytes`, a power of two from [`Self::BLOCK_BYTES_MIN`] to [`Self::BLOCK_BYTES_MAX`].
    ///
    /// # Errors
    /// Another size.
    pub fn new(block_bytes: u64, grouping: Grouping) -> Result<Self, BlockSizeError> {
        let range = Self::BLOCK_BYTES_MIN..=Self::BLOCK_BYTES_MAX;
        if !block_bytes.is_power_of_two() || !range.contains(&block_bytes) {
            return Err(BlockSizeError(block_bytes));
        }
        Ok(Self { block_shift: block_bytes.trailing_zeros(), grouping })
    }

    /// Blocks of the same size, grouped otherwise.
    #[must_use]
    pub fn grouped(self, grouping: Grouping) -> Self {
        Self { grouping, ..self }
    }

    /// The size of a block in bytes; an object's last block may be shorter.
    #[must_use]
    pub fn block_bytes(&self) -> u64 {
        1 << self.block_shift
    }

    /// How blocks are grouped.
    #[must_use]
    pub fn grouping(&self) -> Grouping {
        self.grouping
    }

    /// The longest object that can be divided, in bytes: 2^31 blocks.
    #[must_use]
    pub fn length_max(&self) -> u64 {
        u64::from(BLOCKS_MAX) << self.block_shift
    }

    /// The block that holds a byte. Offsets from [`Self::length_max`] on share the number after the last block.
    #[must_use]
    pub fn block_of(&self, offset: u64) -> BlockNumber {
        (offset.min(self.length_max()) >> self.block_shift) as BlockNumber
    }

    /// How many blocks an object of this length has, at least 1.
    #[must_use]
    pub fn blocks_in(&self, length: u64) -> u32 {
        (length.min(self.length_max()).div_ceil(self.block_bytes()) as u32).max(1)
    }

    /// The blocks that hold a range of bytes; those that hold none of an empty range are none.
    #[must_use]
    pub fn blocks_over(&self, bytes: &Range<u64>) -> Range<BlockNumber> {
        let first = self.block_of(bytes.start);
        if bytes.is_empty() {
            return first..first;
        }
        first..self.block_of(bytes.end - 1) + 1
    }

    /// The bytes of a block in an object of this length; all that a block can hold if the length is unknown.
    #[must_use]
    pub fn bytes_of(&self, block: BlockNumber, length: Option<u64>) -> Range<u64> {
        let start = u64::from(block) << self.block_shift;
        let end = start + self.block_bytes();
        let length = length.unwrap_or(u64::MAX);
        start.min(length)..end.min(length)
    }

    /// The segment of a block in an object of so many blocks, or of an unknown number.
    #[must_use]
    pub fn segment_of(&self, block: BlockNumber, blocks: Option<u32>) -> SegmentNumber {
        if blocks.is_some_and(|blocks| block + 1 >= blocks) {
            return 0;
        }
        match self.grouping {
            Grouping::Uniform(size) => block / size,
            // ⌊log2(block + 2)⌋ - 1
            Grouping::Exponential => (block + 2).ilog2() - 1,
            Grouping::Pyramid => block.checked_ilog2().map_or(0, |log| log + 1),
            Grouping::Whole => 0,
        }
    }

    /// The blocks of a segment in an object of so many blocks, or of an unknown number.
    #[must_use]
    pub fn blocks_of(&self, segment: SegmentNumber, blocks: Option<u32>) -> SegmentBlocks {
        let end = blocks.map_or(BLOCKS_MAX, |blocks| blocks.saturating_sub(1));
        let first = |segment| self.first_block_of(segment).min(end);
        let tail = blocks.filter(|_| segment == 0).map(|blocks| blocks.saturating_sub(1));
        SegmentBlocks { body: first(segment)..first(segment.saturating_add(1)), tail }
    }

    /// How many segments an object of so many blocks has, at least 1.
    #[must_use]
    pub fn segments_in(&self, blocks: u32) -> u32 {
        // The last block is in segment 0 anyway.
        blocks.checked_sub(2).map_or(1, |block| self.segment_of(block, None) + 1)
    }

    /// The first block of a segment, as if the object had no end.
    #[must_use]
    pub fn first_block_of(&self, segment: SegmentNumber) -> BlockNumber {
        let first = match self.grouping {
            Grouping::Uniform(size) => u64::from(segment) * u64::from(size.get()),
            Grouping::Exponential => (2 << segment.min(32)) - 2,
            Grouping::Pyramid => (1 << segment.min(32)) >> 1,
            Grouping::Whole if segment == 0 => 0,
            Grouping::Whole => u64::from(BLOCKS_MAX),
        };
        first.min(u64::from(BLOCKS_MAX)) as BlockNumber
    }
}

/// The blocks of a segment: neighbours, and for segment 0 the object's last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentBlocks {
    /// Neighbours, which may be none.
    pub body: Range<BlockNumber>,
    /// The object's last block, if it is known and this is segment 0.
    pub tail: Option<BlockNumber>,
}

/// So that numbers of blocks and their doubles fit into 32 bits.
const BLOCKS_MAX: u32 = 1 << 31;

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(grouping: Grouping, blocks: u32) -> Vec<SegmentNumber> {
        let layout = Layout::new(4096, grouping).unwrap();
        (0..blocks).map(|block| layout.segment_of(block, Some(blocks))).collect()
    }

    #[test]
    fn the_picture_above_is_true() {
        let four = NonZeroU32::new(4).unwrap();
        assert_eq!(segments(Grouping::Uniform(four), 11), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 0]);
        assert_eq!(segments(Grouping::Exponential, 11), [0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 0]);
        assert_eq!(segments(Grouping::Pyramid, 11), [0, 1, 2, 2, 3, 3, 3, 3, 4, 4, 0]);
        assert_eq!(segments(Grouping::Whole, 4), [0; 4]);
    }

    #[test]
    fn other_block_sizes_are_refused() {
        for wrong in [0, 4095, 2048, 3 << 12, 128 << 20] {
            let error = Layout::new(wrong, Grouping::Whole).unwrap_err();
            assert!(error.to_string().contains("from 4096 to 67108864"), "{error}");
        }
    }

    #[test]
    fn an_empty_object_has_an_empty_block() {
        let layout = Layout::new(4096, Grouping::Exponential).unwrap();
        assert_eq!((layout.blocks_in(0), layout.bytes_of(0, Some(0))), (1, 0..0));
        assert_eq!(layout.blocks_over(&(0..0)), 0..0);
    }
}

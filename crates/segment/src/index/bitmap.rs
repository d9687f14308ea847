//! Which blocks of an object are here.
//!
//! Most objects have few blocks, which fit into one word. Of a longer one only words with a block are kept: an object
//! of a terabyte whose end is read costs as much as a picture.

use std::ops::Range;

use crate::layout::BlockNumber;

/// A set of block numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Bitmap {
    /// Blocks 0 to 63.
    Few(u64),
    /// Words that are not 0, by rising number; the box keeps objects small.
    #[expect(clippy::box_collection)]
    Many(Box<Vec<(u32, u64)>>),
}

const WORD: u32 = u64::BITS;

impl Default for Bitmap {
    fn default() -> Self {
        Self::Few(0)
    }
}

impl Bitmap {
    pub(super) fn contains(&self, block: BlockNumber) -> bool {
        self.word(block / WORD) & bit(block) != 0
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Few(word) => *word == 0,
            Self::Many(words) => words.is_empty(),
        }
    }

    pub(super) fn len(&self) -> u32 {
        match self {
            Self::Few(word) => word.count_ones(),
            Self::Many(words) => words.iter().map(|(_, word)| word.count_ones()).sum(),
        }
    }

    /// Adds a block; false if it is there.
    pub(super) fn insert(&mut self, block: BlockNumber) -> bool {
        if self.contains(block) {
            return false;
        }
        let number = block / WORD;
        match self {
            Self::Few(word) if number == 0 => *word |= bit(block),
            Self::Few(word) => {
                let first = Some((0, *word)).filter(|(_, word)| *word != 0);
                *self = Self::Many(Box::new(first.into_iter().chain([(number, bit(block))]).collect()));
            }
            Self::Many(words) => match words.binary_search_by_key(&number, |(number, _)| *number) {
                Ok(at) => words[at].1 |= bit(block),
                Err(at) => words.insert(at, (number, bit(block))),
            },
        }
        true
    }

    /// Removes a block; false if it is not there.
    pub(super) fn remove(&mut self, block: BlockNumber) -> bool {
        if !self.contains(block) {
            return false;
        }
        match self {
            Self::Few(word) => *word &= !bit(block),
            Self::Many(words) => {
                if let Ok(at) = words.binary_search_by_key(&(block / WORD), |(number, _)| *number) {
                    words[at].1 &= !bit(block);
                    if words[at].1 == 0 {
                        words.remove(at);
                    }
                }
                if words.is_empty() {
                    *self = Self::default();
                }
            }
        }
        true
    }

    /// The blocks of the range, by falling number.
    pub(super) fn blocks_back(&self, range: Range<BlockNumber>) -> impl Iterator<Item = BlockNumber> {
        let words: &[(u32, u64)] = match self {
            Self::Few(_) => &[],
            Self::Many(words) => words,
        };
        let few = match self {
            Self::Few(word) => Some((0, *word)),
            Self::Many(_) => None,
        };
        let low = words.partition_point(|(number, _)| *number < range.start / WORD);
        let high = words.partition_point(|(number, _)| *number < range.end.div_ceil(WORD));
        let words = words[low..high.max(low)].iter().copied().rev().chain(few);
        words
            .flat_map(|(number, word)| {
                (0..WORD).rev().filter(move |at| word >> at & 1 != 0).map(move |at| number * WORD + at)
            })
            .filter(move |block| range.contains(block))
    }

    /// Heap bytes in use.
    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Self::Few(_) => 0,
            Self::Many(words) => size_of::<Vec<(u32, u64)>>() + words.capacity() * size_of::<(u32, u64)>(),
        }
    }

    fn word(&self, number: u32) -> u64 {
        match self {
            Self::Few(word) if number == 0 => *word,
            Self::Few(_) => 0,
            Self::Many(words) => {
                words.binary_search_by_key(&number, |(number, _)| *number).map_or(0, |at| words[at].1)
            }
        }
    }
}

fn bit(block: BlockNumber) -> u64 {
    1 << (block % WORD)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Any insertions and removals leave what a plain set holds.
        #[test]
        fn as_a_set(changes in prop::collection::vec((any::<bool>(), 0..300_u32), 0..200), from in 0..300_u32, len in 0..300_u32) {
            let (mut bitmap, mut set) = (Bitmap::default(), BTreeSet::new());
            for (adds, block) in changes {
                if adds {
                    prop_assert_eq!(bitmap.insert(block), set.insert(block));
                } else {
                    prop_assert_eq!(bitmap.remove(block), set.remove(&block));
                }
                prop_assert_eq!((bitmap.len() as usize, bitmap.is_empty()), (set.len(), set.is_empty()));
            }
            prop_assert!((0..301).all(|block| bitmap.contains(block) == set.contains(&block)));
            let range = from..from + len;
            let expected: Vec<_> = set.range(range.clone()).rev().copied().collect();
            prop_assert_eq!(bitmap.blocks_back(range).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn the_end_of_a_long_object_costs_little() {
        let mut bitmap = Bitmap::default();
        bitmap.insert((1 << 31) - 1);
        assert!(bitmap.heap_bytes() < 200);
        assert_eq!(size_of::<Bitmap>(), 16);
    }
}

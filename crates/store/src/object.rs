//! What is known of an object, in as few bytes as possible: a store has millions of them.

use std::collections::BTreeMap;

use baton_buf::{Buffer, Slice};

use crate::journal::entry::Stored;
use crate::slots::Slot;

/// An object.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) generation: u32,
    pub(crate) kind: u8,
    pub(crate) record: Record,
    blocks: Blocks,
    memory: Option<Box<InMemory>>,
}

/// Where an object's record is.
#[derive(Clone, Debug)]
pub(crate) enum Record {
    /// On its way to the journal; the queue's bound covers it.
    Queued(Buffer),
    /// In memory, since no disk takes it.
    Memory(Buffer),
    /// In a frame of the journal.
    Journal { offset: u64, len: u32 },
}

/// A block on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DiskBlock {
    checksum: u64,
    pub(crate) number: u32,
    slot_index: u32,
    pub(crate) len: u32,
    slot_class: u8,
    /// Whether its bytes have matched their checksum since the start.
    pub(crate) is_verified: bool,
}

/// Blocks by number.
#[derive(Debug)]
enum Blocks {
    None,
    One(DiskBlock),
    Many(Box<SortedBlocks>),
}

#[derive(Debug)]
struct SortedBlocks(Vec<DiskBlock>);

/// Blocks in memory, by number.
#[derive(Debug, Default)]
struct InMemory(BTreeMap<u32, MemoryBlock>);

/// A block in memory.
#[derive(Clone, Debug)]
pub(crate) struct MemoryBlock {
    pub(crate) bytes: Slice,
    /// Whether the owner of the store wants it here.
    pub(crate) is_held: bool,
    /// Whether it is on its way to the disk.
    pub(crate) is_queued: bool,
}

impl Record {
    /// Whether it is the very same, not one with the same bytes.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Queued(a), Self::Queued(b)) | (Self::Memory(a), Self::Memory(b)) => {
                std::ptr::eq(&raw const a[..], &raw const b[..])
            }
            (Self::Journal { offset: a, .. }, Self::Journal { offset: b, .. }) => a == b,
            _ => false,
        }
    }
}

impl DiskBlock {
    pub(crate) fn new(number: u32, stored: Stored, is_verified: bool) -> Self {
        let Stored { slot, len, checksum } = stored;
        Self { checksum, number, slot_index: slot.index, len, slot_class: slot.class, is_verified }
    }

    pub(crate) fn slot(&self) -> Slot {
        Slot { class: self.slot_class, index: self.slot_index }
    }

    pub(crate) fn stored(&self) -> Stored {
        Stored { slot: self.slot(), len: self.len, checksum: self.checksum }
    }
}

impl Object {
    pub(crate) fn new(generation: u32, kind: u8, record: Record) -> Self {
        Self { generation, kind, record, blocks: Blocks::None, memory: None }
    }

    /// The blocks on the disk, by number.
    pub(crate) fn disk_blocks(&self) -> &[DiskBlock] {
        match &self.blocks {
            Blocks::None => &[],
            Blocks::One(block) => std::slice::from_ref(block),
            Blocks::Many(blocks) => &blocks.0,
        }
    }

    /// A block on the disk.
    pub(crate) fn disk_block(&self, number: u32) -> Option<&DiskBlock> {
        let blocks = self.disk_blocks();
        let at = blocks.binary_search_by_key(&number, |block| block.number).ok()?;
        Some(&blocks[at])
    }

    /// A block's bytes match their checksum.
    pub(crate) fn set_verified(&mut self, number: u32) {
        let blocks = match &mut self.blocks {
            Blocks::None => return,
            Blocks::One(block) => std::slice::from_mut(block),
            Blocks::Many(blocks) => &mut blocks.0,
        };
        if let Ok(at) = blocks.binary_search_by_key(&number, |block| block.number) {
            blocks[at].is_verified = true;
        }
    }

    /// Adds a block, in the place of one of the same number, which it returns.
    pub(crate) fn insert_disk_block(&mut self, block: DiskBlock) -> Option<DiskBlock> {
        let mut blocks = match std::mem::replace(&mut self.blocks, Blocks::None) {
            Blocks::None => {
                self.blocks = Blocks::One(block);
                return None;
            }
            Blocks::One(first) => Box::new(SortedBlocks(vec![first])),
            Blocks::Many(blocks) => blocks,
        };
        let replaced = match blocks.0.binary_search_by_key(&block.number, |block| block.number) {
            Ok(at) => Some(std::mem::replace(&mut blocks.0[at], block)),
            Err(at) => {
                blocks.0.insert(at, block);
                None
            }
        };
        self.blocks = Blocks::Many(blocks);
        replaced
    }

    /// Removes a block.
    pub(crate) fn remove_disk_block(&mut self, number: u32) -> Option<DiskBlock> {
        match &mut self.blocks {
            Blocks::One(block) if block.number == number => {
                let block = *block;
                self.blocks = Blocks::None;
                Some(block)
            }
            Blocks::Many(blocks) => {
                let at = blocks.0.binary_search_by_key(&number, |block| block.number).ok()?;
                Some(blocks.0.remove(at))
            }
            Blocks::None | Blocks::One(_) => None,
        }
    }

    /// Removes all blocks on the disk.
    pub(crate) fn take_disk_blocks(&mut self) -> Vec<DiskBlock> {
        match std::mem::replace(&mut self.blocks, Blocks::None) {
            Blocks::None => Vec::new(),
            Blocks::One(block) => vec![block],
            Blocks::Many(blocks) => blocks.0,
        }
    }

    /// The blocks in memory, by number.
    pub(crate) fn memory_blocks(&self) -> impl Iterator<Item = (u32, &MemoryBlock)> {
        self.memory.iter().flat_map(|memory| memory.0.iter().map(|(number, block)| (*number, block)))
    }

    /// A block in memory.
    pub(crate) fn memory_block(&self, number: u32) -> Option<&MemoryBlock> {
        self.memory.as_ref()?.0.get(&number)
    }

    /// A block in memory, to change what it is there for; then call [`drop_unused`](Self::drop_unused).
    pub(crate) fn memory_block_mut(&mut self, number: u32) -> Option<&mut MemoryBlock> {
        self.memory.as_mut()?.0.get_mut(&number)
    }

    /// Adds a block in memory, or takes the one that is there.
    pub(crate) fn memory_block_or_insert(&mut self, number: u32, bytes: &Slice) -> &mut MemoryBlock {
        let block = || MemoryBlock { bytes: bytes.clone(), is_held: false, is_queued: false };
        self.memory.get_or_insert_default().0.entry(number).or_insert_with(block)
    }

    /// Drops a block from memory if nothing needs it there.
    pub(crate) fn drop_unused(&mut self, number: u32) {
        let Some(memory) = &mut self.memory else { return };
        if memory.0.get(&number).is_some_and(|block| !block.is_held && !block.is_queued) {
            memory.0.remove(&number);
            if memory.0.is_empty() {
                self.memory = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_object_takes_few_bytes() {
        assert!(size_of::<Object>() <= 56, "{} bytes", size_of::<Object>());
    }

    proptest! {
        /// The blocks of an object are a map by number, whatever form they are kept in.
        #[test]
        fn blocks_are_a_map(steps in proptest::collection::vec((0_u32..6, any::<Option<u32>>()), 0..40)) {
            let mut object = Object::new(1, 0, Record::Memory(Buffer::default()));
            let mut model = BTreeMap::new();
            for (number, inserted) in steps {
                match inserted {
                    Some(index) => {
                        let stored = Stored { slot: Slot { class: 0, index }, len: 1, checksum: 2 };
                        let block = DiskBlock::new(number, stored, false);
                        prop_assert_eq!(object.insert_disk_block(block), model.insert(number, block));
                    }
                    None => prop_assert_eq!(object.remove_disk_block(number), model.remove(&number)),
                }
                prop_assert_eq!(object.disk_blocks().to_vec(), model.values().copied().collect::<Vec<_>>());
                prop_assert_eq!(object.disk_block(number), model.get(&number));
            }
            prop_assert_eq!(object.take_disk_blocks(), model.into_values().collect::<Vec<_>>());
        }
    }
}

//! What an entry says, and its bytes. Numbers are little-endian.

use crate::key::{BlockId, Key};
pub use crate::slots::Slot;

/// Something that the store has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// An object has this record now.
    Object {
        /// The object.
        key: Key,
        /// Which of its contents.
        generation: u32,
        /// The owner's.
        kind: u8,
        /// Whether blocks that were stored before belong to another content.
        replaces: bool,
        /// The owner's.
        record: &'a [u8],
    },
    /// A block lies in a slot.
    Block(BlockId, Stored),
    /// A block is gone.
    BlockGone {
        /// Its object.
        key: Key,
        /// Which of its blocks.
        number: u32,
    },
    /// An object is gone, with its blocks.
    ObjectGone {
        /// The object.
        key: Key,
    },
}

/// Where a block lies on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its slot.
    pub slot: Slot,
    /// Length of the block in bytes.
    pub len: u32,
    /// XXH3 of its bytes and of its name.
    pub checksum: u64,
}

impl<'a> Entry<'a> {
    /// Appends the bytes of the entry.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Object { key, generation, kind, replaces, record } => {
                out.push(if replaces { TAG_REPLACED } else { TAG_UPDATED });
                out.extend_from_slice(key.as_bytes());
                out.extend_from_slice(&generation.to_le_bytes());
                out.push(kind);
                out.extend_from_slice(record);
            }
            Self::Block(BlockId { key, generation, number }, Stored { slot, len, checksum }) => {
                out.push(TAG_BLOCK);
                out.extend_from_slice(key.as_bytes());
                out.extend_from_slice(&generation.to_le_bytes());
                out.extend_from_slice(&number.to_le_bytes());
                out.push(slot.class);
                out.extend_from_slice(&slot.index.to_le_bytes());
                out.extend_from_slice(&len.to_le_bytes());
                out.extend_from_slice(&checksum.to_le_bytes());
            }
            Self::BlockGone { key, number } => {
                out.push(TAG_BLOCK_GONE);
                out.extend_from_slice(key.as_bytes());
                out.extend_from_slice(&number.to_le_bytes());
            }
            Self::ObjectGone { key } => {
                out.push(TAG_OBJECT_GONE);
                out.extend_from_slice(key.as_bytes());
            }
        }
    }

    /// Reads an entry; `None` if the bytes are not exactly one.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let mut rest = bytes;
        let [tag] = take(&mut rest)?;
        let key = Key::from_bytes(take(&mut rest)?);
        let entry = match tag {
            TAG_REPLACED | TAG_UPDATED => {
                let generation = take_u32(&mut rest)?;
                let [kind] = take(&mut rest)?;
                let record = std::mem::take(&mut rest);
                Self::Object { key, generation, kind, replaces: tag == TAG_REPLACED, record }
            }
            TAG_BLOCK => {
                let id = BlockId { key, generation: take_u32(&mut rest)?, number: take_u32(&mut rest)? };
                let [class] = take(&mut rest)?;
                let slot = Slot { class, index: take_u32(&mut rest)? };
                let len = take_u32(&mut rest)?;
                Self::Block(id, Stored { slot, len, checksum: u64::from_le_bytes(take(&mut rest)?) })
            }
            TAG_BLOCK_GONE => Self::BlockGone { key, number: take_u32(&mut rest)? },
            TAG_OBJECT_GONE => Self::ObjectGone { key },
            _ => return None,
        };
        rest.is_empty().then_some(entry)
    }
}

/// Longest entry, but for the record in it, in bytes.
pub const ENTRY_BYTES_MAX: usize = 1 + Key::BYTES + 4 + 4 + 1 + 4 + 4 + 8;

const TAG_REPLACED: u8 = 1;
const TAG_UPDATED: u8 = 2;
const TAG_BLOCK: u8 = 3;
const TAG_BLOCK_GONE: u8 = 4;
const TAG_OBJECT_GONE: u8 = 5;

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

fn take_u32(bytes: &mut &[u8]) -> Option<u32> {
    take(bytes).map(u32::from_le_bytes)
}

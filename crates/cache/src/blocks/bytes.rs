//! Bytes for readers: blocks one behind the other, from the memory or by reference from the disk.

use std::ops::Range;

use baton_buf::{Aggregate, Piece};
use baton_store::{Blocking, NeedsDisk};

use super::{Blocks, id};
use crate::held::Held;

/// What is here of a range of a content.
#[derive(Debug)]
pub(crate) enum Available {
    /// Its first bytes, or all of them.
    Bytes(Aggregate),
    /// This block has to be read from the disk first: see [`Blocks::page_in`].
    NeedsDisk(u32),
    /// Its first bytes are not here.
    Gone,
}

impl Blocks {
    /// The bytes of a content from an offset to an end, as far as they are here. At most `blocks_max` blocks.
    pub(crate) fn get(&self, content: u128, from: u64, to: u64, blocks_max: usize) -> Available {
        let mut bytes = Aggregate::new();
        for number in self.layout.blocks_over(&(from..to)).take(blocks_max) {
            let whole = self.layout.bytes_of(number, None);
            let piece = match self.block(content, number) {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                Err(NeedsDisk) if bytes.is_empty() => return Available::NeedsDisk(number),
                Err(NeedsDisk) => break,
            };
            if piece.len() < to.min(whole.end) - whole.start {
                break;
            }
            bytes.push(piece);
        }
        if bytes.is_empty() {
            return Available::Gone;
        }
        bytes.advance(from - self.layout.bytes_of(self.layout.block_of(from), None).start);
        let _behind = bytes.split_off(to - from);
        Available::Bytes(bytes)
    }

    /// The bytes of a content in a range, as far as they are here, for a reader that can get them nowhere else.
    pub(crate) fn hold_for_reader(&self, content: u128, bytes: &Range<u64>) -> Held {
        self.held.hold(bytes.end - bytes.start, || {
            match self.get(content, bytes.start, bytes.end, usize::MAX) {
                Available::Bytes(bytes) => bytes,
                Available::NeedsDisk(_) | Available::Gone => Aggregate::new(),
            }
        })
    }

    fn block(&self, content: u128, block: u32) -> Result<Option<Piece>, NeedsDisk> {
        let found = self.store.block(&id(content, block), Blocking::Never)?;
        if found.is_none() {
            self.lose(content, block);
        }
        Ok(found)
    }
}

//! Reading what is on the disk, and comparing it with its checksum: damaged bytes are forgotten, never served.

use std::sync::Arc;

use baton_buf::Slice;
use baton_sys::blocking::{Blocking, NeedsDisk, ReadError};

use crate::checksum::checksum;
use crate::journal::entry::Entry;
use crate::key::{BlockId, Key};
use crate::object::{DiskBlock, Record};
use crate::queue::Op;
use crate::shared::Shared;
use crate::volume::Volume;

/// An object's record.
#[derive(Clone, Debug)]
pub struct StoredObject {
    /// Which of the object's contents.
    pub generation: u32,
    /// What the owner has chosen.
    pub kind: u8,
    /// What the owner has written.
    pub record: Slice,
}

impl Shared {
    /// An object's record.
    pub(crate) fn object(&self, key: &Key, blocking: Blocking) -> Result<Option<StoredObject>, NeedsDisk> {
        let (generation, kind, seen, journal) = {
            let shard = self.table.of(key);
            let Some(object) = shard.object(key) else { return Ok(None) };
            let journal = shard.disk().map(|disk| Arc::clone(&disk.journal));
            (object.generation, object.kind, object.record.clone(), journal)
        };
        let (offset, len) = match seen {
            Record::Queued(bytes) | Record::Memory(bytes) => {
                return Ok(Some(StoredObject { generation, kind, record: bytes.into() }));
            }
            Record::Journal { offset, len } => (offset, len),
        };
        let Some(journal) = journal else { return Ok(None) };
        let read = match journal.read(offset, len, blocking) {
            Err(ReadError::NeedsDisk) => return Err(NeedsDisk),
            read => read.ok(),
        };
        if let Some(frame) = read
            && let Some(Entry::Object { key: found, record, .. }) = journal.entry_of(&frame, offset)
            && found == *key
        {
            // The record is the last part of its frame.
            let before = frame.len() - record.len();
            let mut record = Slice::from(frame);
            record.advance(before);
            return Ok(Some(StoredObject { generation, kind, record }));
        }
        let mut shard = self.table.of(key);
        if shard.handle_unreadable(key, &seen) {
            let _ = self.queue.push(Op::ObjectGone { key: *key });
        }
        Ok(None)
    }

    /// The bytes of a block, whose slot the caller keeps open, if they match their checksum.
    pub(crate) fn verified(
        &self,
        id: &BlockId,
        block: &DiskBlock,
        volume: &Volume,
        blocking: Blocking,
    ) -> Result<Option<Vec<u8>>, NeedsDisk> {
        let read = match volume.read(block.slot(), block.len, blocking) {
            Err(ReadError::NeedsDisk) => return Err(NeedsDisk),
            read => read.ok(),
        };
        let stored = block.stored();
        let intact =
            read.filter(|bytes| bytes.len() == stored.len as usize && checksum(id, bytes) == stored.checksum);
        let mut shard = self.table.of(&id.key);
        if intact.is_none() && shard.handle_damaged(id, stored.slot) {
            let _ = self.queue.push(Op::BlockGone { key: id.key, number: id.number });
        }
        Ok(intact.filter(|_| shard.handle_intact(id, stored.slot)))
    }
}

//! From the entries of a journal to the objects that are there. Without I/O.

use std::collections::HashMap;

use crate::journal::entry::{Entry, Stored};
use crate::key::{BlockId, Key};
use crate::object::{DiskBlock, Object, Record};
use crate::slots::{Slot, SlotSizes};

/// Objects by key.
pub(crate) type Objects = HashMap<Key, Object, foldhash::fast::RandomState>;

/// Into how many parts objects are divided, so that event loops rarely wait for each other.
pub(crate) const SHARDS: usize = 64;

/// The part that an object belongs to.
pub(crate) fn shard_of(key: &Key) -> usize {
    usize::from(key.as_bytes()[0]) % SHARDS
}

/// Reads entries in order.
#[derive(Debug)]
pub(crate) struct Replay {
    shards: Vec<Objects>,
    /// Which block has a slot: a slot that is given to another block is not the first one's any more, even if the entry
    /// that says so is missing.
    owners: HashMap<Slot, (Key, u32), foldhash::fast::RandomState>,
    sizes: SlotSizes,
    /// Length of the data file of each class, in bytes.
    file_bytes: Vec<u64>,
    forgotten_blocks: u64,
    live_bytes: u64,
}

/// What is there.
#[derive(Debug)]
pub(crate) struct StoreContents {
    /// By [`shard_of`] their keys.
    pub(crate) shards: Vec<Objects>,
    /// Slots that are in use.
    pub(crate) used: Vec<Slot>,
    /// Blocks that cannot be where their entries say.
    pub(crate) forgotten_blocks: u64,
    /// Bytes of the frames that are still needed, about.
    pub(crate) live_bytes: u64,
}

impl Replay {
    pub(crate) fn new(sizes: SlotSizes, file_bytes: Vec<u64>) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Objects::default()).collect(),
            owners: HashMap::default(),
            sizes,
            file_bytes,
            forgotten_blocks: 0,
            live_bytes: 0,
        }
    }

    /// The next entry, whose frame of `frame_len` bytes begins at `offset`.
    pub(crate) fn handle_entry(&mut self, entry: &Entry<'_>, offset: u64, frame_len: u32) {
        match *entry {
            Entry::Object { key, generation, kind, replaces, record: _ } => {
                self.live_bytes += u64::from(frame_len);
                let record = Record::Journal { offset, len: frame_len };
                match self.object_mut(&key) {
                    Some(object) if !replaces && object.generation == generation => {
                        object.kind = kind;
                        let earlier = std::mem::replace(&mut object.record, record);
                        self.live_bytes -= frame_bytes(&earlier);
                    }
                    another => {
                        if another.is_some() {
                            self.remove(&key);
                        }
                        self.shards[shard_of(&key)].insert(key, Object::new(generation, kind, record));
                    }
                }
            }
            Entry::Block(id, stored) => self.handle_block(id, stored, frame_len),
            Entry::BlockGone { key, number } => {
                if let Some(block) = self.object_mut(&key).and_then(|o| o.remove_disk_block(number)) {
                    self.owners.remove(&block.slot());
                }
            }
            Entry::ObjectGone { key } => self.remove(&key),
        }
    }

    /// What is there after the last entry.
    pub(crate) fn finish(self) -> StoreContents {
        let Self { shards, owners, forgotten_blocks, live_bytes, .. } = self;
        StoreContents { shards, used: owners.into_keys().collect(), forgotten_blocks, live_bytes }
    }

    fn object_mut(&mut self, key: &Key) -> Option<&mut Object> {
        self.shards[shard_of(key)].get_mut(key)
    }

    fn handle_block(&mut self, id: BlockId, stored: Stored, frame_len: u32) {
        let slot = stored.slot;
        if let Some((key, number)) = self.owners.remove(&slot)
            && let Some(object) = self.object_mut(&key)
        {
            object.remove_disk_block(number);
        }
        if !self.is_possible(&stored) {
            self.forgotten_blocks += 1;
            return;
        }
        let Some(object) = self.shards[shard_of(&id.key)].get_mut(&id.key) else { return };
        if object.generation != id.generation {
            return;
        }
        self.live_bytes += u64::from(frame_len);
        self.owners.insert(slot, (id.key, id.number));
        if let Some(earlier) = object.insert_disk_block(DiskBlock::new(id.number, stored, false)) {
            self.owners.remove(&earlier.slot());
        }
    }

    /// Whether the block lies within the data file of a slot that holds it.
    fn is_possible(&self, stored: &Stored) -> bool {
        let Some(file_bytes) = self.file_bytes.get(usize::from(stored.slot.class)) else { return false };
        let end = self.sizes.offset(stored.slot) + u64::from(stored.len);
        u64::from(stored.len) <= self.sizes.bytes(stored.slot.class) && stored.len > 0 && end <= *file_bytes
    }

    fn remove(&mut self, key: &Key) {
        let Some(mut object) = self.shards[shard_of(key)].remove(key) else { return };
        self.live_bytes -= frame_bytes(&object.record);
        for block in object.take_disk_blocks() {
            self.owners.remove(&block.slot());
        }
    }
}

fn frame_bytes(record: &Record) -> u64 {
    match record {
        Record::Journal { len, .. } => u64::from(*len),
        Record::Queued(_) | Record::Memory(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> Key {
        Key::from(u128::from(number))
    }

    fn put(number: u8, generation: u32, replaces: bool) -> Entry<'static> {
        Entry::Object { key: key(number), generation, kind: 0, replaces, record: b"record" }
    }

    fn block(number: u8, generation: u32, block: u32, index: u32) -> Entry<'static> {
        let id = BlockId { key: key(number), generation, number: block };
        Entry::Block(id, Stored { slot: Slot { class: 0, index }, len: 10, checksum: 1 })
    }

    /// The slots of the blocks of an object after these entries; `None`: there is no such object.
    fn slots_after(entries: &[Entry<'_>], number: u8) -> Option<Vec<u32>> {
        let mut replay = Replay::new(SlotSizes::new(4096, 4096), vec![3 * 4096]);
        for (offset, entry) in entries.iter().enumerate() {
            replay.handle_entry(entry, offset as u64, 20);
        }
        let replayed = replay.finish();
        let object = replayed.shards[shard_of(&key(number))].get(&key(number))?;
        Some(object.disk_blocks().iter().map(|block| block.slot().index).collect())
    }

    #[test]
    fn a_record_that_is_updated_keeps_its_blocks_and_one_that_is_replaced_does_not() {
        let start = [put(1, 5, true), block(1, 5, 0, 0), block(1, 5, 1, 1)];
        let after = |entry: Entry<'static>| slots_after(&[&start[..], &[entry]].concat(), 1);
        assert_eq!(after(put(1, 5, false)), Some(vec![0, 1]));
        assert_eq!(after(put(1, 5, true)), Some(vec![]), "the same number, another content");
        assert_eq!(after(put(1, 6, false)), Some(vec![]));
        assert_eq!(after(block(1, 4, 2, 2)), Some(vec![0, 1]), "a block of an earlier content");
        assert_eq!(after(Entry::BlockGone { key: key(1), number: 0 }), Some(vec![1]));
        assert_eq!(after(Entry::ObjectGone { key: key(1) }), None);
    }

    #[test]
    fn a_slot_belongs_to_the_last_block_that_got_it() {
        let entries = [put(1, 1, true), put(2, 1, true), block(1, 1, 0, 0), block(2, 1, 0, 0)];
        assert_eq!(slots_after(&entries, 1), Some(vec![]));
        assert_eq!(slots_after(&entries, 2), Some(vec![0]));
        let moved = [&entries[..], &[block(2, 1, 0, 1), block(1, 1, 0, 0)]].concat();
        assert_eq!(slots_after(&moved, 2), Some(vec![1]), "its first slot is another block's now");
    }

    #[test]
    fn a_block_beyond_the_end_of_its_file_is_forgotten() {
        assert_eq!(slots_after(&[put(1, 1, true), block(1, 1, 0, 3)], 1), Some(vec![]));
        assert_eq!(slots_after(&[put(1, 1, true), block(1, 1, 0, 2)], 1), Some(vec![2]));
        let id = BlockId { key: key(1), generation: 1, number: 0 };
        let stored = Stored { slot: Slot { class: 9, index: 0 }, len: 10, checksum: 1 };
        assert_eq!(slots_after(&[put(1, 1, true), Entry::Block(id, stored)], 1), Some(vec![]));
    }
}

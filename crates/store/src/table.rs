//! What is where: the objects of a store, in shards that have a lock each.
//!
//! A lock is held for a look-up or a change in memory, never during I/O. While it is held, the locks of the queue and of
//! the slots may be taken, in no other order.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_buf::{OpenFile, Slice};

use crate::journal::file::JournalFile;
use crate::key::{BlockId, Key};
use crate::object::{DiskBlock, MemoryBlock, Object, Record};
use crate::replay::{Objects, SHARDS, shard_of};
use crate::slots::Slot;
use crate::stats::Counters;
use crate::volume::Volume;

/// All objects.
#[derive(Debug)]
pub(crate) struct Table {
    shards: Vec<Mutex<Shard>>,
    counters: Arc<Counters>,
}

/// Some of the objects, and the files that their blocks and records are in.
#[derive(Debug)]
pub(crate) struct Shard {
    objects: Objects,
    files: OpenSlots,
    disk: Option<ShardDisk>,
    counters: Arc<Counters>,
}

/// The files that a shard's objects refer to.
#[derive(Clone, Debug)]
pub(crate) struct ShardDisk {
    pub(crate) volume: Arc<Volume>,
    pub(crate) journal: Arc<JournalFile>,
}

/// Where a block is.
#[derive(Debug)]
pub(crate) enum Found {
    Memory(Slice),
    /// On disk; the open file keeps the slot's bytes.
    Disk {
        block: DiskBlock,
        file: Arc<OpenFile>,
        volume: Arc<Volume>,
    },
}

impl Table {
    pub(crate) fn new(counters: Arc<Counters>) -> Self {
        let shard = || Shard {
            objects: Objects::default(),
            files: OpenSlots::default(),
            disk: None,
            counters: Arc::clone(&counters),
        };
        Self { shards: (0..SHARDS).map(|_| Mutex::new(shard())).collect(), counters }
    }

    /// The shard of an object.
    pub(crate) fn of(&self, key: &Key) -> MutexGuard<'_, Shard> {
        self.shard(shard_of(key))
    }

    /// A shard by number, below [`SHARDS`].
    pub(crate) fn shard(&self, index: usize) -> MutexGuard<'_, Shard> {
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }
}

impl Shard {
    /// An object.
    pub(crate) fn object(&self, key: &Key) -> Option<&Object> {
        self.objects.get(key)
    }

    /// The keys of all objects, or of those of one kind.
    pub(crate) fn keys(&self, kind: Option<u8>) -> Vec<Key> {
        let is_meant = |object: &Object| kind.is_none_or(|kind| object.kind == kind);
        self.objects.iter().filter(|(_, object)| is_meant(object)).map(|(key, _)| *key).collect()
    }

    /// The files, while there are any.
    pub(crate) fn disk(&self) -> Option<&ShardDisk> {
        self.disk.as_ref()
    }

    /// The object of this content.
    fn content(&mut self, id: &BlockId) -> Option<&mut Object> {
        self.objects.get_mut(&id.key).filter(|object| object.generation == id.generation)
    }

    /// Whether the object is there with this content.
    pub(crate) fn has_content(&self, key: &Key, generation: u32) -> bool {
        self.objects.get(key).is_some_and(|object| object.generation == generation)
    }

    /// Whether the block is on the disk, or on its way there.
    pub(crate) fn has_block(&self, id: &BlockId) -> bool {
        let object = self.objects.get(&id.key).filter(|object| object.generation == id.generation);
        object.is_some_and(|object| object.disk_block(id.number).is_some())
            || self.memory_block(id).is_some_and(|block| block.is_queued)
    }

    /// Where a block is.
    pub(crate) fn find(&mut self, id: &BlockId) -> Option<Found> {
        let Self { objects, files, disk, .. } = self;
        let object = objects.get(&id.key).filter(|object| object.generation == id.generation)?;
        if let Some(block) = object.memory_block(id.number) {
            return Some(Found::Memory(block.bytes.clone()));
        }
        let block = *object.disk_block(id.number)?;
        let volume = &disk.as_ref()?.volume;
        Some(Found::Disk { block, file: files.open(volume, block.slot()), volume: Arc::clone(volume) })
    }

    /// Gives an object a record, whose memory the caller has counted. Blocks of the same generation stay.
    pub(crate) fn put_object(&mut self, key: Key, generation: u32, kind: u8, record: Record) {
        match self.objects.get_mut(&key) {
            Some(object) if object.generation == generation => {
                let earlier = std::mem::replace(&mut object.record, record);
                object.kind = kind;
                self.release_record(&earlier);
            }
            _ => {
                self.remove(&key);
                self.objects.insert(key, Object::new(generation, kind, record));
                self.counters.objects.add(1);
            }
        }
    }

    /// Puts the record of an object elsewhere, if it is still the one that was queued with these bytes.
    pub(crate) fn move_record(&mut self, key: &Key, queued: &[u8], record: Record) -> bool {
        let Some(object) = self.objects.get_mut(key) else { return false };
        match &object.record {
            Record::Queued(bytes) if std::ptr::eq(&raw const bytes[..], queued) => {
                object.record = record;
                true
            }
            _ => false,
        }
    }

    /// A record that was `seen` has this place in a new journal. A record that has changed since is not meant.
    pub(crate) fn handle_copied(&mut self, key: &Key, seen: &Record, place: Record) {
        let Some(object) = self.objects.get_mut(key).filter(|object| object.record.is_same(seen)) else {
            return;
        };
        let earlier = std::mem::replace(&mut object.record, place);
        self.release_record(&earlier);
    }

    /// A record that was `seen` cannot be read: its object is forgotten. Returns whether it was still there.
    pub(crate) fn handle_unreadable(&mut self, key: &Key, seen: &Record) -> bool {
        let is_meant = self.objects.get(key).is_some_and(|object| object.record.is_same(seen));
        if is_meant {
            self.counters.forgotten.add(1);
            self.remove(key);
        }
        is_meant
    }

    /// Removes an object with its blocks. Returns whether there was one.
    pub(crate) fn remove(&mut self, key: &Key) -> bool {
        let Some(mut object) = self.objects.remove(key) else { return false };
        self.counters.objects.sub(1);
        self.release_record(&object.record);
        let held = object.memory_blocks().filter(|(_, block)| block.is_held);
        self.counters.memory_bytes.sub(held.map(|(_, block)| block.bytes.len() as u64).sum());
        for block in object.take_disk_blocks() {
            self.free(&block);
        }
        true
    }

    /// Removes an object unless its record is newer than the journal.
    pub(crate) fn remove_if_on_disk(&mut self, key: &Key) {
        if self.objects.get(key).is_some_and(|object| matches!(object.record, Record::Journal { .. })) {
            self.remove(key);
        }
    }

    /// A block is on its way to the disk.
    pub(crate) fn queue_block(&mut self, id: &BlockId, bytes: &Slice) {
        if let Some(object) = self.content(id) {
            object.memory_block_or_insert(id.number, bytes).is_queued = true;
        }
    }

    /// Whether a block is still on its way to the disk, with these bytes.
    pub(crate) fn is_queued(&self, id: &BlockId, bytes: &[u8]) -> bool {
        let is_it = |block: &MemoryBlock| block.is_queued && std::ptr::eq(&raw const block.bytes[..], bytes);
        self.memory_block(id).is_some_and(is_it)
    }

    /// A block is not on its way any more: it is on the disk, or never will be. Returns whether it was.
    pub(crate) fn unqueue_block(&mut self, id: &BlockId, bytes: &[u8], stored: Option<DiskBlock>) -> bool {
        if !self.is_queued(id, bytes) {
            return false;
        }
        let Some(object) = self.content(id) else { return false };
        if let Some(block) = object.memory_block_mut(id.number) {
            block.is_queued = false;
        }
        object.drop_unused(id.number);
        let earlier = stored.and_then(|block| object.insert_disk_block(block));
        if stored.is_some() {
            self.counters.disk_blocks.add(1);
        }
        if let Some(earlier) = earlier {
            self.free(&earlier);
        }
        true
    }

    /// A block in memory.
    pub(crate) fn memory_block(&self, id: &BlockId) -> Option<&MemoryBlock> {
        let object = self.objects.get(&id.key).filter(|object| object.generation == id.generation)?;
        object.memory_block(id.number)
    }

    /// Holds a block in memory, which the caller has counted.
    pub(crate) fn hold(&mut self, id: &BlockId, bytes: &Slice) {
        if let Some(object) = self.content(id) {
            object.memory_block_or_insert(id.number, bytes).is_held = true;
        }
    }

    /// Ends holding a block.
    pub(crate) fn release(&mut self, id: &BlockId) {
        let Some(object) = self.content(id) else { return };
        let Some(block) = object.memory_block_mut(id.number).filter(|block| block.is_held) else { return };
        let bytes = block.bytes.len() as u64;
        block.is_held = false;
        object.drop_unused(id.number);
        self.counters.memory_bytes.sub(bytes);
    }

    /// Removes a block from the disk, or from the way there. Returns whether it was on the disk.
    pub(crate) fn evict_block(&mut self, id: &BlockId) -> bool {
        let Some(object) = self.content(id) else { return false };
        if let Some(block) = object.memory_block_mut(id.number) {
            block.is_queued = false;
        }
        object.drop_unused(id.number);
        let block = object.remove_disk_block(id.number);
        if let Some(block) = &block {
            self.free(block);
        }
        block.is_some()
    }

    /// The block in this slot matches its checksum. Returns whether it is still there.
    pub(crate) fn handle_intact(&mut self, id: &BlockId, slot: Slot) -> bool {
        let Some(object) = self.content(id) else { return false };
        let is_there = object.disk_block(id.number).is_some_and(|block| block.slot() == slot);
        if is_there {
            object.set_verified(id.number);
        }
        is_there
    }

    /// The block in this slot is damaged, or cannot be read. Returns whether it was still there.
    pub(crate) fn handle_damaged(&mut self, id: &BlockId, slot: Slot) -> bool {
        let Some(object) = self.content(id) else { return false };
        let is_there = object.disk_block(id.number).is_some_and(|block| block.slot() == slot);
        if is_there && let Some(block) = object.remove_disk_block(id.number) {
            self.free(&block);
            self.counters.forgotten.add(1);
        }
        is_there
    }

    /// The disk works for the first time: adds what it has to what is in memory, which is newer.
    pub(crate) fn adopt(&mut self, found: Objects, disk: ShardDisk) {
        self.disk = Some(disk);
        let blocks = |object: &Object| object.disk_blocks().len() as u64;
        self.counters.objects.add(found.len() as u64);
        self.counters.disk_blocks.add(found.values().map(blocks).sum());
        let newer = std::mem::replace(&mut self.objects, found);
        for (key, object) in newer {
            self.remove(&key);
            self.objects.insert(key, object);
        }
    }

    /// The journal has been written anew.
    pub(crate) fn set_journal(&mut self, journal: &Arc<JournalFile>) {
        if let Some(disk) = &mut self.disk {
            disk.journal = Arc::clone(journal);
        }
    }

    /// The disk is gone, and with it all that was only there.
    pub(crate) fn forget_disk(&mut self) {
        let Self { objects, files, disk, counters } = self;
        *disk = None;
        *files = OpenSlots::default();
        objects.retain(|_, object| {
            counters.disk_blocks.sub(object.take_disk_blocks().len() as u64);
            let stays = !matches!(object.record, Record::Journal { .. });
            if !stays {
                let held = object.memory_blocks().filter(|(_, block)| block.is_held);
                counters.memory_bytes.sub(held.map(|(_, block)| block.bytes.len() as u64).sum());
                counters.objects.sub(1);
            }
            stays
        });
    }

    fn free(&mut self, block: &DiskBlock) {
        self.counters.disk_blocks.sub(1);
        self.files.close(block.slot());
        if let Some(disk) = &self.disk {
            disk.volume.free(block.slot());
        }
    }

    fn release_record(&self, record: &Record) {
        if let Record::Memory(bytes) = record {
            self.counters.memory_bytes.sub(bytes.len() as u64);
        }
    }
}

/// Slots that were requested lately, as open files: each remembers for a second that its bytes are in memory.
#[derive(Debug, Default)]
struct OpenSlots {
    files: std::collections::HashMap<Slot, Arc<OpenFile>, foldhash::fast::RandomState>,
    /// In the order in which they were opened; some may have been closed since.
    order: VecDeque<Slot>,
}

impl OpenSlots {
    fn open(&mut self, volume: &Arc<Volume>, slot: Slot) -> Arc<OpenFile> {
        if let Some(file) = self.files.get(&slot) {
            return Arc::clone(file);
        }
        while self.order.len() >= OPEN_SLOTS_MAX {
            let Some(oldest) = self.order.pop_front() else { break };
            self.files.remove(&oldest);
        }
        let file = volume.open(slot);
        self.order.push_back(slot);
        self.files.insert(slot, Arc::clone(&file));
        file
    }

    fn close(&mut self, slot: Slot) {
        self.files.remove(&slot);
    }
}

/// Per shard. They cost about a hundred bytes each and no descriptor.
const OPEN_SLOTS_MAX: usize = 256;

//! The blocks of stored bodies: what the indexes keep, and where the store has the bytes.
//!
//! ```text
//!   put ─┬─► memory index ─► store: held      what came last, or is asked for most often
//!        └─► disk index ─► store: a slot      many times as much, if there is a folder
//! ```
//!
//! Blocks leave the memory in one piece with their heads, the disk by reference from the page cache. A block that the disk
//! does not take after all is still in memory for those who read it meanwhile. A content is here as long as one of the
//! indexes has something of it.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_buf::{Aggregate, Piece, Slice};
use baton_segment::index::{Facts, Index, NotStored, ObjectId, Removed};
use baton_segment::layout::{BlockNumber, Layout};
use baton_segment::policy::Aim;
use baton_segment::rules::KeyHash;
use baton_store::{BlockId, Blocking, DiskState, NeedsDisk, Reuse, Store};

use crate::held::{Held, HeldBytes};
use crate::record::kind;
use crate::{CacheCounters, Settings};

/// The blocks of all stored bodies. Locks: those of the indexes are taken behind any other, one at a time, and never while
/// the store is asked.
#[derive(Debug)]
pub(crate) struct Blocks {
    store: Store,
    memory: Mutex<Index>,
    disk: Option<Mutex<Index>>,
    layout: Layout,
    memory_bytes_max: u64,
    disk_bytes_max: u64,
    held: Arc<HeldBytes>,
    counters: CacheCounters,
    /// The process ends: what goes now is not forgotten.
    is_closed: AtomicBool,
}

/// Contents that are not here any more: the handles that they were given, and their keys.
#[must_use = "the directory still has them"]
#[derive(Debug, Default)]
pub(crate) struct Evicted(pub(crate) Vec<(u64, u128)>);

/// What is here of a range of a content.
#[derive(Debug)]
pub(crate) enum Got {
    /// Its first bytes, or all of them.
    Bytes(Aggregate),
    /// This block has to be read from the disk first: see [`Blocks::page_in`].
    NeedsDisk(u32),
    /// Its first bytes are not here.
    Gone,
}

/// Whether an index is waited for while another loop has it. Else it is not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    Yes,
    No,
}

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tier {
    Memory,
    Disk,
}

impl Blocks {
    /// # Errors
    /// A block size that is none, or why the store cannot be opened.
    pub(crate) fn open(settings: &Settings, counters: CacheCounters, seed: u64) -> io::Result<Self> {
        let block_bytes = settings.block_bytes;
        let layout = Layout::new(block_bytes.into(), settings.policy.grouping()).map_err(io::Error::other)?;
        let index = |bytes_max: u64, aim| {
            Index::new(baton_segment::index::Settings {
                layout,
                bytes_max: bytes_max.max(1),
                objects_max: settings.objects_max.max(1),
                policy: settings.policy,
                aim,
                seed,
            })
        };
        let usual = baton_store::Settings::default();
        let disk = settings.disk.as_ref();
        let store_bytes_max = disk.map_or(0, |disk| disk.bytes_max);
        // Slots that are being sent are not free yet, although what was in them is evicted.
        let being_sent_bytes = store_bytes_max / BEING_SENT_PART;
        let disk_bytes_max = store_bytes_max - being_sent_bytes;
        let store = Store::open(baton_store::Settings {
            folder: disk.map(|disk| disk.folder.clone()),
            bytes_max: store_bytes_max,
            reserve_bytes: disk.map_or(0, |disk| disk.reserve_bytes),
            objects_max: settings.objects_max.saturating_add(OBJECTS_SLACK),
            // What the index gives up is released a moment after what takes its place is held. While the disk takes no
            // records, they are in memory, too.
            memory_bytes_max: settings.memory_bytes_max
                + BLOCKS_SLACK * u64::from(block_bytes)
                + disk.map_or(0, |_| RECORD_BYTES * settings.objects_max as u64),
            block_bytes_max: block_bytes,
            ..usual
        })?;
        let slot_bytes_min = store.footprint(1);
        Ok(Self {
            store,
            memory: Mutex::new(index(settings.memory_bytes_max, Aim::Hits)),
            disk: disk.map(|_| Mutex::new(index(disk_bytes_max, Aim::Bytes).in_slots(slot_bytes_min))),
            layout,
            memory_bytes_max: settings.memory_bytes_max,
            disk_bytes_max,
            held: HeldBytes::new(if disk.is_some() { being_sent_bytes } else { settings.memory_bytes_max }),
            counters,
            is_closed: AtomicBool::new(false),
        })
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Whether there is a folder, which may not work.
    pub(crate) fn has_disk(&self) -> bool {
        self.disk.is_some()
    }

    /// Whether a content of this length is here long enough for all who read it while it comes. A longer one may push out
    /// its own beginning.
    pub(crate) fn outlasts_readers(&self, length: Option<u64>) -> bool {
        let is_on_disk = matches!(self.store.disk(), DiskState::Working | DiskState::Limited);
        let bytes_max = if is_on_disk { self.disk_bytes_max } else { self.memory_bytes_max };
        length.is_some_and(|length| length <= bytes_max / 4)
    }

    /// Responses, and bytes of their bodies in memory.
    pub(crate) fn held(&self) -> (usize, u64) {
        let on_disk = self.disk.as_ref().map_or(0, |disk| lock(disk).objects());
        let memory = lock(&self.memory);
        (memory.objects().max(on_disk), memory.bytes())
    }

    /// Begins a content, of which this block comes first. It stays until [`end`](Self::end) even without a block.
    pub(crate) fn begin(
        &self,
        key: u128,
        length: Option<u64>,
        first: BlockNumber,
        handle: u64,
        record: Vec<u8>,
        now_ms: u64,
    ) -> (Result<(), &'static str>, Evicted) {
        let facts = Facts { length, validator: None, handle };
        let mut evicted = Evicted::default();
        let mut begun = Ok(());
        for tier in self.tiers() {
            let (inserted, removed) = self.change(tier, |index| {
                let inserted = index.insert(KeyHash(key), facts, now_ms);
                if let Ok(object) = inserted {
                    index.handle_use(object, None, first, now_ms);
                }
                inserted.map(drop).map_err(NotStored::as_str)
            });
            self.apply(tier, removed, &mut evicted);
            begun = begun.and(inserted);
        }
        let begun = begun.and_then(|()| self.put_record(key, record));
        if begun.is_err() {
            // What one index has taken, the other may have refused.
            self.purge(key);
        }
        (begun, evicted)
    }

    /// Keeps what is known of a content until [`end`](Self::end), even without a block. False if nothing is.
    pub(crate) fn open_again(&self, content: u128, now_ms: u64) -> (bool, Evicted) {
        let mut evicted = Evicted::default();
        let key = KeyHash(content);
        let facts = self.tiers().find_map(|tier| {
            let index = lock(self.index(tier));
            index.find(key).map(|object| index.facts(object))
        });
        let Some(facts) = facts else { return (false, evicted) };
        for tier in self.tiers() {
            let (_, removed) = self.change(tier, |index| match index.find(key) {
                Some(object) => index.open(object),
                // What the disk does not take of it has a place here.
                None => drop(index.insert(key, facts, now_ms)),
            });
            self.apply(tier, removed, &mut evicted);
        }
        (true, evicted)
    }

    /// Gives a content another record. If that fails, it keeps the one that it has.
    pub(crate) fn put_record(&self, key: u128, record: Vec<u8>) -> Result<(), &'static str> {
        let put = self.store.put_object(key.into(), GENERATION, kind::RESPONSE, record);
        put.map_err(baton_store::NotStored::word)
    }

    /// The content is as complete as it becomes.
    pub(crate) fn end(&self, content: u128, length: Option<u64>) -> Evicted {
        let mut evicted = Evicted::default();
        for tier in self.tiers() {
            let ((), removed) = self.change(tier, |index| {
                let Some(object) = index.find(KeyHash(content)) else { return };
                if let Some(length) = length {
                    // A length that the index refuses has purged the object, as it says.
                    let _ = index.set_length(object, length);
                }
                index.close(object);
            });
            self.apply(tier, removed, &mut evicted);
        }
        evicted
    }

    /// Stores a block.
    pub(crate) fn put(
        &self,
        content: u128,
        block: u32,
        bytes: &Slice,
        now_ms: u64,
    ) -> (Result<(), &'static str>, Evicted) {
        let mut evicted = Evicted::default();
        let mut stored = self.hold(content, block, bytes, now_ms, &mut evicted);
        if let Some(disk) = &self.disk {
            stored = self.write(disk, content, block, bytes, now_ms, &mut evicted).or(stored);
        }
        (stored, evicted)
    }

    fn write(
        &self,
        disk: &Mutex<Index>,
        content: u128,
        block: u32,
        bytes: &Slice,
        now_ms: u64,
        evicted: &mut Evicted,
    ) -> Result<(), &'static str> {
        if self.store.disk() == DiskState::Working {
            lock(disk).set_bytes_max(self.disk_bytes_max);
        }
        let mut has_retried = false;
        loop {
            self.admit(Tier::Disk, content, block, now_ms, evicted)?;
            if bytes.is_empty() {
                return Ok(());
            }
            let put = self.store.put_block(&id(content, block), bytes.clone(), Reuse::Likely);
            let Err(refused) = put else { return self.keep(Tier::Disk, content, block, now_ms) };
            self.lose_from(Tier::Disk, content, block);
            CacheCounters::add(self.counters.not_written, 1);
            // The file system has less space than the bound: from now on blocks take the place of others.
            let is_full = refused == baton_store::NotStored::DiskFull;
            if !is_full || std::mem::replace(&mut has_retried, true) {
                return Err(refused.word());
            }
            let mut index = lock(disk);
            let bytes = index.bytes();
            index.set_bytes_max(bytes.max(1));
        }
    }

    fn hold(
        &self,
        content: u128,
        block: u32,
        bytes: &Slice,
        now_ms: u64,
        evicted: &mut Evicted,
    ) -> Result<(), &'static str> {
        self.admit(Tier::Memory, content, block, now_ms, evicted)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let held = self.store.hold(&id(content, block), bytes);
        held.map_err(|refused| {
            self.lose_from(Tier::Memory, content, block);
            refused.word()
        })?;
        self.keep(Tier::Memory, content, block, now_ms)
    }

    /// A block is in the store. A reader that looked for it a moment before has reported it as lost: it is not.
    fn keep(&self, tier: Tier, content: u128, block: u32, now_ms: u64) -> Result<(), &'static str> {
        let kept = {
            let mut index = lock(self.index(tier));
            match index.find(KeyHash(content)) {
                Some(object) if index.contains(object, block) => Ok(()),
                Some(object) => index.store(object, block..block + 1, now_ms),
                None => Err(NotStored::Purged),
            }
        };
        if kept.is_err() {
            match tier {
                Tier::Memory => self.store.release(&id(content, block)),
                Tier::Disk => self.store.evict_block(&id(content, block)),
            }
        }
        kept.map_err(NotStored::as_str)
    }

    fn admit(
        &self,
        tier: Tier,
        content: u128,
        block: u32,
        now_ms: u64,
        evicted: &mut Evicted,
    ) -> Result<(), &'static str> {
        let (admitted, removed) = self.change(tier, |index| match index.find(KeyHash(content)) {
            Some(object) => index.store(object, block..block + 1, now_ms).map_err(NotStored::as_str),
            None => Err(NotStored::Purged.as_str()),
        });
        self.apply(tier, removed, evicted);
        admitted
    }

    /// Holds the first block of a short content in memory, since it is asked for again and again. No client waits for that:
    /// while another loop has an index, nothing happens.
    pub(crate) fn warm(&self, content: u128, now_ms: u64) -> Evicted {
        let mut evicted = Evicted::default();
        let Some(disk) = &self.disk else { return evicted };
        let facts = {
            let Ok(index) = disk.try_lock() else { return evicted };
            let facts = index.find(KeyHash(content)).map(|object| index.facts(object));
            facts
                .filter(|facts| facts.length.is_some_and(|length| (1..=SHORT_BYTES as u64).contains(&length)))
        };
        let Some(facts) = facts else { return evicted };
        let is_here =
            |index: &Index| index.find(KeyHash(content)).is_some_and(|object| index.contains(object, 0));
        if self.memory.try_lock().is_ok_and(|index| is_here(&index)) {
            return evicted;
        }
        let Ok(Some(bytes)) = self.store.read_block(&id(content, 0), Blocking::Never) else { return evicted };
        let (inserted, removed) = self.change(Tier::Memory, |index| {
            index.find(KeyHash(content)).is_some() || index.insert(KeyHash(content), facts, now_ms).is_ok()
        });
        self.apply(Tier::Memory, removed, &mut evicted);
        if inserted {
            // A block that finds no room stays on the disk alone.
            let _ = self.hold(content, 0, &bytes, now_ms, &mut evicted);
            let ((), removed) = self.change(Tier::Memory, |index| {
                if let Some(object) = index.find(KeyHash(content)) {
                    index.close(object);
                }
            });
            self.apply(Tier::Memory, removed, &mut evicted);
        }
        evicted
    }

    /// The bytes of a content from an offset to an end, as far as they are here. At most `blocks_max` blocks.
    pub(crate) fn get(&self, content: u128, from: u64, to: u64, blocks_max: usize) -> Got {
        let mut bytes = Aggregate::new();
        for number in self.layout.blocks_over(&(from..to)).take(blocks_max) {
            let whole = self.layout.bytes_of(number, None);
            let piece = match self.block(content, number) {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                Err(NeedsDisk) if bytes.is_empty() => return Got::NeedsDisk(number),
                Err(NeedsDisk) => break,
            };
            if piece.len() < to.min(whole.end) - whole.start {
                break;
            }
            bytes.push(piece);
        }
        if bytes.is_empty() {
            return Got::Gone;
        }
        bytes.advance(from - self.layout.bytes_of(self.layout.block_of(from), None).start);
        let _behind = bytes.split_off(to - from);
        Got::Bytes(bytes)
    }

    /// The bytes of a content in a range, as far as they are here, for a reader that can get them nowhere else.
    pub(crate) fn hold_for_reader(&self, content: u128, bytes: &Range<u64>) -> Held {
        self.held.hold(bytes.end - bytes.start, || {
            match self.get(content, bytes.start, bytes.end, usize::MAX) {
                Got::Bytes(bytes) => bytes,
                Got::NeedsDisk(_) | Got::Gone => Aggregate::new(),
            }
        })
    }

    /// Reads a block behind the caller; then calls `done`, from another thread. The block is here then, or gone.
    pub(crate) fn page_in(&self, content: u128, block: u32, done: impl FnOnce() + Send + 'static) {
        self.store.page_in(&id(content, block), done);
    }

    /// Whether a block is here.
    pub(crate) fn contains(&self, content: u128, block: BlockNumber) -> bool {
        self.tiers().any(|tier| {
            let index = lock(self.index(tier));
            index.find(KeyHash(content)).is_some_and(|object| index.contains(object, block))
        })
    }

    /// Whether all blocks of these bytes are here.
    pub(crate) fn contains_all(&self, content: u128, bytes: &Range<u64>) -> bool {
        self.layout.blocks_over(bytes).all(|block| self.contains(content, block))
    }

    /// Whether all of it is here.
    pub(crate) fn is_complete(&self, content: u128) -> bool {
        let key = KeyHash(content);
        let length = self.tiers().find_map(|tier| {
            let index = lock(self.index(tier));
            index.find(key).and_then(|object| index.facts(object).length)
        });
        length.is_some_and(|length| {
            (0..self.layout.blocks_in(length)).all(|block| self.contains(content, block))
        })
    }

    /// Tells the indexes of a reader.
    pub(crate) fn note(&self, content: u128, waiting: Waiting, note: impl Fn(&mut Index, ObjectId)) {
        for tier in self.tiers() {
            let index = match waiting {
                Waiting::Yes => Some(lock(self.index(tier))),
                Waiting::No => self.index(tier).try_lock().ok(),
            };
            if let Some(mut index) = index
                && let Some(object) = index.find(KeyHash(content))
            {
                note(&mut index, object);
            }
        }
    }

    /// Takes a content that the store has found. If it `needs_all` of its blocks, and they are not there, or if there is
    /// none, it is for [`forget`](Self::forget).
    pub(crate) fn recover(
        &self,
        content: u128,
        (length, needs_all): (u64, bool),
        handle: u64,
        blocks: &[(u32, u32)],
    ) -> bool {
        let facts = Facts { length: Some(length), validator: None, handle };
        let is_right = |&(block, len): &(u32, u32)| {
            let bytes = self.layout.bytes_of(block, Some(length));
            bytes.end - bytes.start == u64::from(len)
        };
        let found = blocks.iter().filter(|block| is_right(block)).map(|(block, _)| *block);
        // An empty body has an empty block, which is on no disk.
        let empty = (length == 0).then_some(0);
        let key = KeyHash(content);
        let (is_kept, removed) = self.change(Tier::Disk, |index| {
            // What exceeds the bound is not kept; the rest is.
            let _ = index.recover(key, facts, GENERATION, found.chain(empty));
            index.find(key).is_some_and(|object| !needs_all || index.is_complete(object))
        });
        self.apply(Tier::Disk, removed, &mut Evicted::default());
        is_kept
    }

    /// Drops a content that nothing refers to.
    pub(crate) fn forget(&self, key: u128) {
        if self.is_closed.load(Ordering::Relaxed) {
            return;
        }
        self.purge(key);
        self.store.remove(&key.into());
    }

    fn purge(&self, key: u128) {
        for tier in self.tiers() {
            let (_, removed) = self.change(tier, |index| index.purge(KeyHash(key)));
            // Only its own: what the directory had of it is gone already.
            self.apply(tier, removed, &mut Evicted::default());
        }
    }

    /// The process ends: what the disk has stays there.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    fn block(&self, content: u128, block: u32) -> Result<Option<Piece>, NeedsDisk> {
        let found = self.store.block(&id(content, block), Blocking::Never)?;
        if found.is_none() {
            self.lose(content, block);
        }
        Ok(found)
    }

    /// A block is not here after all.
    pub(crate) fn lose(&self, content: u128, block: u32) {
        let losing = self.tiers().filter(|tier| self.lose_from(*tier, content, block)).count();
        CacheCounters::add(self.counters.lost, u64::from(losing > 0));
    }

    /// Returns whether the index had the block.
    fn lose_from(&self, tier: Tier, content: u128, block: u32) -> bool {
        let mut index = lock(self.index(tier));
        let Some(object) = index.find(KeyHash(content)) else { return false };
        let had_it = index.contains(object, block);
        index.lose(object, block);
        had_it
    }

    fn change<R>(&self, tier: Tier, change: impl FnOnce(&mut Index) -> R) -> (R, Vec<Removed>) {
        let mut index = lock(self.index(tier));
        let changed = change(&mut index);
        (changed, std::iter::from_fn(|| index.next_removed()).collect())
    }

    /// Has the store drop what an index has given up.
    fn apply(&self, tier: Tier, removed: Vec<Removed>, evicted: &mut Evicted) {
        for removed in removed {
            match removed {
                Removed::Block { key, block, .. } if tier == Tier::Memory => {
                    self.store.release(&id(key.0, block));
                }
                Removed::Block { key, block, .. } => self.store.evict_block(&id(key.0, block)),
                Removed::Object { key, handle, .. } => {
                    let is_in_other = self.tiers().any(|other| lock(self.index(other)).find(key).is_some());
                    if !is_in_other {
                        self.store.remove(&key.0.into());
                        evicted.0.push((handle, key.0));
                    }
                }
            }
        }
    }

    fn tiers(&self) -> impl Iterator<Item = Tier> {
        std::iter::once(Tier::Memory).chain(self.disk.as_ref().map(|_| Tier::Disk))
    }

    fn index(&self, tier: Tier) -> &Mutex<Index> {
        match (tier, &self.disk) {
            (Tier::Disk, Some(disk)) => disk,
            _ => &self.memory,
        }
    }
}

fn lock(index: &Mutex<Index>) -> MutexGuard<'_, Index> {
    index.lock().unwrap_or_else(PoisonError::into_inner)
}

fn id(key: u128, number: u32) -> BlockId {
    BlockId { key: key.into(), generation: GENERATION, number }
}

/// A new version is a new content with a key of its own, so each has one generation.
const GENERATION: u32 = 1;

/// Objects that the store may have beyond the index, while loops race.
const OBJECTS_SLACK: usize = 64;

/// Blocks that the store may hold beyond the index.
const BLOCKS_SLACK: u64 = 64;

/// One part in so many of the disk's slots is left to clients that are still being sent what was evicted.
const BEING_SENT_PART: u64 = 32;

/// The longest block that leaves faster from memory, in one piece with its head, than by reference from a file.
const SHORT_BYTES: usize = 32 << 10;

/// Memory for a record that no disk takes, about.
const RECORD_BYTES: u64 = 1024;

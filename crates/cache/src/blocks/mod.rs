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

mod bytes;
mod disk;
mod memory;
mod tiers;

use std::io;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use baton_buf::Slice;
use baton_http::origin::ResponseHead;
use baton_segment::index::{Facts, Index, NotStored, ObjectId, Removed};
use baton_segment::layout::{BlockNumber, Layout};
use baton_segment::policy::{Aim, CachePolicy, PolicyChoice, is_film};
use baton_segment::rules::KeyHash;
use baton_store::{BlockId, DiskState, Store};

pub(crate) use self::bytes::Available;
use self::tiers::{Tier, Tiers};
use crate::held::HeldBytes;
use crate::pauses::Pauses;
use crate::record::kind;
use crate::{CacheCounters, Settings};

/// The blocks of all stored bodies. Locks: those of the indexes are taken behind any other, one at a time, and never while
/// the store is asked.
#[derive(Debug)]
pub(crate) struct Blocks {
    store: Store,
    tiers: Tiers,
    layout: Layout,
    /// The range in which the bound of the memory is.
    memory_bytes: RangeInclusive<u64>,
    /// The policy of most contents, and what decides about the others.
    policy: CachePolicy,
    choice: PolicyChoice,
    pauses: Pauses,
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

/// Whether an index is waited for while another loop has it. Else it is not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    Yes,
    No,
}

impl Blocks {
    /// # Errors
    /// A block size that is none, or why the store cannot be opened.
    pub(crate) fn open(settings: &Settings, counters: CacheCounters, seed: u64) -> io::Result<Self> {
        let block_bytes = settings.block_bytes;
        let choice = PolicyChoice { name: settings.policy, grouping: None };
        let policy = choice.of_object(false);
        let layout = Layout::new(block_bytes.into(), policy.grouping).map_err(io::Error::other)?;
        let index = |bytes_max: u64, aim| {
            Index::new(baton_segment::index::IndexSettings {
                layout,
                bytes_max: bytes_max.max(1),
                objects_max: settings.objects_max.max(1),
                policy: policy.name,
                aim,
                seed,
            })
        };
        let usual = baton_store::StoreSettings::default();
        let disk = settings.disk.as_ref();
        let store_bytes_max = disk.map_or(0, |disk| disk.bytes_max);
        // Slots that are being sent are not free yet, although what was in them is evicted.
        let being_sent_bytes = store_bytes_max / BEING_SENT_PART;
        let disk_bytes_max = store_bytes_max - being_sent_bytes;
        let store = Store::open(baton_store::StoreSettings {
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
        let memory_index = index(settings.memory_bytes_max, Aim::Hits);
        let disk_index = disk.map(|_| index(disk_bytes_max, Aim::Bytes).in_slots(slot_bytes_min));
        Ok(Self {
            store,
            tiers: Tiers::new(memory_index, disk_index),
            layout,
            memory_bytes: settings.memory_bytes_min.min(settings.memory_bytes_max)
                ..=settings.memory_bytes_max,
            policy,
            choice,
            pauses: Pauses::default(),
            disk_bytes_max,
            held: HeldBytes::new(if disk.is_some() { being_sent_bytes } else { settings.memory_bytes_max }),
            counters,
            is_closed: AtomicBool::new(false),
        })
    }

    /// How contents are divided that have the policy of most.
    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    /// The policy of most contents.
    pub(crate) fn policy(&self) -> CachePolicy {
        self.policy
    }

    /// The policy of a response.
    pub(crate) fn policy_of(
        &self,
        route: PolicyChoice,
        head: &ResponseHead,
        length: Option<u64>,
    ) -> CachePolicy {
        let media_type = head.field("Content-Type").unwrap_or_default();
        route.or(self.choice).of_object(is_film(media_type, length, self.layout.block_bytes()))
    }

    /// Readers between two parts.
    pub(crate) fn pauses(&self) -> &Pauses {
        &self.pauses
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Whether there is a folder, which may not work.
    pub(crate) fn has_disk(&self) -> bool {
        self.tiers.has_disk()
    }

    /// Whether a content of this length is here long enough for all who read it while it comes. A longer one may push out
    /// its own beginning.
    pub(crate) fn outlasts_readers(&self, length: Option<u64>) -> bool {
        let is_on_disk = matches!(self.store.disk(), DiskState::Working | DiskState::Limited);
        let bytes_max =
            if is_on_disk { self.disk_bytes_max } else { self.tiers.lock(Tier::Memory).bytes_max() };
        length.is_some_and(|length| length <= bytes_max / 4)
    }

    /// Responses, and bytes of their bodies in memory.
    pub(crate) fn held(&self) -> (usize, u64) {
        let on_disk = if self.has_disk() { self.tiers.lock(Tier::Disk).objects() } else { 0 };
        let memory = self.tiers.lock(Tier::Memory);
        (memory.objects().max(on_disk), memory.bytes())
    }

    /// Begins a content, of which this block comes first, for a reader that wants this byte first. It stays until [`end`](Self::end) even without a block.
    pub(crate) fn begin(
        &self,
        key: u128,
        facts: Facts,
        (first, start): (BlockNumber, u64),
        record: Vec<u8>,
        now_ms: u64,
    ) -> (Result<(), &'static str>, Evicted) {
        let from = self.pauses.end(facts.handle, start).map(|pause| pause.last);
        let mut evicted = Evicted::default();
        let mut begun = Ok(());
        for tier in self.tiers.each() {
            let (inserted, removed) = self.tiers.change(tier, |index| {
                let inserted = index.insert(KeyHash(key), facts, now_ms);
                if let Ok(object) = inserted {
                    index.handle_use(object, from, first, now_ms);
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
        let Some(facts) = self.tiers.facts(content) else { return (false, evicted) };
        for tier in self.tiers.each() {
            let (_, removed) = self.tiers.change(tier, |index| match index.find(key) {
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
        for tier in self.tiers.each() {
            let ((), removed) = self.tiers.change(tier, |index| {
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
        if self.has_disk() {
            stored = self.write(content, block, bytes, now_ms, &mut evicted).or(stored);
        }
        (stored, evicted)
    }

    /// A block is in the store. A reader that looked for it a moment before has reported it as lost: it is not.
    fn keep(&self, tier: Tier, content: u128, block: u32, now_ms: u64) -> Result<(), &'static str> {
        let kept = {
            let mut index = self.tiers.lock(tier);
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
        let (admitted, removed) = self.tiers.change(tier, |index| match index.find(KeyHash(content)) {
            Some(object) => index.store(object, block..block + 1, now_ms).map_err(NotStored::as_str),
            None => Err(NotStored::Purged.as_str()),
        });
        self.apply(tier, removed, evicted);
        admitted
    }

    /// Whether a block is here.
    pub(crate) fn contains(&self, content: u128, block: BlockNumber) -> bool {
        self.tiers.contains(content, block)
    }

    /// Names each block of a content that is here, in each tier that has it; `true`: the disk.
    pub(crate) fn each_block(&self, content: u128, mut name: impl FnMut(bool, BlockNumber)) {
        for tier in self.tiers.each() {
            let index = self.tiers.lock(tier);
            if let Some(object) = index.find(KeyHash(content)) {
                index.blocks_back(object).for_each(|block| name(tier == Tier::Disk, block));
            }
        }
    }

    /// Whether all blocks of these bytes are here.
    pub(crate) fn contains_all(&self, content: u128, bytes: &Range<u64>) -> bool {
        self.layout.blocks_over(bytes).all(|block| self.contains(content, block))
    }

    /// Whether all of it is here.
    pub(crate) fn is_complete(&self, content: u128) -> bool {
        self.tiers.length(content).is_some_and(|length| {
            (0..self.layout.blocks_in(length)).all(|block| self.contains(content, block))
        })
    }

    /// Tells the indexes of a reader.
    pub(crate) fn note(&self, content: u128, waiting: Waiting, note: impl Fn(&mut Index, ObjectId)) {
        for tier in self.tiers.each() {
            let index = match waiting {
                Waiting::Yes => Some(self.tiers.lock(tier)),
                Waiting::No => self.tiers.try_lock(tier),
            };
            if let Some(mut index) = index
                && let Some(object) = index.find(KeyHash(content))
            {
                note(&mut index, object);
            }
        }
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
        for tier in self.tiers.each() {
            let (_, removed) = self.tiers.change(tier, |index| index.purge(KeyHash(key)));
            // Only its own: what the directory had of it is gone already.
            self.apply(tier, removed, &mut Evicted::default());
        }
    }

    /// The process ends: what the disk has stays there.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    /// A block is not here after all.
    pub(crate) fn lose(&self, content: u128, block: u32) {
        let losing = self.tiers.each().filter(|tier| self.tiers.lose(*tier, content, block)).count();
        CacheCounters::add(self.counters.lost, u64::from(losing > 0));
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
                    let is_in_other =
                        self.tiers.each().any(|other| self.tiers.lock(other).find(key).is_some());
                    if !is_in_other {
                        self.store.remove(&key.0.into());
                        evicted.0.push((handle, key.0));
                    }
                }
            }
        }
    }
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

/// Memory for a record that no disk takes, about.
const RECORD_BYTES: u64 = 1024;

//! The three caches of Flash as one: names, files, heads.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use baton_http::{AcceptedCodings, Stamp};
use baton_sys::descriptors;
use foldhash::fast::RandomState;

use crate::allowance::Allowance;
use crate::coded_forms::UnderWay;
use crate::disk::Identity;
use crate::name::{CachedResult, Name, Question};
use crate::policy::Policy;
use crate::presentation::Presentation;
use crate::query::{Found, Query};
use crate::settings::{CacheSettings, MEMORY_FILE_BYTES_LIMIT};
use crate::stats::{CacheStats, Counters, HitStats};
use crate::stored::{Stored, memory_weight};
use crate::table::Table;
use crate::tree::Tree;

/// The caches of names and files. Threads may share one or have one each.
#[derive(Debug)]
pub struct Cache {
    settings: CacheSettings,
    memory_file_bytes_max: AtomicU64,
    memory_hot_file_bytes_max: AtomicU64,
    promotions: Allowance,
    hasher: RandomState,
    pub(crate) names: Table<Name>,
    /// Files in memory; weighs bytes.
    pub(crate) memory: Table<Stored>,
    /// How much files may take, in bytes, and which part of what can be given up of that, in thousandths.
    memory_bound: Mutex<(u64, u16)>,
    /// Files kept open; weighs each alike.
    descriptors: Table<Stored>,
    pub(crate) under_way: UnderWay,
    pub(crate) counters: Arc<Counters>,
}

/// The immediate result of the cache of names.
pub(crate) enum NameLookup {
    Known(Found),
    /// Known name; its file is not, or no longer, in the cache.
    Gone(Arc<Name>),
    /// Known, but due for revalidation.
    Old(Arc<Name>),
}

impl Cache {
    /// An empty cache.
    pub fn new(settings: CacheSettings) -> Self {
        Self {
            memory_file_bytes_max: AtomicU64::new(
                settings.memory_file_bytes_max.min(MEMORY_FILE_BYTES_LIMIT),
            ),
            memory_hot_file_bytes_max: AtomicU64::new(
                settings.memory_hot_file_bytes_max.min(MEMORY_FILE_BYTES_LIMIT),
            ),
            promotions: Allowance::default(),
            hasher: RandomState::default(),
            names: Table::new(Policy::Lru, settings.names_max as u64),
            memory: Table::new(settings.policy, settings.memory_bytes_max),
            memory_bound: Mutex::new((settings.memory_bytes_max, WHOLE_PERMILLE)),
            descriptors: Table::new(Policy::Lru, settings.files_max as u64),
            under_way: UnderWay::default(),
            counters: Arc::default(),
            settings,
        }
    }

    /// Changes how much memory files may take, in bytes; at once.
    pub fn set_memory_bytes_max(&self, bytes: u64) {
        self.bound_memory(|bound| bound.0 = bytes);
    }

    /// Lets files take a part of the range from an eighth of their memory to all of it, in thousandths; at once. Returns whether
    /// some have left memory.
    pub fn set_memory_share(&self, permille: u16) -> bool {
        self.bound_memory(|bound| bound.1 = permille.min(WHOLE_PERMILLE))
    }

    fn bound_memory(&self, change: impl FnOnce(&mut (u64, u16))) -> bool {
        let mut bound = self.memory_bound.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut bound);
        let (most, permille) = *bound;
        let least = most / LEAST_MEMORY;
        self.memory.set_weight_max(least + (most - least) * u64::from(permille) / u64::from(WHOLE_PERMILLE))
    }

    /// Changes the largest size of files kept in memory, in bytes; takes effect for a name at its next revalidation.
    pub fn set_memory_file_bytes_max(&self, bytes: u64) {
        self.memory_file_bytes_max.store(bytes.min(MEMORY_FILE_BYTES_LIMIT), Ordering::Relaxed);
    }

    /// Changes the largest size of files kept in memory once they are requested repeatedly, in bytes; takes effect
    /// for a name at its next revalidation.
    pub fn set_memory_hot_file_bytes_max(&self, bytes: u64) {
        self.memory_hot_file_bytes_max.store(bytes.min(MEMORY_FILE_BYTES_LIMIT), Ordering::Relaxed);
    }

    /// The cache's settings.
    pub fn settings(&self) -> &CacheSettings {
        &self.settings
    }

    /// The counters of the caches.
    pub fn stats(&self) -> CacheStats {
        let counters = &self.counters;
        let hits = |hits, misses| HitStats {
            hits: Counters::read(hits),
            misses: Counters::read(misses),
            ..HitStats::default()
        };
        let in_memory = self.memory.len() as u64;
        CacheStats {
            names: HitStats {
                entries: self.names.len() as u64,
                evictions: self.names.evictions(),
                ..hits(&counters.name_hits, &counters.name_misses)
            },
            files: HitStats {
                entries: in_memory + self.descriptors.len() as u64,
                evictions: self.memory.evictions() + self.descriptors.evictions(),
                ..hits(&counters.file_hits, &counters.file_misses)
            },
            heads: hits(&counters.head_hits, &counters.head_misses),
            in_memory,
            memory_bytes: self.memory.weight(),
            revalidations: Counters::read(&counters.revalidations),
            changes: Counters::read(&counters.changes),
            needs_disk: Counters::read(&counters.needs_disk),
        }
    }

    pub(crate) fn question<'a>(&self, tree: &Tree, query: &Query<'a>) -> Question<'a> {
        // Where the answer does not depend on codings, clients of all tastes share one name.
        let accepted =
            if tree.config().precompressed.is_empty() { AcceptedCodings::default() } else { query.accepted };
        Question::new(tree.id(), query.path, accepted, &self.hasher)
    }

    /// What the cache of names has for the question, if anything.
    pub(crate) fn recall(&self, question: &Question<'_>, now: &Stamp) -> Option<NameLookup> {
        if !self.settings.names {
            return None;
        }
        let recalled = self.names.find(
            question.hash,
            |name| name.answers(question),
            |name| {
                self.names.touch(name);
                if !name.is_fresh(now, self.settings.revalidate_ms) {
                    return NameLookup::Old(Arc::clone(name));
                }
                match &name.answer {
                    CachedResult::File { .. } => match name.stored() {
                        Some(stored) => NameLookup::Known(Found::File(stored)),
                        None => NameLookup::Gone(Arc::clone(name)),
                    },
                    CachedResult::Script(path) => NameLookup::Known(Found::Script(Arc::clone(path))),
                    CachedResult::Fallback(path) => NameLookup::Known(Found::Fallback(Arc::clone(path))),
                    CachedResult::AddSlash => NameLookup::Known(Found::AddSlash),
                    CachedResult::Missing => NameLookup::Known(Found::Missing),
                    CachedResult::Forbidden => NameLookup::Known(Found::Forbidden),
                }
            },
        );
        match &recalled {
            Some(NameLookup::Known(Found::File(stored))) => {
                Counters::count(&self.counters.name_hits);
                self.use_file(stored);
            }
            Some(_) => Counters::count(&self.counters.name_hits),
            None => Counters::count(&self.counters.name_misses),
        }
        recalled
    }

    /// Notes that a file is sent from the cache.
    pub(crate) fn use_file(&self, stored: &Stored) {
        Counters::count(&self.counters.file_hits);
        self.table_of(stored).touch(stored);
    }

    /// The file in this state and presentation, if the cache has it.
    pub(crate) fn file(
        &self,
        identity: &Identity,
        presentation: &Presentation,
        now: &Stamp,
    ) -> Option<Arc<Stored>> {
        let hash = self.hash_of_file(identity, presentation);
        let in_table = |table: &Table<Stored>| {
            table.find(hash, |stored| stored.shows(identity, presentation), Arc::clone)
        };
        // A hot file may have been kept open before it was taken into memory under another name.
        let stored = in_table(&self.memory).or_else(|| in_table(&self.descriptors))?;
        stored.is_current(identity, now).then_some(stored)
    }

    /// Takes a file in; another thread may have been faster, then its file counts.
    pub(crate) fn insert_file(&self, stored: Stored, now: &Stamp) -> Arc<Stored> {
        let stored = Arc::new(stored);
        self.table_of(&stored).insert(
            Arc::clone(&stored),
            |present| present.rivals(&stored),
            |present| present.is_current(&stored.identity, now),
        )
    }

    pub(crate) fn remove_file(&self, stored: &Arc<Stored>) {
        self.table_of(stored).remove(stored);
    }

    /// Whether files of this size are kept in memory as long as it has room, even if rarely requested.
    pub(crate) fn is_small(&self, size: u64) -> bool {
        size <= self.memory_file_bytes_max.load(Ordering::Relaxed)
            && memory_weight(size) <= self.memory.weight_max()
    }

    /// Whether a file of this size, known as `known`, belongs in memory now.
    pub(crate) fn belongs_in_memory(&self, size: u64, known: Option<&Stored>, now: &Stamp) -> bool {
        let is_known_there = known.is_some_and(Stored::in_memory);
        let memory_bytes_max = self.memory.weight_max();
        let is_small = self.is_small(size);
        if is_small
            && (is_known_there
                || size <= DISPLACING_FILE_BYTES_MAX
                || self.memory.weight() + memory_weight(size) <= memory_bytes_max)
        {
            return true;
        }
        let hot_bytes = memory_bytes_max / HOT_FILE_SHARE;
        let may_be_hot = is_small || size <= self.memory_hot_file_bytes_max.load(Ordering::Relaxed);
        may_be_hot
            && memory_weight(size) <= hot_bytes
            && (is_known_there
                || known.is_some_and(|known| known.uses() >= HOT_USES)
                    && self.promotions.take(size, hot_bytes, now))
    }

    pub(crate) fn hash_of_file(&self, identity: &Identity, presentation: &Presentation) -> u64 {
        self.hash_of_lines(identity, &presentation.lines)
    }

    pub(crate) fn hash_of_lines(&self, identity: &Identity, lines: &[u8]) -> u64 {
        self.hasher.hash_one((identity.device, identity.inode, lines))
    }

    fn table_of(&self, stored: &Stored) -> &Table<Stored> {
        if stored.in_memory() { &self.memory } else { &self.descriptors }
    }
}

impl descriptors::Holder for Cache {
    /// Of files in memory the contents go with the descriptor: they come back with the next request.
    fn release(&self, count: usize) -> usize {
        let closed = self.descriptors.evict(count, Stored::closes);
        closed + self.memory.evict(count - closed, Stored::closes)
    }
}

/// One part in so many of their memory stays with files, however much is given up: what `auto` leaves them when memory is short.
const LEAST_MEMORY: u64 = 8;

const WHOLE_PERMILLE: u16 = 1_000;

/// Files up to this size displace others in a memory that is full: reading them costs as little as keeping them open. If larger ones
/// did so, too, a site larger than its memory would have its files read anew all the time.
const DISPLACING_FILE_BYTES_MAX: u64 = 16 << 10;

/// Uses after which a file is hot.
const HOT_USES: u64 = 8;

/// One part in so many of the memory for files is what one hot file may take, and what may be read into memory per
/// second: warming up is quick, and a set of hot files that does not fit costs little.
const HOT_FILE_SHARE: u64 = 8;

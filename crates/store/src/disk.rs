//! The files of a store as one: folder, slots and journal.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use rustix::process::getpid;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::compaction::compact;
use crate::disk_failure::DiskError;
use crate::folder::{Folder, clear};
use crate::journal::file::{Appender, JournalFile, Unusable};
use crate::journal::frame::Header;
use crate::replay::{Replay, StoreContents};
use crate::slots::SlotSizes;
use crate::table::{ShardDisk, Table};
use crate::volume::Volume;

/// An open folder with its files.
#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) folder: Folder,
    pub(crate) volume: Arc<Volume>,
    pub(crate) appender: Appender,
    sizes: SlotSizes,
    /// Length from which the journal is worth writing anew.
    compact_from_bytes: u64,
}

/// What a journal is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// The journal tells what is there.
    Whole,
    /// The journal misses something: the store starts empty.
    Nothing,
}

impl Disk {
    /// Opens a folder and reads its journal.
    ///
    /// # Errors
    /// [`DiskError`]; a damaged journal is none: then nothing is there.
    pub(crate) fn open(
        path: &Path,
        sizes: SlotSizes,
        bytes_max: u64,
        trust: Trust,
    ) -> Result<(Self, StoreContents), DiskError> {
        let folder = Folder::open(path)?;
        let (files, file_bytes) = folder.data_files(sizes).map_err(DiskError::of("open the data files"))?;
        let found = match trust {
            Trust::Whole => read_journal(&folder, sizes, file_bytes)?,
            Trust::Nothing => None,
        };
        let (appender, replayed) = match found {
            Some((journal, end, replayed)) => {
                let appender = Appender::resume(journal, end);
                (appender.map_err(DiskError::of("shorten the journal"))?, replayed)
            }
            None => {
                let file = folder.journal().map_err(DiskError::of("open the journal"))?;
                clear(&file).map_err(DiskError::of("clear the journal"))?;
                let appender = Appender::begin(file, new_header(sizes));
                let nothing = Replay::new(sizes, Vec::new()).finish();
                (appender.map_err(DiskError::of("write a journal"))?, nothing)
            }
        };
        let volume = Volume::new(files, sizes, bytes_max, replayed.used.iter().copied())
            .map_err(DiskError::of("deallocate a range of a file"))?;
        let compact_from_bytes = compact_from(replayed.live_bytes);
        Ok((Self { folder, volume: Arc::new(volume), appender, sizes, compact_from_bytes }, replayed))
    }

    /// What shards need of it.
    pub(crate) fn shard_disk(&self) -> ShardDisk {
        ShardDisk { volume: Arc::clone(&self.volume), journal: Arc::clone(self.appender.journal()) }
    }

    /// Whether most of the journal is about what is not there any more.
    pub(crate) fn is_compaction_due(&self) -> bool {
        self.appender.len() > self.compact_from_bytes
    }

    /// Writes the journal anew, durably.
    ///
    /// # Errors
    /// [`DiskError`]; the old journal is in its place then.
    pub(crate) fn compact(&mut self, table: &Table) -> Result<(), DiskError> {
        self.appender = compact(table, &self.folder, new_header(self.sizes))?;
        self.compact_from_bytes = compact_from(self.appender.len());
        Ok(())
    }
}

/// The journal, where its valid prefix ends, and what it says; `None` if it is void.
fn read_journal(
    folder: &Folder,
    sizes: SlotSizes,
    file_bytes: Vec<u64>,
) -> Result<Option<(JournalFile, u64, StoreContents)>, DiskError> {
    let file = folder.journal().map_err(DiskError::of("open the journal"))?;
    let (journal, durable) = match JournalFile::open(file, slot_bytes(sizes)) {
        Ok(opened) => opened,
        Err(Unusable::Void) => return Ok(None),
        Err(Unusable::Io(error)) => return Err(DiskError::new("read the journal", error)),
    };
    let mut replay = Replay::new(sizes, file_bytes);
    let end = journal
        .replay(|entry, offset, len| replay.handle_entry(entry, offset, len))
        .map_err(DiskError::of("read the journal"))?;
    if end < durable {
        // What was damaged may have been a removal.
        return Ok(None);
    }
    Ok(Some((journal, end, replay.finish())))
}

fn new_header(sizes: SlotSizes) -> Header {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let pid = getpid().as_raw_nonzero().get().unsigned_abs();
    let id = xxh3_64_with_seed(&since_epoch.as_nanos().to_le_bytes(), u64::from(pid));
    Header { id, slot_bytes: slot_bytes(sizes) }
}

/// Sizes of the smallest and of the largest slots.
fn slot_bytes(sizes: SlotSizes) -> (u32, u32) {
    let bytes = |class| u32::try_from(sizes.bytes(class)).unwrap_or(u32::MAX);
    (bytes(0), sizes.classes().last().map_or(0, bytes))
}

/// Twice what is needed, so that writing it anew costs at most as much as was written since.
fn compact_from(live_bytes: u64) -> u64 {
    2 * live_bytes + COMPACT_BYTES_MIN
}

/// A journal of less than this is never worth the effort.
const COMPACT_BYTES_MIN: u64 = 16 << 20;

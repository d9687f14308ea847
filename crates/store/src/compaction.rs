//! Writes a journal anew: what there is, without what there was.
//!
//! Shard by shard, so that no loop waits for it. From then on a shard's records are read from the new file, while the
//! old one is what the next process would find, until the new one is complete and takes its place. Operations that are
//! queued meanwhile go to the new journal; some of them it already contains, and they say the same once more.

use std::sync::Arc;

use baton_sys::blocking::Blocking;

use crate::disk_failure::DiskError;
use crate::folder::Folder;
use crate::journal::entry::Entry;
use crate::journal::file::{Appender, JournalFile};
use crate::journal::frame::Header;
use crate::key::{BlockId, Key};
use crate::object::{DiskBlock, Record};
use crate::replay::SHARDS;
use crate::table::Table;

/// Writes the journal anew, durably.
///
/// # Errors
/// If the disk does not take it; the old journal is in its place then.
pub(crate) fn compact(table: &Table, folder: &Folder, header: Header) -> Result<Appender, DiskError> {
    let file = folder.new_journal().map_err(DiskError::of("create a journal"))?;
    let mut appender = Appender::begin(file, header).map_err(DiskError::of("write a journal"))?;
    for index in 0..SHARDS {
        copy_shard(table, index, &mut appender)?;
    }
    appender.sync().map_err(DiskError::of("write a journal"))?;
    folder.replace_journal().map_err(DiskError::of("replace the journal"))?;
    table.counters().compactions.add(1);
    Ok(appender)
}

/// An object as it was when its shard was looked at.
struct Seen {
    key: Key,
    generation: u32,
    kind: u8,
    record: Record,
    blocks: Vec<DiskBlock>,
}

fn copy_shard(table: &Table, index: usize, appender: &mut Appender) -> Result<(), DiskError> {
    let (seen, journal) = {
        let shard = table.shard(index);
        let seen = |key: Key| {
            let object = shard.object(&key)?;
            Some(Seen {
                key,
                generation: object.generation,
                kind: object.kind,
                record: object.record.clone(),
                blocks: object.disk_blocks().to_vec(),
            })
        };
        let seen: Vec<Seen> = shard.keys(None).into_iter().filter_map(seen).collect();
        (seen, shard.disk().map(|disk| Arc::clone(&disk.journal)))
    };
    let mut places = Vec::with_capacity(seen.len());
    for object in &seen {
        places.push(copy_object(object, journal.as_deref(), appender));
        if appender.collected_bytes() >= COLLECTED_BYTES {
            appender.flush().map_err(DiskError::of("write a journal"))?;
        }
    }
    // The places are used as soon as they are known, so the bytes have to be there.
    appender.flush().map_err(DiskError::of("write a journal"))?;
    let mut shard = table.shard(index);
    for (Seen { key, record, .. }, place) in seen.iter().zip(places) {
        match (record, place) {
            // The writer gives it its place when it comes to it in the queue.
            (Record::Queued(_), _) => {}
            (_, Some((offset, len))) => shard.handle_copied(key, record, Record::Journal { offset, len }),
            (_, None) => {
                shard.handle_unreadable(key, record);
            }
        }
    }
    shard.set_journal(appender.journal());
    Ok(())
}

/// Writes the entries of an object; returns the place of its record, or `None` if that cannot be read.
fn copy_object(seen: &Seen, journal: Option<&JournalFile>, appender: &mut Appender) -> Option<(u64, u32)> {
    let &Seen { key, generation, kind, ref record, ref blocks } = seen;
    let frame;
    let record = match record {
        Record::Queued(bytes) | Record::Memory(bytes) => &bytes[..],
        Record::Journal { offset, len } => {
            let journal = journal?;
            frame = journal.read(*offset, *len, Blocking::Allowed).ok()?;
            match journal.entry_of(&frame, *offset)? {
                Entry::Object { key: found, record, .. } if found == key => record,
                _ => return None,
            }
        }
    };
    let place = appender.push(&Entry::Object { key, generation, kind, replaces: true, record });
    for block in blocks {
        appender.push(&Entry::Block(BlockId { key, generation, number: block.number }, block.stored()));
    }
    Some(place)
}

/// How much is collected for one write.
const COLLECTED_BYTES: usize = 1 << 20;

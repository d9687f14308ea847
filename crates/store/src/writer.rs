//! The thread that writes: the only one that waits for the disk to take something.
//!
//! ```text
//!             opened, or written anew
//!   failing ───────────────────────────► working
//!      ▲     after 1 s, 2 s … 60 s          │
//!      └────────────────────────────────────┘
//!        read-only, gone, I/O error: what is queued stays in memory or is dropped
//! ```
//!
//! A file system without space for blocks limits the store to the space that it uses: once the owner of the index evicts,
//! new blocks take the place of others. Without space for the journal the disk fails.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use baton_buf::{Buffer, Slice};

use crate::checksum::checksum;
use crate::disk::{Disk, Trust};
use crate::disk_failure::{DiskError, DiskFailure, report_failure, report_limit};
use crate::health::Health;
use crate::journal::entry::{Entry, Stored};
use crate::key::{BlockId, Key};
use crate::object::{DiskBlock, Record};
use crate::queue::{Done, NotDurable, Op, Reuse, WaitOutcome};
use crate::replay::SHARDS;
use crate::shared::Shared;
use crate::slots::Allocation;
use crate::stats::DiskState;
use crate::write_back::WriteBack;

/// The writer of a store.
pub(crate) struct Writer {
    shared: Arc<Shared>,
    path: PathBuf,
    disk: Option<Disk>,
    health: Health,
    is_working: bool,
    /// Whether the file system has space.
    space: Health,
    is_limited: bool,
    /// Whether the journal misses something that the table has.
    is_behind: bool,
    /// Whether a journal that is found later can be older than what this store has done.
    had_disk: bool,
    /// Records in the journal's collected bytes, and their places there.
    unflushed: Vec<(Key, Buffer, Record)>,
    write_back: WriteBack,
    until_check_bytes: u64,
}

impl Writer {
    pub(crate) fn new(shared: Arc<Shared>, path: PathBuf) -> Self {
        Self {
            shared,
            path,
            disk: None,
            health: Health::default(),
            is_working: false,
            space: Health::default(),
            is_limited: false,
            is_behind: false,
            had_disk: false,
            unflushed: Vec::new(),
            write_back: WriteBack::default(),
            until_check_bytes: CHECK_BYTES,
        }
    }

    /// Runs until the store ends.
    pub(crate) fn run(mut self) {
        loop {
            if !self.is_working && self.health.retry_at().is_none_or(|at| at <= Instant::now()) {
                let begun = self.begin();
                self.note(begun);
            }
            if self.is_limited && self.space.retry_at().is_none_or(|at| at <= Instant::now()) {
                self.look_for_space();
            }
            match self.shared.queue.next() {
                Some(op) => self.handle(op),
                None => {
                    if self.is_working {
                        let flushed = self.flush();
                        self.note(flushed);
                    }
                    if self.shared.queue.wait(self.deadline()) == WaitOutcome::End {
                        break;
                    }
                }
            }
        }
        if self.is_working {
            let synced = self.sync();
            self.note(synced);
        }
    }

    /// When to look again at what does not work; `None`: all does.
    fn deadline(&self) -> Option<Instant> {
        let disk = self.health.retry_at().filter(|_| !self.is_working);
        let space = self.space.retry_at().filter(|_| self.is_limited);
        disk.into_iter().chain(space).min()
    }

    /// Makes the disk work: opens it, or goes on after a failure.
    fn begin(&mut self) -> Result<(), DiskError> {
        if self.disk.as_ref().is_some_and(|disk| !disk.folder.is_there()) {
            self.forget_disk();
        }
        let was_open = self.disk.is_some();
        if !was_open {
            self.attach()?;
        }
        let missed = self.shared.queue.take_missed();
        if missed.more_removed && !was_open {
            self.forget_disk();
            self.attach()?;
        }
        for key in &missed.removed {
            self.shared.table.of(key).remove_if_on_disk(key);
        }
        let Some(disk) = &mut self.disk else { return Ok(()) };
        self.is_behind |= missed.any;
        let reserve = disk.folder.check_reserve(self.shared.settings.reserve_bytes);
        self.or_limit(reserve)?;
        if self.is_behind {
            self.compact()?;
        }
        self.is_working = true;
        self.show_state();
        self.shared.queue.open();
        Ok(())
    }

    /// Where the file system has no space, blocks only take the place of others from now on.
    fn or_limit(&mut self, result: Result<(), DiskError>) -> Result<(), DiskError> {
        let error = match result {
            Err(error) if error.reason == DiskFailure::Full => error,
            result => return result,
        };
        let Some(disk) = &self.disk else { return Ok(()) };
        disk.volume.limit_to_used().map_err(DiskError::of("deallocate slots"))?;
        // Of the blocks that were queued many may fail; that is one failure.
        if !std::mem::replace(&mut self.is_limited, true)
            && self.space.handle_failure(error.reason, Instant::now()).is_some()
        {
            report_limit(&self.path, &error);
        }
        self.show_state();
        Ok(())
    }

    /// Lifts the limit if the file system has space again.
    fn look_for_space(&mut self) {
        let Some(disk) = &self.disk else { return };
        match disk.folder.check_reserve(self.shared.settings.reserve_bytes) {
            Ok(()) => {
                disk.volume.lift_limit();
                self.is_limited = false;
                self.show_state();
            }
            Err(error) => drop(self.space.handle_failure(error.reason, Instant::now())),
        }
    }

    fn show_state(&self) {
        if self.is_working {
            self.shared.set_disk(if self.is_limited { DiskState::Limited } else { DiskState::Working });
        }
    }

    /// Opens the folder and joins what is there with what is in memory.
    fn attach(&mut self) -> Result<(), DiskError> {
        // A journal that was out of sight may lack what has been done since, removals among it.
        let trust = if self.had_disk { Trust::Nothing } else { Trust::Whole };
        let Shared { settings, sizes, table, .. } = &*self.shared;
        let (disk, replayed) = Disk::open(&self.path, *sizes, settings.bytes_max, trust)?;
        table.counters().forgotten.add(replayed.forgotten_blocks);
        for (index, found) in replayed.shards.into_iter().enumerate() {
            table.shard(index).adopt(found, disk.shard_disk());
        }
        self.had_disk = true;
        self.disk = Some(disk);
        Ok(())
    }

    /// All that was on the disk is gone.
    fn forget_disk(&mut self) {
        self.disk = None;
        self.is_limited = false;
        self.write_back = WriteBack::default();
        for index in 0..SHARDS {
            self.shared.table.shard(index).forget_disk();
        }
    }

    fn handle(&mut self, op: Op) {
        let handled = match op {
            Op::Block { id, bytes, allocated, reuse } => self.write_block(&id, &bytes, allocated, reuse),
            Op::Object { key, generation, kind, replaces, record } => {
                self.write_object(key, generation, kind, replaces, record);
                Ok(())
            }
            Op::BlockGone { key, number } => {
                self.note_entry(&Entry::BlockGone { key, number });
                Ok(())
            }
            Op::ObjectGone { key } => {
                self.note_entry(&Entry::ObjectGone { key });
                Ok(())
            }
            Op::Sync(Done(done)) => {
                let synced = self.sync();
                let durable = if synced.is_ok() { Ok(()) } else { Err(NotDurable) };
                // The state of the disk shows the failure before anything hears of it.
                self.note(synced);
                done(durable);
                Ok(())
            }
        };
        let maintained = handled.and_then(|()| if self.is_working { self.maintain() } else { Ok(()) });
        self.note(maintained);
    }

    fn write_block(
        &mut self,
        id: &BlockId,
        bytes: &Slice,
        allocated: Allocation,
        reuse: Reuse,
    ) -> Result<(), DiskError> {
        let Some(disk) = &mut self.disk else { return Ok(()) };
        let table = &self.shared.table;
        if !table.of(&id.key).is_queued(id, bytes) {
            disk.volume.free(allocated.slot);
            return Ok(());
        }
        let emptied = disk.volume.empty_slots();
        let written = emptied.and_then(|()| disk.volume.write(allocated, bytes));
        if let Err(error) = written {
            table.of(&id.key).unqueue_block(id, bytes, None);
            disk.volume.free(allocated.slot);
            return self.or_limit(Err(DiskError::new("write a block", error)));
        }
        let slot = allocated.slot;
        let stored = Stored { slot, len: bytes.len() as u32, checksum: checksum(id, bytes) };
        let block = DiskBlock::new(id.number, stored, true);
        if !table.of(&id.key).unqueue_block(id, bytes, Some(block)) {
            disk.volume.free(slot);
            return Ok(());
        }
        disk.appender.push(&Entry::Block(*id, stored));
        self.write_back.handle_written(slot, reuse, &disk.volume);
        table.counters().blocks_written.add(1);
        table.counters().bytes_written.add(bytes.len() as u64);
        self.until_check_bytes = self.until_check_bytes.saturating_sub(bytes.len() as u64);
        if self.health.handle_success() {
            self.say("takes blocks again");
        }
        Ok(())
    }

    fn write_object(&mut self, key: Key, generation: u32, kind: u8, replaces: bool, record: Buffer) {
        let Some(disk) = &mut self.disk else { return };
        let entry = Entry::Object { key, generation, kind, replaces, record: &record };
        let (offset, len) = disk.appender.push(&entry);
        self.unflushed.push((key, record, Record::Journal { offset, len }));
    }

    fn note_entry(&mut self, entry: &Entry<'_>) {
        if let Some(disk) = &mut self.disk {
            disk.appender.push(entry);
        }
    }

    /// What is to be done now and then.
    fn maintain(&mut self) -> Result<(), DiskError> {
        let Some(disk) = &mut self.disk else { return Ok(()) };
        if disk.appender.collected_bytes() >= COLLECTED_BYTES {
            self.flush()?;
        }
        if self.until_check_bytes == 0 {
            self.until_check_bytes = CHECK_BYTES;
            self.check()?;
        }
        let Some(disk) = &mut self.disk else { return Ok(()) };
        if disk.is_compaction_due() {
            self.flush()?;
            self.compact()?;
        }
        Ok(())
    }

    /// Looks whether the folder is there and the file system has space.
    fn check(&mut self) -> Result<(), DiskError> {
        let Some(disk) = &self.disk else { return Ok(()) };
        if !disk.folder.is_there() {
            return Err(disk.folder.gone());
        }
        let reserve = disk.folder.check_reserve(self.shared.settings.reserve_bytes);
        self.or_limit(reserve)?;
        // Some megabytes have found space since the limit was lifted.
        if !self.is_limited && self.space.handle_success() {
            self.say("has space again");
        }
        Ok(())
    }

    fn say(&self, what: &str) {
        baton_report::log::notice(format_args!("the cache folder {} {what}", self.path.display()));
    }

    fn compact(&mut self) -> Result<(), DiskError> {
        let Some(disk) = &mut self.disk else { return Ok(()) };
        disk.compact(&self.shared.table)?;
        self.is_behind = false;
        Ok(())
    }

    /// Makes all that was done durable.
    fn sync(&mut self) -> Result<(), DiskError> {
        self.flush()?;
        self.is_behind |= self.shared.queue.take_missed().any;
        if self.is_behind {
            return self.compact();
        }
        let Some(disk) = &mut self.disk else { return Ok(()) };
        disk.appender.sync().map_err(DiskError::of("write the journal"))
    }

    /// Writes the journal's collected entries; from now on their records are read from there.
    fn flush(&mut self) -> Result<(), DiskError> {
        let Some(disk) = &mut self.disk else { return Ok(()) };
        disk.appender.flush().map_err(DiskError::of("write the journal"))?;
        for (key, queued, place) in self.unflushed.drain(..) {
            self.shared.table.of(&key).move_record(&key, &queued, place);
        }
        Ok(())
    }

    /// After a failure the store goes on in memory.
    fn note(&mut self, result: Result<(), DiskError>) {
        let Err(error) = result else { return };
        if let Some(pause) = self.health.handle_failure(error.reason, Instant::now()) {
            report_failure(&self.path, &error, pause);
        }
        self.is_working = false;
        self.is_behind |= self.disk.is_some();
        self.shared.set_disk(DiskState::Failing(error.reason));
        for op in self.shared.queue.close() {
            self.abandon(op);
        }
        for (key, record, _) in std::mem::take(&mut self.unflushed) {
            self.shared.keep_record(&key, &record);
        }
    }

    fn abandon(&self, op: Op) {
        match op {
            Op::Object { key, record, .. } => self.shared.keep_record(&key, &record),
            Op::Block { id, bytes, allocated, .. } => {
                self.shared.table.of(&id.key).unqueue_block(&id, &bytes, None);
                if let Some(disk) = &self.disk {
                    disk.volume.free(allocated.slot);
                }
            }
            Op::BlockGone { .. } | Op::ObjectGone { .. } => {}
            Op::Sync(Done(done)) => done(Err(NotDurable)),
        }
    }
}

/// Bytes of the journal that are collected while the queue is not empty.
const COLLECTED_BYTES: usize = 64 << 10;

/// Bytes written between two looks at the space that is left.
const CHECK_BYTES: u64 = 16 << 20;

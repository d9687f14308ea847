//! The blocks in the folder: what is written behind the clients, read for them, and found after a start.

use baton_buf::Slice;
use baton_segment::index::Facts;
use baton_segment::rules::KeyHash;
use baton_store::{DiskState, Reuse};

use super::tiers::Tier;
use super::{Blocks, Evicted, GENERATION, id};
use crate::CacheCounters;

impl Blocks {
    /// Has a block written.
    pub(super) fn write(
        &self,
        content: u128,
        block: u32,
        bytes: &Slice,
        now_ms: u64,
        evicted: &mut Evicted,
    ) -> Result<(), &'static str> {
        if self.store.disk() == DiskState::Working {
            self.tiers.lock(Tier::Disk).set_bytes_max(self.disk_bytes_max);
        }
        let mut has_retried = false;
        loop {
            self.admit(Tier::Disk, content, block, now_ms, evicted)?;
            if bytes.is_empty() {
                return Ok(());
            }
            let put = self.store.put_block(&id(content, block), bytes.clone(), Reuse::Likely);
            let Err(refused) = put else { return self.keep(Tier::Disk, content, block, now_ms) };
            self.tiers.lose(Tier::Disk, content, block);
            CacheCounters::add(self.counters.not_written, 1);
            // The file system has less space than the bound: from now on blocks take the place of others.
            let is_full = refused == baton_store::NotStored::DiskFull;
            if !is_full || std::mem::replace(&mut has_retried, true) {
                return Err(refused.word());
            }
            let mut index = self.tiers.lock(Tier::Disk);
            let bytes = index.bytes();
            index.set_bytes_max(bytes.max(1));
        }
    }

    /// Reads a block behind the caller; then calls `done`, from another thread. The block is here then, or gone.
    pub(crate) fn page_in(&self, content: u128, block: u32, done: impl FnOnce() + Send + 'static) {
        self.store.page_in(&id(content, block), done);
    }

    /// Has a read of the caller's own made on one of the threads that read blocks.
    pub(crate) fn run_behind(&self, read: impl FnOnce() + Send + 'static) {
        self.store.run_behind(read);
    }

    /// Takes a content that the store has found. If it `needs_all` of its blocks, and they are not there, or if there is
    /// none, it is for [`forget`](Self::forget).
    pub(crate) fn recover(
        &self,
        content: u128,
        facts: Facts,
        needs_all: bool,
        blocks: &[(u32, u32)],
    ) -> bool {
        let is_right = |&(block, len): &(u32, u32)| {
            let bytes = self.layout.bytes_of(block, facts.length);
            bytes.end - bytes.start == u64::from(len)
        };
        let found = blocks.iter().filter(|block| is_right(block)).map(|(block, _)| *block);
        // An empty body has an empty block, which is on no disk.
        let empty = (facts.length == Some(0)).then_some(0);
        let key = KeyHash(content);
        let (is_kept, removed) = self.tiers.change(Tier::Disk, |index| {
            // What exceeds the bound is not kept; the rest is.
            let _ = index.recover(key, facts, GENERATION, found.chain(empty));
            index.find(key).is_some_and(|object| !needs_all || index.is_complete(object))
        });
        self.apply(Tier::Disk, removed, &mut Evicted::default());
        is_kept
    }
}

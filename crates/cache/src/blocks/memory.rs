//! The blocks in memory: what came last, and short contents that are asked for again and again.

use baton_buf::Slice;
use baton_segment::index::Index;
use baton_segment::rules::KeyHash;
use baton_store::Blocking;

use super::tiers::Tier;
use super::{Blocks, Evicted, id};

impl Blocks {
    /// Holds a block in memory.
    pub(super) fn hold(
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
            self.tiers.lose(Tier::Memory, content, block);
            refused.word()
        })?;
        self.keep(Tier::Memory, content, block, now_ms)
    }

    /// Holds the first block of a short content in memory, since it is asked for again and again. No client waits for that:
    /// while another loop has an index, nothing happens.
    pub(crate) fn warm(&self, content: u128, now_ms: u64) -> Evicted {
        let mut evicted = Evicted::default();
        if !self.has_disk() {
            return evicted;
        }
        let facts = {
            let Some(index) = self.tiers.try_lock(Tier::Disk) else { return evicted };
            let facts = index.find(KeyHash(content)).map(|object| index.facts(object));
            facts
                .filter(|facts| facts.length.is_some_and(|length| (1..=SHORT_BYTES as u64).contains(&length)))
        };
        let Some(facts) = facts else { return evicted };
        let is_here =
            |index: &Index| index.find(KeyHash(content)).is_some_and(|object| index.contains(object, 0));
        if self.tiers.try_lock(Tier::Memory).is_some_and(|index| is_here(&index)) {
            return evicted;
        }
        let Ok(Some(bytes)) = self.store.read_block(&id(content, 0), Blocking::Never) else { return evicted };
        let (inserted, removed) = self.tiers.change(Tier::Memory, |index| {
            index.find(KeyHash(content)).is_some() || index.insert(KeyHash(content), facts, now_ms).is_ok()
        });
        self.apply(Tier::Memory, removed, &mut evicted);
        if inserted {
            // A block that finds no room stays on the disk alone.
            let _ = self.hold(content, 0, &bytes, now_ms, &mut evicted);
            let ((), removed) = self.tiers.change(Tier::Memory, |index| {
                if let Some(object) = index.find(KeyHash(content)) {
                    index.close(object);
                }
            });
            self.apply(Tier::Memory, removed, &mut evicted);
        }
        evicted
    }
}

/// The longest block that leaves faster from memory, in one piece with its head, than by reference from a file.
const SHORT_BYTES: usize = 32 << 10;

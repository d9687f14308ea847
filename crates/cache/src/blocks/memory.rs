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

    /// Gives the memory another bound, a part of its range in thousandths, and evicts what is beyond it. What a client is being
    /// sent goes last: its memory would not be free.
    pub(crate) fn set_memory_share(&self, permille: u16, now_ms: u64) -> Evicted {
        let (least, most) = (*self.memory_bytes.start(), *self.memory_bytes.end());
        let bytes_max = least + (most - least) * u64::from(permille.min(1_000)) / 1_000;
        self.tiers.lock(Tier::Memory).set_bytes_max(bytes_max.max(1));
        let (mut evicted, mut spared, mut in_a_row, mut last) = (Evicted::default(), 0, 0, None);
        loop {
            let next = self.tiers.lock(Tier::Memory).beyond_bound(now_ms);
            let Some((key, block)) = next else { return evicted };
            in_a_row = if next == last { in_a_row + 1 } else { 0 };
            last = next;
            let is_spared = spared < SPARED_MAX
                && in_a_row < SPARED_IN_A_ROW_MAX
                && self.store.is_referenced(&id(key.0, block));
            let ((), removed) = self.tiers.change(Tier::Memory, |index| {
                let Some(object) = index.find(key) else { return };
                match is_spared {
                    true => index.handle_use(object, None, block, now_ms),
                    false => index.evict(object, block),
                }
            });
            spared += usize::from(is_spared);
            self.apply(Tier::Memory, removed, &mut evicted);
        }
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

/// How often blocks that are referenced let another one go first, when the memory shrinks: all may be referenced.
const SPARED_MAX: usize = 1_024;

/// How often one of them does in a row. S3-FIFO moves a block with its second use; other policies may name it whatever its uses.
const SPARED_IN_A_ROW_MAX: usize = 2;

/// The longest block that leaves faster from memory, in one piece with its head, than by reference from a file.
const SHORT_BYTES: usize = 32 << 10;

#[cfg(test)]
mod tests {
    use baton_segment::index::Facts;

    use super::super::Available;
    use super::*;
    use crate::test_bench::counters;
    use crate::{PolicyName, Settings};

    const BLOCK: u64 = 4096;

    /// A cache of 64 blocks, with 32 contents of one each.
    fn blocks(policy: PolicyName) -> Blocks {
        let settings = Settings {
            memory_bytes_max: 64 * BLOCK,
            memory_bytes_min: 0,
            block_bytes: BLOCK as u32,
            policy: Some(policy),
            ..Settings::default()
        };
        let blocks = Blocks::open(&settings, counters(), 1).unwrap();
        (1..=32).for_each(|content| put(&blocks, content));
        blocks
    }

    fn put(blocks: &Blocks, content: u128) {
        let now_ms = content as u64;
        let facts = Facts { length: Some(BLOCK), handle: now_ms, ..Facts::default() };
        let (begun, _) = blocks.begin(content, facts, (0, 0), Vec::new(), now_ms);
        begun.unwrap();
        let bytes = Slice::from(vec![content as u8; BLOCK as usize]);
        blocks.put(content, 0, &bytes, now_ms).0.unwrap();
        let _evicted = blocks.end(content, Some(BLOCK));
    }

    /// Goal: what a client is being sent leaves last. Method: clients have the four contents that came first; half of all goes.
    #[test]
    fn what_is_referenced_leaves_last() {
        // Of equal values, Greedy-Dual-Size names the same one until something has gone.
        for (policy, kept) in [(PolicyName::Lru, 4), (PolicyName::Gds, 3), (PolicyName::S3Fifo, 4)] {
            let blocks = blocks(policy);
            let sent = [1, 2, 3, 4].map(|content| match blocks.get(content, 0, BLOCK, 1) {
                Available::Bytes(bytes) => bytes,
                other => panic!("{other:?}"),
            });
            let evicted = blocks.set_memory_share(250, 100);
            assert_eq!((blocks.held(), evicted.0.len()), ((16, 16 * BLOCK), 16), "{policy}");
            let is_kept = |content: &u128| blocks.contains(*content, 0);
            assert_eq!((1..=4).filter(is_kept).count(), kept, "{policy}: {evicted:?}");
            let _evicted = blocks.set_memory_share(0, 101);
            assert_eq!(blocks.held(), (0, 0), "{policy}: what is referenced goes when nothing else is left");
            assert_eq!(sent.map(|bytes| bytes.len()), [BLOCK; 4], "its client has it");
        }
    }

    #[test]
    fn the_bound_grows_back() {
        for policy in PolicyName::ALL {
            let blocks = blocks(policy);
            let _evicted = blocks.set_memory_share(125, 100);
            assert!(blocks.held().1 <= 8 * BLOCK, "{policy}");
            let _evicted = blocks.set_memory_share(1_000, 101);
            (101..=132).for_each(|content| put(&blocks, content));
            assert!(blocks.held().1 >= 32 * BLOCK, "{policy}: {:?}", blocks.held());
        }
    }
}

//! Goal: an index never exceeds its bounds, never claims a block that it has given up, and names each block and object
//! that the store is to drop exactly once. Method: random calls under each policy and grouping, against a plain model.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::LazyLock;

use baton_segment::index::{Facts, Generation, Index, IndexSettings, NotStored, ObjectId, Removed};
use baton_segment::layout::{BlockNumber, Grouping, Layout};
use baton_segment::policy::{Aim, CachePolicy, PolicyName};
use baton_segment::rules::KeyHash;
use proptest::prelude::*;

const BLOCK: u64 = 4096;
const BYTES_MAX: u64 = 40 * BLOCK;
const OBJECTS_MAX: usize = 12;
/// Blocks of all objects are alike, however they are grouped.
static LAYOUT: LazyLock<Layout> = LazyLock::new(|| Layout::new(BLOCK, Grouping::Whole).unwrap());

fn settings(policy: PolicyName, grouping: Grouping) -> IndexSettings {
    IndexSettings {
        layout: Layout::new(BLOCK, grouping).unwrap(),
        bytes_max: BYTES_MAX,
        objects_max: OBJECTS_MAX,
        policy,
        aim: Aim::Bytes,
        seed: 1,
    }
}

/// Objects of three classes: one has the index's own policy.
fn policy_of(key: u128) -> Option<CachePolicy> {
    let policies = [None, Some(PolicyName::Reach), Some(PolicyName::S3Fifo)];
    policies[(key / 6 % 3) as usize].map(CachePolicy::from)
}

fn length_of(key: u128) -> u64 {
    [0, 1, BLOCK, 3 * BLOCK + 7, 9 * BLOCK, 30 * BLOCK + 1][(key % 6) as usize]
}

#[derive(Clone, Debug)]
enum Call {
    Open(u128),
    OpenUnknown(u128),
    Close(usize),
    Read { reader: usize, at: f64, blocks: u32 },
    Finish(usize),
    Purge(u128),
    Lose { reader: usize, at: f64 },
    Shrink { blocks: u64, spared: usize },
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let call = prop_oneof![
        4 => (0..18_u128).prop_map(Call::Open),
        1 => (0..18_u128).prop_map(Call::OpenUnknown),
        2 => any::<usize>().prop_map(Call::Close),
        12 => (any::<usize>(), 0.0..1.0_f64, 1..20_u32).prop_map(|(reader, at, blocks)| Call::Read { reader, at, blocks }),
        1 => any::<usize>().prop_map(Call::Finish),
        1 => (0..18_u128).prop_map(Call::Purge),
        1 => (any::<usize>(), 0.0..1.0_f64).prop_map(|(reader, at)| Call::Lose { reader, at }),
        1 => (0..40_u64, 0..5_usize).prop_map(|(blocks, spared)| Call::Shrink { blocks, spared }),
    ];
    prop::collection::vec(call, 1..120)
}

/// What a store would hold, and who reads.
struct Model {
    index: Index,
    held: BTreeMap<(KeyHash, Generation), BTreeSet<BlockNumber>>,
    readers: Vec<(ObjectId, u128, Option<BlockNumber>)>,
    now: u64,
}

impl Model {
    fn open(&mut self, key: u128, length: Option<u64>) {
        let here = match self.index.find(KeyHash(key)) {
            Some(here) => {
                self.index.open(here);
                here
            }
            None => match self.index.insert(
                KeyHash(key),
                Facts { length, handle: key as u64, policy: policy_of(key), ..Facts::default() },
                self.now,
            ) {
                Ok(here) => {
                    let new = self.held.insert((KeyHash(key), self.index.generation(here)), BTreeSet::new());
                    assert_eq!(new, None, "generations are not used twice");
                    here
                }
                Err(refused) => {
                    assert_eq!(refused, NotStored::TooManyObjects);
                    return;
                }
            },
        };
        self.readers.push((here, key, None));
    }

    fn read(&mut self, reader: usize, at: f64, blocks: u32) {
        let (here, key, last) = self.readers[reader];
        let all = LAYOUT.blocks_in(length_of(key));
        let first = (at * f64::from(all)) as u32;
        let range = first..all.min(first + blocks);
        self.index.handle_use(here, last, first, self.now);
        self.readers[reader].2 = Some(first);
        let current = self.index.is_current(here);
        let stored = self.index.store(here, range.clone(), self.now);
        assert!(current || stored == Err(NotStored::Purged));
        let generation = (KeyHash(key), self.index.generation(here));
        // As a store does: drop first, then write.
        self.drop_removed();
        for block in range {
            if self.index.contains(here, block) {
                self.held.get_mut(&generation).unwrap().insert(block);
            }
        }
    }

    /// Gives up what is beyond a lower bound. Some victims are used first, so that others may go before them.
    fn shrink(&mut self, blocks: u64, mut spared: usize) {
        self.index.set_bytes_max(blocks * BLOCK);
        while let Some((key, block)) = self.index.beyond_bound(self.now) {
            let here = self.index.find(key).expect("a content");
            let (before, segments) = (self.index.bytes(), self.index.segments());
            assert!(self.index.contains(here, block));
            if spared > 0 {
                spared -= 1;
                self.index.handle_use(here, None, block, self.now);
            } else {
                self.index.evict(here, block);
                assert!(self.index.bytes() <= before && self.index.segments() < segments);
            }
            self.drop_removed();
        }
        assert!(self.index.bytes() <= blocks * BLOCK);
        self.index.set_bytes_max(BYTES_MAX);
    }

    fn drop_removed(&mut self) {
        while let Some(removed) = self.index.next_removed() {
            match removed {
                Removed::Block { key, generation, block } => {
                    self.held.get_mut(&(key, generation)).unwrap().remove(&block);
                }
                Removed::Object { key, generation, .. } => {
                    let blocks = self.held.remove(&(key, generation));
                    assert_eq!(blocks, Some(BTreeSet::new()), "named once, after its blocks");
                }
            }
        }
    }

    fn check(&self) {
        assert!(self.index.bytes() <= BYTES_MAX && self.index.objects() <= OBJECTS_MAX);
        assert_eq!(self.index.objects(), self.held.len());
        let mut bytes = 0;
        for ((key, generation), blocks) in &self.held {
            let read = self.readers.iter().any(|(here, ..)| self.index.generation(*here) == *generation);
            let found = self.index.find(*key).filter(|here| self.index.generation(*here) == *generation);
            assert!(found.is_some() || (read && blocks.is_empty()), "purged, and kept for its readers");
            let Some(here) = found else { continue };
            let length = self.index.facts(here).length;
            for block in 0..40 {
                assert_eq!(
                    self.index.contains(here, block),
                    blocks.contains(&block),
                    "block {block} of {key:?}"
                );
            }
            bytes += blocks
                .iter()
                .map(|block| LAYOUT.bytes_of(*block, length))
                .map(|range| range.end - range.start)
                .sum::<u64>();
            assert_eq!(
                self.index.is_complete(here),
                length.is_some_and(|length| blocks.len() as u32 == LAYOUT.blocks_in(length))
            );
        }
        assert_eq!(self.index.bytes(), bytes);
    }
}

fn leave(index: &mut Index, here: ObjectId, last: Option<BlockNumber>) {
    if let Some(last) = last {
        index.handle_leave(here, last);
    }
    index.close(here);
}

fn run(policy: PolicyName, grouping: Grouping, calls: Vec<Call>) {
    let mut model = Model {
        index: Index::new(settings(policy, grouping)),
        held: BTreeMap::new(),
        readers: Vec::new(),
        now: 0,
    };
    for call in calls {
        model.now += 1000;
        let readers = model.readers.len().max(1);
        match call {
            Call::Open(key) => model.open(key, Some(length_of(key))),
            Call::OpenUnknown(key) => model.open(key, None),
            Call::Shrink { blocks, spared } => model.shrink(blocks, spared),
            _ if model.readers.is_empty() => {}
            Call::Close(reader) => {
                let (here, _, last) = model.readers.swap_remove(reader % readers);
                leave(&mut model.index, here, last);
            }
            Call::Read { reader, at, blocks } => model.read(reader % readers, at, blocks),
            Call::Finish(reader) => {
                let (here, key, _) = model.readers[reader % readers];
                model.index.set_length(here, length_of(key)).unwrap();
            }
            Call::Purge(key) => {
                let was_here = model.index.find(KeyHash(key)).is_some();
                assert_eq!(model.index.purge(KeyHash(key)), was_here);
                assert_eq!(model.index.find(KeyHash(key)), None);
            }
            Call::Lose { reader, at } => {
                let (here, key, _) = model.readers[reader % readers];
                let block = (at * f64::from(LAYOUT.blocks_in(length_of(key)))) as u32;
                model.index.lose(here, block);
                assert!(!model.index.contains(here, block));
            }
        }
        model.drop_removed();
        model.check();
    }
    for (here, _, last) in std::mem::take(&mut model.readers) {
        leave(&mut model.index, here, last);
    }
    model.drop_removed();
    model.check();
}

proptest! {
    #[test]
    fn bounds_and_blocks(policy in prop::sample::select(PolicyName::ALL.to_vec()), grouping in 0..4_usize, calls in calls()) {
        let groupings = [Grouping::Uniform(NonZeroU32::new(3).unwrap()), Grouping::Exponential, Grouping::Pyramid, Grouping::Whole];
        run(policy, groupings[grouping], calls);
    }
}

fn index(policy: PolicyName) -> Index {
    Index::new(settings(policy, policy.grouping()))
}

#[test]
fn what_a_store_found_is_here_again_within_the_bounds() {
    for policy in PolicyName::ALL {
        let mut index = index(policy);
        let facts =
            Facts { length: Some(9 * BLOCK), validator: Some(7), handle: 3, policy: Some(policy.into()) };
        let here = index.recover(KeyHash(1), facts, 41, [0, 1, 8]).unwrap();
        assert_eq!((index.facts(here), index.generation(here), index.bytes()), (facts, 41, 3 * BLOCK));
        assert_eq!(index.recover(KeyHash(1), facts, 40, [2]), Err(NotStored::Purged), "an older generation");
        assert_eq!(index.recover(KeyHash(2), facts, 42, [9]), Err(NotStored::OutOfRange));
        let long = Facts { length: Some(100 * BLOCK), ..facts };
        assert_eq!(
            index.recover(KeyHash(3), long, 43, 0..50),
            Err(NotStored::NotWorthIt),
            "as many as there is room for"
        );
        assert_eq!(index.bytes(), BYTES_MAX);
        let new = index.insert(KeyHash(4), facts, 0).unwrap();
        assert!(index.generation(new) > 43, "later than all that were found");
    }
}

#[test]
fn an_object_that_is_longer_than_the_layout_is_refused() {
    let mut index = index(PolicyName::Lru);
    let facts = |length| Facts { length, ..Facts::default() };
    let too_long = LAYOUT.length_max() + 1;
    assert_eq!(index.insert(KeyHash(1), facts(Some(too_long)), 0), Err(NotStored::OutOfRange));
    let here = index.insert(KeyHash(1), facts(None), 0).unwrap();
    assert_eq!(index.set_length(here, too_long), Err(NotStored::OutOfRange));
    assert!(!index.is_current(here));
}

#[test]
fn objects_that_are_read_are_not_displaced() {
    let mut index = index(PolicyName::Lru);
    for key in 0..OBJECTS_MAX as u128 {
        let here = index.insert(KeyHash(key), Facts { length: Some(1), ..Facts::default() }, 0).unwrap();
        index.store(here, 0..1, 0).unwrap();
    }
    assert_eq!(index.insert(KeyHash(99), Facts::default(), 0), Err(NotStored::TooManyObjects));
    let first = index.find(KeyHash(0));
    assert!(first.is_none_or(|here| index.is_current(here)));
}

/// Goal: what is beyond the bound of objects goes from the class that has most of them beyond its share. That with most bytes
/// beyond its share gave way once: one long object, and when that had gone, the index took nothing new.
#[test]
fn the_class_with_most_objects_gives_way_to_another_object() {
    const OBJECTS_MAX: usize = 64;
    let settings = settings(PolicyName::S3Fifo, Grouping::UNIFORM);
    let mut index =
        Index::new(IndexSettings { objects_max: OBJECTS_MAX, bytes_max: u64::MAX / 2, ..settings });
    let mut put = |key, length, policy: Option<PolicyName>| {
        let facts = Facts { length: Some(length), policy: policy.map(CachePolicy::from), ..Facts::default() };
        let here = index.insert(KeyHash(key), facts, 0)?;
        index.store(here, 0..LAYOUT.blocks_in(length), 0)?;
        index.close(here);
        Ok::<_, NotStored>(index.find(KeyHash(1000)).is_some())
    };
    assert_eq!(put(1000, BLOCK, Some(PolicyName::Reach)), Ok(true));
    for key in 0..3 * OBJECTS_MAX as u128 {
        assert_eq!(put(key, 2 * BLOCK, None), Ok(true), "{key}");
    }
    assert!(index.purge(KeyHash(1000)));
    let here = index.insert(KeyHash(1001), Facts { length: Some(1), ..Facts::default() }, 0);
    assert!(here.is_ok(), "the class of what was purged has nothing to give up");
}

/// So that a million objects fit beside a site: what an index takes for an object of one block.
#[test]
fn an_object_takes_little_memory() {
    for policy in PolicyName::ALL {
        let mut index = Index::new(IndexSettings {
            bytes_max: u64::MAX / 2,
            objects_max: 1 << 20,
            ..settings(policy, policy.grouping())
        });
        let objects = 1 << 16;
        for key in 0..objects {
            let key = KeyHash(u128::from(key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
            index.recover(key, Facts { length: Some(1000), ..Facts::default() }, 1, [0]).unwrap();
        }
        let each = index.heap_bytes() / objects;
        assert!(each <= 256, "{policy}: {each} bytes");
    }
}

/// What counts is the slot that a block takes, not its length.
#[test]
fn blocks_count_as_their_slots() {
    let mut index = Index::new(settings(PolicyName::Lru, Grouping::UNIFORM)).in_slots(2048);
    for (key, length, expected) in [(1, 1, 2048), (2, 2049, 4096), (3, BLOCK + 2100, BLOCK + 4096), (4, 0, 0)]
    {
        let before = index.bytes();
        let object =
            index.insert(KeyHash(key), Facts { length: Some(length), ..Facts::default() }, 0).unwrap();
        let blocks = LAYOUT.blocks_in(length);
        index.store(object, 0..blocks, 0).unwrap();
        assert_eq!(index.bytes() - before, expected, "{length} bytes");
    }
    index.set_bytes_max(BLOCK);
    let object = index.insert(KeyHash(5), Facts { length: Some(BLOCK), ..Facts::default() }, 0).unwrap();
    for reader in 1..=4 {
        let reader = index.find(KeyHash(reader)).unwrap();
        index.close(reader);
    }
    index.store(object, 0..1, 0).unwrap();
    assert_eq!(index.bytes(), BLOCK, "all others went for a lower bound");
}

//! Any history, with restarts in it, leaves exactly what was put and not taken away.

use std::collections::{BTreeMap, BTreeSet};

use baton_buf::Slice;
use baton_store::{Key, Reuse, Store};
use proptest::prelude::*;

use crate::common::*;

#[derive(Clone, Debug)]
enum Step {
    Put { key: u128, generation: u32 },
    PutBlock { key: u128, number: u32, len: usize },
    Evict { key: u128, number: u32 },
    Hold { key: u128, number: u32 },
    Release { key: u128, number: u32 },
    Remove { key: u128 },
    Sync,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let (key, number) = (0_u128..4, 0_u32..4);
    let block = (key.clone(), number);
    prop_oneof![
        4 => (key.clone(), 1_u32..3).prop_map(|(key, generation)| Step::Put { key, generation }),
        6 => (block.clone(), 1_usize..20_000).prop_map(|((key, number), len)| Step::PutBlock { key, number, len }),
        2 => block.clone().prop_map(|(key, number)| Step::Evict { key, number }),
        2 => block.clone().prop_map(|(key, number)| Step::Hold { key, number }),
        2 => block.prop_map(|(key, number)| Step::Release { key, number }),
        1 => key.prop_map(|key| Step::Remove { key }),
        2 => Just(Step::Sync),
        1 => Just(Step::Reopen),
    ]
}

/// What has to be there.
#[derive(Debug, Default)]
struct Model(BTreeMap<u128, ModelObject>);

#[derive(Debug, Default)]
struct ModelObject {
    generation: u32,
    on_disk: BTreeMap<u32, usize>,
    held: BTreeSet<u32>,
}

/// Length of blocks that are held but not on the disk.
const HELD_LEN: usize = 700;

impl Model {
    fn apply(&mut self, step: &Step, store: &Store) {
        let generation_of = |key: &u128| self.0.get(key).map(|object| object.generation);
        match *step {
            Step::Put { key, generation } => {
                put_object(store, key, generation);
                let object = self.0.entry(key).or_default();
                if object.generation != generation {
                    *object = ModelObject { generation, ..ModelObject::default() };
                }
            }
            Step::PutBlock { key, number, len } => {
                let block = id(key, generation_of(&key).unwrap_or(1), number);
                let put = store.put_block(&block, content(&block, len).into(), Reuse::Likely);
                assert_eq!(put.is_ok(), self.0.contains_key(&key));
                if let Some(object) = self.0.get_mut(&key) {
                    // A block that is held is written as it is held.
                    let held = object.held.contains(&number) && !object.on_disk.contains_key(&number);
                    object.on_disk.entry(number).or_insert(if held { HELD_LEN } else { len });
                }
            }
            Step::Evict { key, number } => {
                store.evict_block(&id(key, generation_of(&key).unwrap_or(1), number));
                self.0.get_mut(&key).map(|object| object.on_disk.remove(&number));
            }
            Step::Hold { key, number } => {
                let Some(object) = self.0.get_mut(&key) else { return };
                let block = id(key, object.generation, number);
                let len = object.on_disk.get(&number).copied().unwrap_or(HELD_LEN);
                store.hold(&block, &Slice::from(content(&block, len))).unwrap();
                // Held as it was on the disk: for simplicity then not held in the model.
                if len == HELD_LEN {
                    object.held.insert(number);
                } else {
                    store.release(&block);
                }
            }
            Step::Release { key, number } => {
                store.release(&id(key, generation_of(&key).unwrap_or(1), number));
                self.0.get_mut(&key).map(|object| object.held.remove(&number));
            }
            Step::Remove { key } => {
                store.remove(&Key::from(key));
                self.0.remove(&key);
            }
            Step::Sync => sync(store).unwrap(),
            Step::Reopen => self.0.values_mut().for_each(|object| object.held.clear()),
        }
    }

    fn check(&self, store: &Store) {
        assert_eq!(store.stats().objects as usize, self.0.len());
        for key in 0..4 {
            let object = self.0.get(&key);
            let expected = object.map(|object| (object.generation, record(key, object.generation)));
            assert_eq!(get_record(store, key), expected);
            for (generation, number) in
                (1..3).flat_map(|generation| (0..4).map(move |number| (generation, number)))
            {
                let block = id(key, generation, number);
                let object = object.filter(|object| object.generation == generation);
                let len = object.and_then(|object| {
                    let held = object.held.contains(&number).then_some(HELD_LEN);
                    object.on_disk.get(&number).copied().or(held)
                });
                assert_eq!(get(store, &block), len.map(|len| content(&block, len)), "{block:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_store_is_a_map(steps in proptest::collection::vec(step(), 1..60)) {
        let folder = tempfile::tempdir().unwrap();
        let mut store = open(settings(folder.path()));
        let mut model = Model::default();
        for step in steps {
            if matches!(step, Step::Reopen) {
                drop(store);
                store = open(settings(folder.path()));
            }
            model.apply(&step, &store);
            model.check(&store);
        }
        sync(&store).unwrap();
        let blocks: usize = model.0.values().map(|object| object.on_disk.len()).sum();
        prop_assert_eq!(store.stats().disk_blocks as usize, blocks);
        let held: usize = model.0.values().map(|object| object.held.len()).sum();
        prop_assert_eq!(store.stats().memory_bytes as usize, held * HELD_LEN);
    }
}

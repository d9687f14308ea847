//! Whatever bytes are lost or changed, what is served is what was put.

use std::fs::{self, OpenOptions};
use std::path::Path;

use baton_store::Key;
use proptest::prelude::*;

use crate::common::*;

/// What is done to a file.
#[derive(Clone, Debug)]
enum Damage {
    Cut,
    Flip(u8),
    Zero(u16),
    Remove,
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        2 => Just(Damage::Cut),
        4 => (0_u8..8).prop_map(Damage::Flip),
        2 => any::<u16>().prop_map(Damage::Zero),
        1 => Just(Damage::Remove),
    ]
}

/// Objects that were removed durably.
const REMOVED: std::ops::Range<u128> = 10..15;

fn fill(folder: &Path) {
    let store = open(settings(folder));
    for key in 0..20 {
        put_object(&store, key, 1);
        put_block(&store, &id(key, 1, 0), 300 * key as usize + 1);
        put_block(&store, &id(key, 1, 1), 5000);
    }
    sync(&store).unwrap();
    for key in REMOVED {
        store.remove(&Key::from(key));
    }
    sync(&store).unwrap();
    // Slots that were used before, and an object of another content.
    put_object(&store, 3, 2);
    for number in 0..6 {
        put_block(&store, &id(3, 2, number), 4000);
    }
    store.evict_block(&id(4, 1, 0));
}

fn apply(damage: &Damage, path: &Path, at: u64) {
    match damage {
        Damage::Cut => OpenOptions::new().write(true).open(path).unwrap().set_len(at).unwrap(),
        Damage::Remove => fs::remove_file(path).unwrap(),
        Damage::Flip(_) | Damage::Zero(_) => {
            let mut bytes = fs::read(path).unwrap();
            let at = at as usize;
            match *damage {
                Damage::Zero(count) => {
                    let end = bytes.len().min(at + usize::from(count));
                    bytes[at.min(end)..end].fill(0);
                }
                Damage::Flip(bit) if at < bytes.len() => bytes[at] ^= 1 << bit,
                _ => {}
            }
            fs::write(path, bytes).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damage_is_forgotten_and_never_served(
        damages in proptest::collection::vec((damage(), any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..4),
    ) {
        let folder = tempfile::tempdir().unwrap();
        fill(folder.path());
        for (damage, which, place) in damages {
            let mut paths: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
            // The journal has the most to tell: half of the damage is to it.
            paths.sort();
            let journal = folder.path().join("journal");
            let path = if which.index(2) == 0 && journal.exists() { &journal } else { which.get(&paths) };
            let len = path.metadata().unwrap().len();
            apply(&damage, path, if len == 0 { 0 } else { place.index(len as usize) as u64 });
        }
        let store = open(settings(folder.path()));
        check_all(&store);
        for key in REMOVED {
            prop_assert_eq!(get_record(&store, key), None, "object {} was removed", key);
        }
        // It works, and what it does now outlives it.
        put_object(&store, 77, 1);
        put_block(&store, &id(77, 1, 0), 5000);
        drop(store);
        let store = open(settings(folder.path()));
        check_all(&store);
        prop_assert_eq!(get(&store, &id(77, 1, 0)), Some(content(&id(77, 1, 0), 5000)));
    }
}

//! Loops that put, evict and read at the same time, in a store that is too small for them.

use std::sync::atomic::{AtomicU64, Ordering};

use baton_store::{Blocking, Key, Reuse, StoreSettings};

use crate::common::*;

#[test]
fn what_a_loop_holds_stays_while_others_evict() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(StoreSettings { bytes_max: 1 << 20, ..settings(folder.path()) });
    let (hits, sent_from_disk) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        // Meanwhile the journal is written anew.
        scope.spawn(|| {
            while store.stats().compactions < 2 {
                let _ = store.put_object(Key::from(PADDING), 1, PADDING_KIND, vec![0; 60_000]);
                let _ = sync(&store);
            }
        });
        for seed in 0..4 {
            let (store, hits, sent_from_disk) = (&store, &hits, &sent_from_disk);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                for _ in 0..3000 {
                    let (key, number) = (random.u128(..6), random.u32(..8));
                    let generation = 1 + random.u32(..50) / 49;
                    let block = id(key, generation, number);
                    match random.u8(..10) {
                        0 => put_object(store, key, generation),
                        1 => store.remove(&Key::from(key)),
                        2 | 3 => store.evict_block(&block),
                        4..=6 => {
                            let len = 1 + (number as usize * 7919) % 60_000;
                            let _ = store.put_block(&block, content(&block, len).into(), Reuse::Unlikely);
                        }
                        _ => {
                            let Some(piece) = store.block(&block, Blocking::Allowed).unwrap() else {
                                continue;
                            };
                            // Others evict it, and its slot would be free, if it were not for the piece.
                            store.evict_block(&block);
                            let _ = store.put_block(
                                &id(key, generation, 7),
                                vec![0; 60_000].into(),
                                Reuse::Likely,
                            );
                            let bytes = bytes_of(&piece);
                            if number != 7 {
                                assert!(
                                    bytes == content(&block, bytes.len())
                                        && bytes.len() as u64 == piece.len()
                                );
                            }
                            hits.fetch_add(1, Ordering::Relaxed);
                            let is_file = matches!(piece, baton_buf::Piece::File(_));
                            sent_from_disk.fetch_add(u64::from(is_file), Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    assert!(hits.into_inner() > 0 && sent_from_disk.into_inner() > 0);
    for object in store.objects() {
        store.remove(&object.key);
    }
    sync(&store).unwrap();
    assert_eq!((store.stats().objects, store.stats().disk_blocks, store.stats().disk_bytes), (0, 0, 0));
}

//! What is put is there, also for the next process; what is removed is not.

use baton_buf::{Piece, Slice};
use baton_store::{Blocking, DiskState, Key, NotStored, Reuse, Store, StoreSettings};

use crate::common::*;

#[test]
fn what_was_put_is_found_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(settings(folder.path()));
    for key in 0..50 {
        put_object(&store, key, 1);
        for number in 0..3 {
            put_block(&store, &id(key, 1, number), 100 + 10_000 * number as usize);
        }
    }
    assert_eq!(check_all(&store).0, 50, "what waits is served from memory");
    sync(&store).unwrap();
    assert_eq!(check_all(&store), (50, 150));
    assert_eq!(store.stats().disk_bytes, 50 * (4096 + 16_384 + 32_768));
    assert_eq!(store.stats().queue_bytes, 0);
    drop(store);

    let store = open(settings(folder.path()));
    assert_eq!(check_all(&store), (50, 150));
    let piece = store.block(&id(7, 1, 2), Blocking::Never).unwrap().unwrap();
    assert!(matches!(piece, Piece::File(_)), "a block that was verified is sent from its file");
    assert_eq!(store.stats().disk_bytes, 50 * (4096 + 16_384 + 32_768));
    assert_eq!(store.stats().forgotten, 0);
}

#[test]
fn another_generation_replaces_the_blocks_and_the_same_one_keeps_them() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(settings(folder.path()));
    for key in [1, 2] {
        put_object(&store, key, 1);
        put_block(&store, &id(key, 1, 0), 5000);
    }
    store.put_object(Key::from(1), 1, 9, b"renewed".to_vec()).unwrap();
    put_object(&store, 2, 2);
    put_block(&store, &id(2, 2, 4), 5000);
    let check = |store: &Store| {
        assert_eq!(get_record(store, 1), Some((1, b"renewed".to_vec())));
        assert_eq!(get(store, &id(1, 1, 0)), Some(content(&id(1, 1, 0), 5000)));
        assert_eq!(get_record(store, 2), Some((2, record(2, 2))));
        assert_eq!(get(store, &id(2, 1, 0)), None);
        assert_eq!(get(store, &id(2, 2, 0)), None);
        assert_eq!(get(store, &id(2, 2, 4)), Some(content(&id(2, 2, 4), 5000)));
    };
    check(&store);
    sync(&store).unwrap();
    check(&store);
    drop(store);
    check(&open(settings(folder.path())));
}

#[test]
fn what_was_evicted_or_removed_does_not_return() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(settings(folder.path()));
    for key in 0..3 {
        put_object(&store, key, 1);
        put_block(&store, &id(key, 1, 0), 100);
        put_block(&store, &id(key, 1, 1), 100);
    }
    store.evict_block(&id(0, 1, 0));
    sync(&store).unwrap();
    store.evict_block(&id(0, 1, 1));
    store.remove(&Key::from(1));
    let check = |store: &Store| {
        assert_eq!([get(store, &id(0, 1, 0)), get(store, &id(0, 1, 1))], [None, None]);
        assert_eq!(get_record(store, 0), Some((1, record(0, 1))));
        assert_eq!((get_record(store, 1), get(store, &id(1, 1, 0))), (None, None));
        assert_eq!(check_all(store), (2, 2));
        assert_eq!(store.stats().disk_bytes, 2 * 4096);
    };
    check(&store);
    drop(store);
    check(&open(settings(folder.path())));
}

#[test]
fn a_removal_counts_although_the_journal_has_not_been_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(settings(folder.path()));
    for key in 0..500 {
        put_object(&store, key, 1);
        put_block(&store, &id(key, 1, 0), 100);
    }
    drop(store);
    let store = Store::open(settings(folder.path())).unwrap();
    // At once: the writer has just begun to read. Either order is right, and ends the same.
    store.remove(&Key::from(5));
    put_object(&store, 6, 2);
    sync(&store).unwrap();
    let check = |store: &Store| {
        assert_eq!(get_record(store, 5), None);
        assert_eq!(get_record(store, 6), Some((2, record(6, 2))));
        assert_eq!(check_all(store), (499, 498));
    };
    check(&store);
    drop(store);
    check(&open(settings(folder.path())));
}

#[test]
fn bounds_hold_and_say_which() {
    let folder = tempfile::tempdir().unwrap();
    let bounds = StoreSettings {
        bytes_max: 2 << 16,
        objects_max: 2,
        memory_bytes_max: 1000,
        ..settings(folder.path())
    };
    let store = open(bounds);
    put_object(&store, 1, 1);
    put_object(&store, 2, 1);
    let put_object_3 = || store.put_object(Key::from(3), 1, 0, Vec::new());
    assert_eq!(put_object_3(), Err(NotStored::ObjectsFull));
    assert_eq!(store.put_object(Key::from(1), 1, 0, vec![0; 70_000]), Err(NotStored::Length));
    put_object(&store, 1, 1);

    let put = |number, len| store.put_block(&id(1, 1, number), Slice::from(vec![1; len]), Reuse::Unlikely);
    assert_eq!(put(0, 65_536), Ok(()));
    assert_eq!(put(0, 65_536), Ok(()), "it is there already");
    assert_eq!(put(1, 65_536), Ok(()));
    assert_eq!(put(2, 1), Err(NotStored::DiskFull));
    assert_eq!([put(3, 0), put(3, 65_537)], [Err(NotStored::Length); 2]);
    assert_eq!(store.put_block(&id(1, 2, 0), Slice::from(vec![1]), Reuse::Likely), Err(NotStored::Unknown));
    store.evict_block(&id(1, 1, 0));
    sync(&store).unwrap();
    assert_eq!(put(2, 1), Ok(()), "space of another size of slots");

    let hold = |key, number, len| store.hold(&id(key, 1, number), &Slice::from(vec![2; len]));
    assert_eq!(
        [hold(1, 5, 600), hold(1, 5, 600), hold(1, 6, 401)],
        [Ok(()), Ok(()), Err(NotStored::MemoryFull)]
    );
    assert_eq!([hold(2, 0, 400), hold(2, 1, 1)], [Ok(()), Err(NotStored::MemoryFull)]);
    assert!(matches!(store.block(&id(1, 1, 5), Blocking::Never), Ok(Some(Piece::Memory(_)))));
    store.release(&id(1, 1, 5));
    assert_eq!(get(&store, &id(1, 1, 5)), None);
    assert_eq!(store.stats().memory_bytes, 400);
    store.remove(&Key::from(2));
    assert_eq!(store.stats().memory_bytes, 0);
    assert_eq!(hold(2, 0, 1), Err(NotStored::Unknown));
    assert_eq!(put_object_3(), Ok(()));
}

#[test]
fn a_block_may_be_held_and_on_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(settings(folder.path()));
    let block = id(1, 1, 0);
    put_object(&store, 1, 1);
    put_block(&store, &block, 9000);
    sync(&store).unwrap();
    let bytes = store.read_block(&block, Blocking::Allowed).unwrap().unwrap();
    assert_eq!(bytes.to_vec(), content(&block, 9000));
    store.hold(&block, &bytes).unwrap();
    assert!(matches!(store.block(&block, Blocking::Never), Ok(Some(Piece::Memory(_)))));
    store.evict_block(&block);
    assert_eq!(get(&store, &block), Some(content(&block, 9000)), "it stays in memory");
    put_block(&store, &block, 9000);
    sync(&store).unwrap();
    store.release(&block);
    assert!(matches!(store.block(&block, Blocking::Never), Ok(Some(Piece::File(_)))));
}

#[test]
fn without_a_folder_there_is_memory() {
    let store = Store::open(StoreSettings { memory_bytes_max: 1000, ..StoreSettings::default() }).unwrap();
    assert_eq!(store.stats().disk, DiskState::Off);
    put_object(&store, 1, 1);
    let block = id(1, 1, 0);
    assert_eq!(store.put_block(&block, vec![1].into(), Reuse::Likely), Err(NotStored::NoDisk));
    store.hold(&block, &Slice::from(content(&block, 10))).unwrap();
    assert_eq!(
        (get_record(&store, 1), get(&store, &block)),
        (Some((1, record(1, 1))), Some(content(&block, 10)))
    );
    assert!(sync(&store).is_err());
    store.remove(&Key::from(1));
    assert_eq!((store.stats().objects, store.stats().memory_bytes), (0, 0));
}

#[test]
fn a_long_journal_is_written_anew_and_says_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(settings(folder.path()));
    for key in 0..20 {
        put_object(&store, key, 1);
        put_block(&store, &id(key, 1, 0), 100);
    }
    let long = vec![7; 60_000];
    while store.stats().compactions == 0 {
        match store.put_object(Key::from(99), 1, 0, long.clone()) {
            Err(NotStored::QueueFull) => sync(&store).unwrap(),
            put => put.unwrap(),
        }
    }
    store.remove(&Key::from(99));
    put_object(&store, 100, 1);
    sync(&store).unwrap();
    assert_eq!(check_all(&store), (21, 20));
    let journal_bytes = folder.path().join("journal").metadata().unwrap().len();
    assert!(journal_bytes < 16 << 20, "{journal_bytes} bytes");
    drop(store);
    assert_eq!(check_all(&open(settings(folder.path()))), (21, 20));
}

#[test]
fn another_size_of_blocks_begins_an_empty_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(settings(folder.path()));
    put_object(&store, 1, 1);
    put_block(&store, &id(1, 1, 0), 60_000);
    drop(store);
    let store = open(StoreSettings { block_bytes_max: 128 << 10, ..settings(folder.path()) });
    assert_eq!(check_all(&store), (0, 0));
    put_object(&store, 1, 1);
    put_block(&store, &id(1, 1, 0), 100_000);
    sync(&store).unwrap();
    assert_eq!(check_all(&store), (1, 1));
}

/// Goal: a mark survives a crash even if the queue had no room for it. Method: a queue that takes nothing but marks.
#[test]
fn a_mark_is_never_lost() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(StoreSettings { queue_bytes_max: 0, objects_max: 0, ..settings(folder.path()) });
    assert!(store.put_object(Key::from(1), 1, 1, Vec::new()).is_err());
    store.put_mark(Key::from(2), 7, b"first".to_vec());
    store.put_mark(Key::from(2), 7, b"second".to_vec());
    sync(&store).unwrap();
    drop(store);
    let store = open(settings(folder.path()));
    put_object(&store, 3, 1);
    let marks: Vec<_> = store.objects().of_kind(7).map(|mark| mark.record.to_vec()).collect();
    assert_eq!(marks, [b"second"]);
    assert_eq!(store.objects().count(), 2);
}

/// A block from before the start that is not in memory is verified behind its reader.
#[test]
fn a_block_that_needs_the_disk_is_paged_in() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(settings(folder.path()));
    put_object(&store, 1, 1);
    for number in 0..9 {
        put_block(&store, &id(1, 1, number), 5000);
    }
    sync(&store).unwrap();
    drop(store);
    let store = open(settings(folder.path()));
    let (done, is_done) = std::sync::mpsc::channel();
    for number in 0..9 {
        let done = done.clone();
        store.page_in(&id(1, 1, number), move || done.send(()).unwrap());
    }
    (0..9).for_each(|_| is_done.recv().unwrap());
    for number in 0..9 {
        let piece = store.block(&id(1, 1, number), Blocking::Never).expect("verified").expect("intact");
        assert_eq!(bytes_of(&piece), content(&id(1, 1, number), 5000));
    }
    store.page_in(&id(9, 1, 0), move || done.send(()).unwrap());
    is_done.recv().expect("what is not there is answered, too");
}

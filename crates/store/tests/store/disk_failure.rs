//! A disk that does not work costs hits, and nothing else.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use baton_buf::Slice;
use baton_store::{DiskFailure, DiskState, Key, NotStored, Reuse, Store, StoreSettings, prepare_folder};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::common::*;

fn put(store: &Store, number: u32) -> Result<(), NotStored> {
    store.put_block(&id(1, 1, number), Slice::from(content(&id(1, 1, number), 5000)), Reuse::Likely)
}

#[test]
fn two_stores_do_not_share_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(settings(folder.path()));
    put_object(&first, 1, 1);
    put(&first, 0).unwrap();
    let second = Store::open(settings(folder.path())).unwrap();
    assert!(sync(&second).is_err());
    assert_eq!(second.stats().disk, DiskState::Failing(DiskFailure::Locked));
    put_object(&second, 2, 1);
    assert_eq!(get_record(&second, 2), Some((1, record(2, 1))), "it works in memory");
    drop(first);
    wait_until("the folder is free", || second.stats().disk == DiskState::Working);
    assert_eq!(get_record(&second, 1), Some((1, record(1, 1))), "what the first one has left");
    assert_eq!(get(&second, &id(1, 1, 0)), Some(content(&id(1, 1, 0), 5000)));
    sync(&second).unwrap();
    drop(second);
    assert_eq!(check_all(&open(settings(folder.path()))), (2, 1));
}

#[test]
fn a_folder_that_vanishes_is_created_again() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("cache");
    let store = open(settings(&folder));
    put_object(&store, 1, 1);
    put(&store, 0).unwrap();
    sync(&store).unwrap();
    fs::rename(&folder, parent.path().join("elsewhere")).unwrap();
    // It is noticed after some megabytes, or when the journal is written anew.
    for number in 10..1000 {
        if store.stats().disk != DiskState::Working {
            break;
        }
        let block = id(1, 1, number);
        let _ = store.put_block(&block, Slice::from(vec![1; 60_000]), Reuse::Unlikely);
        let _ = sync(&store);
        store.evict_block(&block);
    }
    wait_until("there is a folder again", || store.stats().disk == DiskState::Working);
    assert_eq!(get(&store, &id(1, 1, 0)), None, "it starts empty");
    put_object(&store, 1, 1);
    put(&store, 3).unwrap();
    sync(&store).unwrap();
    drop(store);
    let store = open(settings(&folder));
    assert_eq!(get(&store, &id(1, 1, 3)), Some(content(&id(1, 1, 3), 5000)));
}

#[test]
fn the_reserve_of_the_file_system_is_left_free() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(StoreSettings { reserve_bytes: u64::MAX, ..settings(folder.path()) }).unwrap();
    sync(&store).unwrap();
    assert_eq!(store.stats().disk, DiskState::Limited);
    put_object(&store, 1, 1);
    assert_eq!(put(&store, 0), Err(NotStored::DiskFull));
    store.hold(&id(1, 1, 0), &Slice::from(vec![1; 10])).unwrap();
    assert!(get(&store, &id(1, 1, 0)).is_some());
}

/// Names the folder to a process whose files may not grow: this test, run by itself.
const FOLDER: &str = "BATON_STORE_TEST_FULL_FOLDER";

#[test]
fn a_disk_that_is_full_for_a_while() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return fill_the_disk(Path::new(&folder));
    }
    let folder = tempfile::tempdir().unwrap();
    let run = Command::new(std::env::current_exe().unwrap())
        .args(["disk_failure::a_disk_that_is_full_for_a_while", "--exact", "--nocapture"])
        .env(FOLDER, folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{said}");
    assert_eq!(said.matches("only in the place of others").count(), 1, "{said}");
    assert_eq!(said.matches("goes on in memory").count(), 1, "{said}");
    assert_eq!(said.matches("takes blocks again").count(), 1, "{said}");
    assert_eq!(check_all(&open(settings(folder.path()))).0, 3);
}

/// A limit on the size of files stands for a disk that is full.
fn fill_the_disk(folder: &Path) {
    const SIGXFSZ: i32 = 25;
    let _blocked = baton_sys::signals::SignalQueue::new(&[SIGXFSZ]).unwrap();
    let store = open(settings(folder));
    for key in [1, 2] {
        put_object(&store, key, 1);
    }
    put(&store, 0).unwrap();
    sync(&store).unwrap();
    let limit = getrlimit(Resource::Fsize);
    let set_limit = |bytes| {
        setrlimit(Resource::Fsize, Rlimit { current: Some(bytes), maximum: limit.maximum }).unwrap();
    };
    set_limit(40_000);
    let mut stored = Vec::new();
    for number in 1.. {
        match put(&store, number) {
            Ok(()) => stored.push(number),
            Err(NotStored::DiskFull) => break,
            Err(other) => panic!("{other:?}"),
        }
    }
    sync(&store).unwrap();
    stored.retain(|&number| get(&store, &id(1, 1, number)).is_some());
    assert_eq!(stored.len(), 4, "the sixth slot lies beyond the limit");
    store.evict_block(&id(1, 1, stored[0]));
    put(&store, 999).unwrap();
    sync(&store).unwrap();
    assert!(get(&store, &id(1, 1, 999)).is_some(), "in the place of another");

    // No space for the journal either.
    set_limit(1);
    put_object(&store, 1, 1);
    assert!(sync(&store).is_err());
    assert_eq!(store.stats().disk, DiskState::Failing(DiskFailure::Full));
    assert!(put(&store, 997).is_err());
    assert_eq!(get(&store, &id(1, 1, 0)), Some(content(&id(1, 1, 0), 5000)), "what is there is served");
    put_object(&store, 2, 2);
    put_object(&store, 3, 1);
    put_object(&store, 4, 1);
    store.remove(&Key::from(4));
    assert!(sync(&store).is_err());
    assert_eq!(get_record(&store, 2), Some((2, record(2, 2))));

    setrlimit(Resource::Fsize, limit).unwrap();
    wait_until("there is space again", || store.stats().disk == DiskState::Working);
    put(&store, 1000).unwrap();
    sync(&store).unwrap();
    assert_eq!(store.stats().memory_bytes, 0, "the records are in the journal now");
    assert_eq!(get_record(&store, 3), Some((1, record(3, 1))));
    drop(store);
    let store = open(settings(folder));
    assert_eq!(check_all(&store).0, 3);
    assert_eq!(get_record(&store, 2), Some((2, record(2, 2))));
    assert_eq!(get(&store, &id(1, 1, 1000)), Some(content(&id(1, 1, 1000), 5000)));
}

#[test]
fn a_folder_that_others_can_write_to_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let store = Store::open(settings(folder.path())).unwrap();
    assert!(sync(&store).is_err());
    assert_eq!(store.stats().disk, DiskState::Failing(DiskFailure::Denied));
}

#[test]
fn links_are_not_followed() {
    let parent = tempfile::tempdir().unwrap();
    let (victim, folder) = (parent.path().join("victim"), parent.path().join("cache"));
    fs::write(&victim, "precious").unwrap();
    for name in ["lock", "journal", "slots-4k"] {
        fs::create_dir(&folder).unwrap();
        symlink(&victim, folder.join(name)).unwrap();
        let store = Store::open(settings(&folder)).unwrap();
        assert!(sync(&store).is_err());
        assert_eq!(store.stats().disk, DiskState::Failing(DiskFailure::Denied), "{name}");
        drop(store);
        fs::remove_dir_all(&folder).unwrap();
    }
    fs::create_dir(&folder).unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    let link = parent.path().join("link");
    symlink(&folder, &link).unwrap();
    assert!(prepare_folder(&link, None).is_err());
    assert!(sync(&Store::open(settings(&link)).unwrap()).is_err());
}

#[test]
fn files_are_for_their_owner_alone() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("cache");
    prepare_folder(&folder, None).unwrap();
    drop(open(settings(&folder)));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for entry in fs::read_dir(&folder).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
    // Giving it to oneself is always possible.
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    prepare_folder(&folder, Some((user, group))).unwrap();
    open(settings(&folder));
}

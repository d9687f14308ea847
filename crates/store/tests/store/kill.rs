//! A process that is killed at any point leaves nothing wrong, and loses nothing that was confirmed.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use baton_store::{Key, NotStored, Reuse, Store, StoreSettings};

use crate::common::*;

/// Names the folder to the process that is to be killed: this test, run by itself.
const FOLDER: &str = "BATON_STORE_TEST_FOLDER";

#[test]
fn a_killed_process_leaves_the_truth() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        write_for_ever(Path::new(&folder));
    }
    let folder = tempfile::tempdir().unwrap();
    let mut random = fastrand::Rng::with_seed(11);
    let (mut kept, mut removed) = (BTreeSet::new(), BTreeSet::new());
    let mut kept_ever = 0;
    for _ in 0..8 {
        let mut writer = Command::new(std::env::current_exe().unwrap())
            .args(["kill::a_killed_process_leaves_the_truth", "--exact", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
        let mut read = |line: String| {
            let mut words = line.split(' ');
            let (word, key) = (words.next(), words.next().and_then(|key| key.parse::<u128>().ok()));
            match (word, key) {
                (Some("kept"), Some(key)) => kept_ever += usize::from(kept.insert(key)),
                (Some("removing"), Some(key)) => drop(kept.remove(&key)),
                (Some("removed"), Some(key)) => drop(removed.insert(key)),
                _ => {}
            }
        };
        for line in lines.by_ref().take(random.usize(10..100)) {
            read(line.unwrap());
        }
        writer.kill().unwrap();
        // What it has said until then.
        lines.map_while(Result::ok).for_each(&mut read);
        writer.wait().unwrap();

        let store = open(bounds(folder.path()));
        check_all(&store);
        for &key in &kept {
            assert_eq!(get_record(&store, key), Some((1, record(key, 1))), "object {key} was confirmed");
            assert_eq!(get(&store, &id(key, 1, 0)), Some(content(&id(key, 1, 0), 3000)));
        }
        for &key in &removed {
            assert_eq!(get_record(&store, key), None, "object {key} was removed");
        }
    }
    assert!(kept_ever > 0 && !removed.is_empty(), "{kept_ever} were confirmed, {} removed", removed.len());
}

fn bounds(folder: &Path) -> StoreSettings {
    StoreSettings { bytes_max: 1 << 20, ..settings(folder) }
}

/// Puts and removes objects, and says what is confirmed, until it is killed.
fn write_for_ever(folder: &Path) -> ! {
    let store = open(bounds(folder));
    let mut objects: BTreeSet<u128> =
        store.objects().map(|object| u128::from(object.key)).filter(|&key| key != PADDING).collect();
    let mut random = fastrand::Rng::new();
    for key in objects.last().map_or(0, |last| last + 1_000_000).. {
        put_object(&store, key, 1);
        // The journal grows, so that it is written anew now and then.
        for _ in 0..2 {
            let _ = store.put_object(Key::from(PADDING), 1, PADDING_KIND, vec![0; 60_000]);
        }
        // The first block is small, so that it always finds room in the end; others may be in any state.
        for (number, len) in [(0, 3000), (1, random.usize(1..60_000)), (2, random.usize(1..60_000))] {
            put_with_room(&store, &mut objects, key, number, len);
        }
        objects.insert(key);
        if random.u8(..4) == 0 {
            sync(&store).unwrap();
            say(&format!("kept {key}"));
        }
    }
    unreachable!("keys do not end");
}

fn put_with_room(store: &Store, objects: &mut BTreeSet<u128>, key: u128, number: u32, len: usize) {
    let block = id(key, 1, number);
    while store.put_block(&block, content(&block, len).into(), Reuse::Unlikely) == Err(NotStored::DiskFull) {
        let oldest = objects.pop_first().expect("an object fits into an empty store");
        say(&format!("removing {oldest}"));
        store.remove(&Key::from(oldest));
        sync(store).unwrap();
        say(&format!("removed {oldest}"));
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
}

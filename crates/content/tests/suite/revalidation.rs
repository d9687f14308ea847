//! How long a name is valid, and changes of the folder.

use std::fs;
use std::sync::Arc;

use baton_content::{CacheSettings, Found};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_OMIT, utimensat};

use crate::site::{Site, bytes_of};

#[test]
fn a_replaced_file_is_seen_after_the_interval_and_not_before() {
    for memory_file_bytes_max in [0, 1 << 20] {
        let site = Site::with(CacheSettings { memory_file_bytes_max, ..CacheSettings::default() });
        site.write("a.txt", b"old");
        let old = site.file("/a.txt");
        site.replace("a.txt", b"new!");
        assert_eq!(site.content("/a.txt"), b"old");
        assert_eq!(site.stats().revalidations, 0);
        site.wait(1);
        assert_eq!(site.content("/a.txt"), b"new!");
        assert_ne!(site.file("/a.txt").etag(), old.etag());
        assert_eq!((site.stats().revalidations, site.stats().changes), (1, 1));
        // A response in flight can finish with the old one.
        assert_eq!(bytes_of(&old.body(0, old.len())), b"old");
        assert_eq!(site.stats().files.entries, 1, "the old one has left the cache");
    }
}

#[test]
fn a_name_is_looked_at_once_per_interval() {
    for (revalidate_ms, looks) in [(0, 40), (1, 10), (1_000, 10), (1_001, 5), (5_000, 2), (u64::MAX, 0)] {
        let site = Site::with(CacheSettings { revalidate_ms, ..CacheSettings::default() });
        site.write("a.txt", b"a");
        site.file("/a.txt");
        for _ in 0..10 {
            site.wait(1);
            for _ in 0..4 {
                site.file("/a.txt");
            }
        }
        assert_eq!(site.stats().revalidations, looks, "every {revalidate_ms} ms");
        assert_eq!(site.stats().files.misses, 1);
        assert_eq!(site.stats().changes, 0);
    }
}

#[test]
fn a_clock_that_is_set_back_does_not_keep_old_answers_alive() {
    let site = Site::new();
    site.write("a.txt", b"old");
    site.file("/a.txt");
    site.replace("a.txt", b"new!");
    site.set_back(3_600);
    assert_eq!(site.content("/a.txt"), b"new!");
}

#[test]
fn answers_other_than_files_are_revalidated_too() {
    let site = Site::new();
    assert!(matches!(site.find("/thing"), Found::Missing));
    fs::create_dir(site.path("thing")).unwrap();
    assert!(matches!(site.find("/thing"), Found::Missing));
    site.wait(1);
    assert!(matches!(site.find("/thing"), Found::AddSlash));
    fs::remove_dir(site.path("thing")).unwrap();
    site.write("thing", b"a file");
    site.wait(1);
    assert_eq!(site.content("/thing"), b"a file");
    fs::remove_file(site.path("thing")).unwrap();
    site.wait(1);
    assert!(matches!(site.find("/thing"), Found::Missing));
    assert_eq!(site.stats().changes, 3);
}

/// A file changed in place, with equal size and times: only its change time shows it, and only if the file system's
/// clock has ticked since the read. Files read that early are read again.
#[test]
fn a_change_within_a_tick_of_the_clock_is_seen() {
    let site = Site::new();
    site.set_to_wall_clock();
    site.write("a.txt", b"one");
    assert_eq!(site.content("/a.txt"), b"one");
    let times = fs::metadata(site.path("a.txt")).unwrap().modified().unwrap();
    fs::write(site.path("a.txt"), b"two").unwrap();
    fs::File::options().write(true).open(site.path("a.txt")).unwrap().set_modified(times).unwrap();
    site.wait(1);
    assert_eq!(site.content("/a.txt"), b"two");

    // While the change is recent the file is read again once per second; afterwards it is settled.
    let reads = site.stats().files.misses;
    site.file("/a.txt");
    assert_eq!(site.stats().files.misses, reads);
    site.wait(5);
    site.file("/a.txt");
    assert_eq!(site.stats().files.misses, reads + 1);
    site.wait(5);
    site.file("/a.txt");
    assert_eq!(site.stats().files.misses, reads + 1);
}

/// Last-Modified must not change under an equal ETag, and a touched file is a changed file.
#[test]
fn a_touched_file_has_new_validators() {
    let site = Site::new();
    site.write("a.txt", b"same");
    let before = site.file("/a.txt");
    set_modified(&site, "a.txt", 1_000_000_000);
    site.wait(1);
    let after = site.file("/a.txt");
    assert_eq!(after.modified_unix_seconds(), Some(1_000_000_000));
    assert_ne!(after.etag(), before.etag());
}

/// RFC 9110, 8.8.2.1: a reply never says that it was modified after it was sent.
#[test]
fn files_from_the_future_are_as_old_as_their_reply() {
    let site = Site::new();
    site.write("a.txt", b"a");
    let now = site.now();
    set_modified(&site, "a.txt", now.unix_seconds as i64 + 86_400);
    let stored = site.file("/a.txt");
    assert_eq!(stored.modified_unix_seconds(), Some(now.unix_seconds));
    let line = format!("Last-Modified: {}\r\n", std::str::from_utf8(&now.date).unwrap());
    assert!(String::from_utf8_lossy(stored.fields()).contains(&line));
}

fn set_modified(site: &Site, name: &str, unix_seconds: i64) {
    let last_modification = Timespec { tv_sec: unix_seconds, tv_nsec: 0 };
    let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    utimensat(CWD, site.path(name), &Timestamps { last_access, last_modification }, AtFlags::empty())
        .unwrap();
}

#[test]
fn a_new_limit_of_size_takes_hold_when_names_are_revalidated() {
    let settings = CacheSettings { memory_hot_file_bytes_max: 0, ..CacheSettings::default() };
    let site = Site::with(settings);
    site.write("a.txt", &[b'a'; 5_000]);
    assert!(site.file("/a.txt").in_memory());
    site.cache.set_memory_file_bytes_max(1_000);
    site.wait(1);
    assert!(!site.file("/a.txt").in_memory());
    assert_eq!((site.stats().in_memory, site.stats().memory_bytes, site.stats().files.entries), (0, 0, 1));
    site.cache.set_memory_file_bytes_max(10_000);
    site.wait(1);
    assert!(site.file("/a.txt").in_memory());
    assert_eq!((site.stats().in_memory, site.stats().files.entries), (1, 1));
}

/// A larger file is loaded into memory when it is requested often, stays there, and leaves when it is too large for
/// the limits; a second one waits while the second's allowance is used up.
#[test]
fn a_hot_file_is_taken_into_memory() {
    let settings = CacheSettings {
        memory_bytes_max: 100_000,
        memory_file_bytes_max: 100,
        memory_hot_file_bytes_max: 10_000,
        ..CacheSettings::default()
    };
    let site = Site::with(settings);
    for name in ["first", "second", "seldom"] {
        site.write(name, &[b'x'; 8_000]);
    }
    site.write("large", &[b'x'; 10_001]);
    for _ in 0..20 {
        for path in ["/first", "/second", "/large"] {
            assert!(!site.file(path).in_memory(), "not before it is looked at again");
        }
    }
    site.file("/seldom");
    site.wait(1);
    let in_memory = |path| site.file(path).in_memory();
    assert!(in_memory("/first"));
    assert!(!in_memory("/second"), "an eighth of the memory per second");
    assert!(!in_memory("/seldom"));
    assert!(!in_memory("/large"));
    site.wait(1);
    assert!(in_memory("/first") && in_memory("/second"));
    assert_eq!(site.content("/second"), [b'x'; 8_000]);
    site.cache.set_memory_hot_file_bytes_max(0);
    site.wait(1);
    assert!(!in_memory("/first"));
}

/// Goal: a site larger than its memory does not read each file anew for each request. Method: twenty files in turn, room for
/// sixteen; what finds no room stays open, and takes the place of another file once it is hot.
#[test]
fn a_full_memory_takes_hot_files_only() {
    let site = Site::with(CacheSettings { memory_bytes_max: 1_000_000, ..CacheSettings::default() });
    let paths: Vec<String> = (0..20).map(|number| format!("/{number}.txt")).collect();
    paths.iter().for_each(|path| site.write(&path[1..], &[b'x'; 60_000]));
    site.write("tiny.txt", &[b'x'; 16 << 10]);
    let in_turn = |rounds| {
        for path in (0..rounds).flat_map(|_| &paths) {
            assert_eq!(site.content(path), [b'x'; 60_000]);
        }
        (site.stats().in_memory, site.stats().files.misses)
    };
    assert_eq!(in_turn(1), (16, 20));
    site.wait(1);
    assert_eq!(in_turn(7), (16, 20), "those without room have been used less than eight times");
    site.wait(1);
    assert_eq!(in_turn(1), (16, 22), "an eighth of the memory per second has room for two");
    assert!(site.file("/tiny.txt").in_memory());
}

/// Goal: files take the part of their memory that they are given, whichever of its two bounds changes last.
#[test]
fn files_give_up_a_part_of_their_memory() {
    let site = Site::new();
    let paths: Vec<String> = (0..16).map(|number| format!("/{number}.txt")).collect();
    paths.iter().for_each(|path| site.write(&path[1..], &[b'x'; 60_000]));
    let bytes = || {
        paths.iter().for_each(|path| assert_eq!(site.content(path), [b'x'; 60_000]));
        site.stats().memory_bytes
    };
    site.cache.set_memory_bytes_max(1 << 20);
    assert!(bytes() > 16 * 60_000);
    assert!(!site.cache.set_memory_share(1_000), "all stay");
    assert!(site.cache.set_memory_share(0));
    assert!((60_000..1 << 17).contains(&site.stats().memory_bytes), "an eighth, at once");
    assert!((60_000..1 << 17).contains(&bytes()), "and from then on");
    site.cache.set_memory_bytes_max(4 << 20);
    site.wait(1);
    assert!((4 * 60_000..1 << 19).contains(&bytes()), "an eighth of more");
    assert!(!site.cache.set_memory_share(500));
    site.wait(1);
    assert!(bytes() > 16 * 60_000);
}

#[test]
fn an_evicted_file_is_loaded_again_without_resolving_its_name() {
    let site = Site::new();
    site.write("a.txt", b"a");
    let before = site.file("/a.txt");
    site.cache.set_memory_bytes_max(0);
    assert_eq!((site.stats().in_memory, site.stats().files.evictions), (0, 1));
    site.cache.set_memory_bytes_max(1 << 20);
    let after = site.file("/a.txt");
    assert!(
        !Arc::ptr_eq(&before, &after),
        "an evicted file is not used again, although a response still holds it"
    );
    assert_eq!(site.stats().names.misses, 1);
    assert!(Arc::ptr_eq(&after, &site.file("/a.txt")));
}

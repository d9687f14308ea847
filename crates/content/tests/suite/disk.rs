//! Pages that are not in memory: the loop is not to wait for them, the helper is.

use std::fs::{self, File};

use baton_buf::Piece;
use baton_content::{Blocking, CacheSettings, Found, NeedsDisk, Query, View};
use baton_http::AcceptedCodings;
use baton_sys::residency::is_in_core;
use rustix::fs::{Advice, fadvise};

use crate::site::{Site, bytes_of};

/// Writes a file and evicts its pages from the page cache; `false` on file systems without a disk (tmpfs), where
/// there is nothing to test.
fn write_cold(site: &Site, name: &str, content: &[u8]) -> bool {
    site.replace(name, content);
    let file = File::open(site.path(name)).unwrap();
    // Pages under writeback or in use stay: hence several attempts.
    for _ in 0..100 {
        file.sync_all().unwrap();
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        if !is_in_core(&file, 0, content.len() as u64).unwrap() {
            return true;
        }
    }
    false
}

/// A site on which a non-blocking request for `/a.bin` needed the disk; `None` where there is nothing to test. The
/// request itself makes the kernel fetch the file, and a fast disk may finish in time: then tries the next site.
fn asked_in_vain(prepare: impl Fn() -> Site, content: &[u8]) -> Option<Site> {
    for _ in 0..100 {
        let site = prepare();
        if !write_cold(&site, "a.bin", content) {
            return None;
        }
        if matches!(site.ask("/a.bin", Blocking::Never), Err(NeedsDisk)) {
            return Some(site);
        }
    }
    panic!("no request needed the disk");
}

#[test]
fn a_small_file_on_disk_is_read_by_who_may_wait() {
    // The name is in the kernel's caches, the contents are not.
    let prepare = || {
        let site = Site::new();
        fs::write(site.path("a.bin"), b"").unwrap();
        site
    };
    let Some(site) = asked_in_vain(prepare, &[b'a'; 50_000]) else { return };
    assert_eq!(site.stats().needs_disk, 1);
    assert_eq!(site.content("/a.bin"), [b'a'; 50_000]);
    assert!(matches!(site.ask("/a.bin", Blocking::Never), Ok(Found::File(_))));
    // Now it is in the page cache: without our own, it can be read without waiting.
    site.cache.set_memory_bytes_max(0);
    site.cache.set_memory_bytes_max(1 << 20);
    assert!(matches!(site.ask("/a.bin", Blocking::Never), Ok(Found::File(_))));
    assert_eq!((site.stats().needs_disk, site.stats().files.misses), (1, 2));
}

/// The loop finds that a file has changed, but leaves the reading to a helper. The helper must find the change, too,
/// not trust the loop's revalidation.
#[test]
fn a_change_that_needs_the_disk_is_not_forgotten_on_the_way_to_the_helper() {
    let prepare = || {
        let site = Site::new();
        site.write("a.bin", b"old");
        assert_eq!(site.content("/a.bin"), b"old");
        site.wait(1);
        site
    };
    let Some(site) = asked_in_vain(prepare, &[b'n'; 50_000]) else { return };
    assert_eq!(site.content("/a.bin"), [b'n'; 50_000]);
}

/// Goal: what the cache has in memory is at hand, and nothing else, however warm the page cache is. The question reads nothing, and
/// brings nothing into the cache.
#[test]
fn what_is_in_memory_is_at_hand() {
    let site = Site::with(CacheSettings { memory_file_bytes_max: 1_000, ..CacheSettings::default() });
    let is_at_hand = |path: &str| {
        let query =
            Query { path: path.as_bytes(), accepted: AcceptedCodings::default(), view: View::default() };
        site.cache.has_at_hand(&site.tree, &query, &site.now())
    };
    site.write("small.bin", &[b's'; 100]);
    site.write("large.bin", &[b'l'; 50_000]);
    for _ in 0..2 {
        assert!(["/small.bin", "/large.bin", "/none"].iter().all(|path| !is_at_hand(path)));
    }
    for path in ["/small.bin", "/large.bin", "/none"] {
        site.ask(path, Blocking::Allowed).expect("an answer");
    }
    assert!(is_at_hand("/small.bin") && is_at_hand("/none"));
    let Ok(Found::File(large)) = site.ask("/large.bin", Blocking::Allowed) else { panic!("a file") };
    assert!(!is_at_hand("/large.bin"), "it is open, and its pages may be anywhere");
    let Piece::File(slice) = large.body(0, large.len()) else { panic!("not in memory") };
    slice.file().note_resident(0..large.len(), site.now().unix_seconds);
    assert!(is_at_hand("/large.bin"));
    site.wait(1);
    assert!(!is_at_hand("/large.bin"), "a second later they may be gone");
}

/// Large files are only opened, which needs no page of theirs; whether those are resident is a question of sending.
#[test]
fn a_large_file_is_found_without_its_pages() {
    let site = Site::with(CacheSettings { memory_file_bytes_max: 1_000, ..CacheSettings::default() });
    site.write("a.bin", b"");
    if !write_cold(&site, "a.bin", &[b'a'; 50_000]) {
        return;
    }
    let Ok(Found::File(stored)) = site.ask("/a.bin", Blocking::Never) else {
        panic!("only its pages are cold")
    };
    assert_eq!(bytes_of(&stored.body(0, stored.len())), [b'a'; 50_000]);
}

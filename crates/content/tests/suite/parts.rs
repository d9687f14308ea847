//! Each part of the cache alone: what it saves, and switching it off.

use std::sync::Arc;

use baton_content::{
    Blocking, BodySource, CacheSettings, CacheStats, Found, HeadForm, Policy, Tree, TreeConfig,
};
use baton_http::Coding;

use crate::site::{Site, query, reply};

const REQUESTS: u64 = 5;

fn requests(names: bool, files: bool, heads: bool) -> CacheStats {
    let site = Site::with(CacheSettings { names, files, heads, ..CacheSettings::default() });
    site.write("dir/index.html", b"home");
    for _ in 0..REQUESTS {
        let stored = site.file("/dir/");
        // Twice: the first head of a form is built in any case.
        stored.whole(HeadForm::KeepAlive, &site.now(), BodySource::Memory);
        stored.whole(HeadForm::Close, &site.now(), BodySource::Memory);
    }
    site.stats()
}

/// The eight combinations of Flash's breakdown (section 6.4): a part that is off never hits, and one that is on hits
/// from the second request on, independently of the others. One exception: heads are kept with their files.
#[test]
fn the_parts_are_switched_off_independently() {
    for names in [false, true] {
        for files in [false, true] {
            for heads in [false, true] {
                let stats = requests(names, files, heads);
                let case = format!("names {names}, files {files}, heads {heads}: {stats:?}");
                assert_eq!(stats.names.hits, if names { REQUESTS - 1 } else { 0 }, "{case}");
                assert_eq!(stats.names.entries, u64::from(names), "{case}");
                assert_eq!(stats.files.hits, if files { REQUESTS - 1 } else { 0 }, "{case}");
                assert_eq!(stats.files.misses, if files { 1 } else { REQUESTS }, "{case}");
                assert_eq!(stats.files.entries, u64::from(files), "{case}");
                let kept = if !heads {
                    0
                } else if files {
                    // The head of a kept connection is made when the file is read.
                    2 * REQUESTS - 1
                } else {
                    REQUESTS
                };
                assert_eq!(stats.heads.hits, kept, "{case}");
            }
        }
    }
}

/// Without its files the cache sees each change at once, although the name is not revalidated.
#[test]
fn without_files_each_request_reads_the_file() {
    let site = Site::with(CacheSettings { files: false, ..CacheSettings::default() });
    site.write("a.txt", b"old");
    assert_eq!(site.content("/a.txt"), b"old");
    site.replace("a.txt", b"new!");
    assert_eq!(site.content("/a.txt"), b"new!");
    std::fs::remove_file(site.path("a.txt")).unwrap();
    assert!(matches!(site.find("/a.txt"), Found::Missing));
}

#[test]
fn without_names_each_request_resolves_the_path() {
    let site = Site::with(CacheSettings { names: false, ..CacheSettings::default() });
    site.write("a.txt", b"old");
    let first = site.file("/a.txt");
    assert!(Arc::ptr_eq(&first, &site.file("/a.txt")));
    site.replace("a.txt", b"new!");
    assert_eq!(site.content("/a.txt"), b"new!");
}

/// Names for one file share what can be shared.
#[test]
fn one_file_is_kept_once() {
    let site = Site::new();
    site.write("index.html", b"home");
    std::fs::hard_link(site.path("index.html"), site.path("home.html")).unwrap();
    std::fs::hard_link(site.path("index.html"), site.path("home.txt")).unwrap();
    let home = site.file("/");
    for path in ["/index.html", "/%69ndex.html", "/home.html"] {
        assert!(Arc::ptr_eq(&home, &site.file(path)), "{path}");
    }
    // Another media type is another reply.
    assert!(!Arc::ptr_eq(&home, &site.file("/home.txt")));
    assert_eq!((site.stats().names.entries, site.stats().files.misses), (5, 2));
}

/// Where clients differ only in what does not matter, they share names too.
#[test]
fn codings_make_different_names_only_where_they_matter() {
    for (precompressed, names) in [(vec![], 1), (vec![Coding::Gzip], 2)] {
        let site = Site::configured(CacheSettings::default(), |config| config.precompressed = precompressed);
        site.write("a.txt", b"a");
        site.find_coded("/a.txt", "gzip");
        site.find_coded("/a.txt", "br");
        assert_eq!((site.stats().names.entries, site.stats().files.misses), (names, 1));
    }
}

/// Trees on one folder share its files in the cache, unless their replies differ.
#[test]
fn trees_share_files_but_not_what_they_say() {
    let site = Site::new();
    site.write("a.txt", b"a");
    let again = |server_header| {
        let config = TreeConfig { root: site.path(""), server_header, ..TreeConfig::default() };
        let tree = Arc::new(Tree::open(config).unwrap());
        match site.cache.find(&tree, &query("/a.txt"), &site.now(), Blocking::Allowed) {
            Ok(Found::File(stored)) => stored,
            other => panic!("{other:?}"),
        }
    };
    assert!(Arc::ptr_eq(&site.file("/a.txt"), &again(true)));
    let (head, _) = reply(&again(false).whole(HeadForm::KeepAlive, &site.now(), BodySource::Memory));
    assert!(!head.contains("Server:"), "{head}");
}

/// A hit on a name is a use of its file: a file in constant use stays.
#[test]
fn files_in_use_are_not_evicted() {
    for memory_file_bytes_max in [0, 2_000] {
        let site = Site::with(CacheSettings {
            files_max: 3,
            memory_bytes_max: 3 * 2_100,
            memory_file_bytes_max,
            ..CacheSettings::default()
        });
        for number in 0..20 {
            site.write(&format!("{number}"), &[0; 1_000]);
        }
        for number in 1..20 {
            site.file("/0");
            site.file(&format!("/{number}"));
        }
        let stats = site.stats();
        assert_eq!((stats.files.misses, stats.files.evictions), (20, 17), "{stats:?}");
    }
}

#[test]
fn each_part_keeps_its_bound() {
    let settings = CacheSettings {
        names_max: 5,
        files_max: 3,
        memory_bytes_max: 10_000,
        memory_file_bytes_max: 2_000,
        ..CacheSettings::default()
    };
    for policy in [Policy::Lru, Policy::Gds] {
        let site = Site::with(CacheSettings { policy, ..settings.clone() });
        for number in 0..20 {
            site.write(&format!("small{number}"), &[0; 1_500]);
            site.write(&format!("large{number}"), &[0; 3_000]);
        }
        for number in 0..20 {
            for name in ["small", "large"] {
                site.file(&format!("/{name}{number}"));
                let stats = site.stats();
                assert!(stats.names.entries <= 5, "{stats:?}");
                assert!(stats.memory_bytes <= 10_000, "{stats:?}");
                assert!(stats.files.entries - stats.in_memory <= 3, "{stats:?}");
            }
        }
        let stats = site.stats();
        assert_eq!(stats.names.evictions, 35, "{stats:?}");
        assert_eq!(stats.files.entries - stats.in_memory, 3, "{stats:?}");
        assert_eq!(stats.in_memory, 10_000 / (1_500 + 1_024), "{stats:?}");
    }
}

/// Made-up names do not evict those in use.
#[test]
fn made_up_names_evict_each_other() {
    let site = Site::with(CacheSettings { names_max: 10, ..CacheSettings::default() });
    site.write("hot.txt", b"hot");
    for number in 0..500 {
        site.find(&format!("/made-up-{number}"));
        site.file("/hot.txt");
    }
    let stats = site.stats();
    assert_eq!((stats.names.entries, stats.names.hits), (10, 499));
}

#[test]
fn very_long_names_are_not_remembered() {
    let site = Site::new();
    site.write("a.txt", b"a");
    let spelling = format!("/{}a.txt", "./".repeat(2_000));
    site.file(&spelling);
    site.file(&spelling);
    let stats = site.stats();
    assert_eq!((stats.names.entries, stats.names.hits, stats.files.hits), (0, 0, 1));
}

/// A file that does not fit into the memory is sent from its descriptor rather than not kept at all.
#[test]
fn a_file_larger_than_the_memory_stays_on_disk() {
    let site = Site::with(CacheSettings { memory_bytes_max: 4_000, ..CacheSettings::default() });
    site.write("a.bin", &[0; 3_500]);
    assert!(!site.file("/a.bin").in_memory());
    site.file("/a.bin");
    assert_eq!(site.stats().files.hits, 1);
}

//! One cache, several threads, and a folder that changes under them.

use std::os::unix::fs::FileExt;
use std::sync::Arc;

use baton_content::{Blocking, BodySource, Cache, CacheSettings, Found, HeadForm, Policy, Tree};
use baton_http::Stamp;

use crate::site::{Site, Stop, query, reply};

const FILES: usize = 8;

/// A version of a file: its number and version repeated, so that a mixture would show.
fn content(file: usize, version: usize) -> Vec<u8> {
    format!("file {file} version {version}\n").repeat(1 + (file * 37 + version * 11) % 200).into_bytes()
}

/// Asks for a file and checks that the answer is one whole version of it, with the head that belongs to it; which one.
fn read_one(site: &Shared<'_>, file: usize, now: &Stamp) -> usize {
    let path = format!("/{file}");
    let found = site.cache.find(site.tree, &query(&path), now, Blocking::Allowed);
    let Ok(Found::File(stored)) = found else { panic!("{path}: {found:?}") };
    let (head, body) = reply(&stored.whole(HeadForm::KeepAlive, now, BodySource::Memory));
    let text = String::from_utf8(body).unwrap();
    let version = text.lines().next().and_then(|line| line.rsplit(' ').next()).unwrap().parse().unwrap();
    assert_eq!(text.as_bytes(), content(file, version), "{path}: a mixture");
    assert!(head.contains(&format!("Content-Length: {}\r\n", text.len())), "{head}");
    version
}

/// What threads can share of a [`Site`]: all but the clock.
#[derive(Clone, Copy)]
struct Shared<'a> {
    cache: &'a Cache,
    tree: &'a Arc<Tree>,
}

/// Whether the cache has room for everything or evicts all the time.
#[test]
fn threads_never_see_a_mixture() {
    for (names_max, files_max, memory_bytes_max, policy) in
        [(6, 2, 8_000, Policy::Lru), (6, 2, 8_000, Policy::Gds), (100, 100, 1 << 20, Policy::Lru)]
    {
        let site = Site::with(CacheSettings {
            names_max,
            files_max,
            memory_bytes_max,
            memory_file_bytes_max: 2_000,
            revalidate_ms: 0,
            policy,
            ..CacheSettings::default()
        });
        let write = |version| {
            for file in 0..FILES {
                site.replace(&format!("{file}"), &content(file, version));
            }
        };
        write(0);
        let shared = Shared { cache: &site.cache, tree: &site.tree };
        let start = site.now().unix_seconds;
        let mut version = 0;
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..3)
                .map(|reader| {
                    scope.spawn(move || {
                        for request in 0..600 {
                            let now = Stamp::at(start + request / 50);
                            read_one(&shared, (request as usize * 5 + reader) % FILES, &now);
                        }
                    })
                })
                .collect();
            while readers.iter().any(|reader| !reader.is_finished()) {
                version += 1;
                write(version);
            }
        });
        for file in 0..FILES {
            assert_eq!(read_one(&shared, file, &site.now()), version, "an old version has survived");
        }
        let stats = site.stats();
        assert!(stats.names.entries <= names_max as u64, "{stats:?}");
        assert!(stats.memory_bytes <= memory_bytes_max, "{stats:?}");
        assert!(stats.files.entries - stats.in_memory <= files_max as u64, "{stats:?}");
    }
}

/// A file that is truncated and rewritten while it is read: a result has the promised length and only bytes that were
/// in the file, or loading fails; nothing hangs or crashes.
#[test]
fn a_file_that_shrinks_while_it_is_read_is_not_padded() {
    // Large enough that it often happens, and for more than one folio of the page cache.
    const LEN: usize = 3_000_000;
    const FOLIO_BYTES_MAX: usize = 2 << 20;
    let site = Site::with(CacheSettings {
        revalidate_ms: 0,
        memory_file_bytes_max: LEN as u64,
        ..CacheSettings::default()
    });
    site.write("log", &vec![b'x'; LEN]);
    let path = site.path("log");
    let stop = Stop::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            let rest = vec![b'x'; LEN - 10];
            while !stop.is_due() {
                file.set_len(10).unwrap();
                file.write_all_at(&rest, 10).unwrap();
            }
        });
        let _stop_at_last = stop.when_done();
        for _ in 0..500 {
            match site.find("/log") {
                Found::File(stored) => {
                    let (head, body) =
                        reply(&stored.whole(HeadForm::KeepAlive, &site.now(), BodySource::Memory));
                    assert_eq!(body.len() as u64, stored.len());
                    // The kernel clears the rest of the folio at which it truncates a file; a read at that instant
                    // sees zeros.
                    let (first_folio, others) = body.split_at(body.len().min(FOLIO_BYTES_MAX));
                    assert!(first_folio.iter().all(|byte| b"x\0".contains(byte)), "bytes from elsewhere");
                    assert!(others.iter().all(|&byte| byte == b'x'), "bytes that were never in the file");
                    assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
                }
                Found::Failed(rustix::io::Errno::STALE) => {}
                other => panic!("{other:?}"),
            }
        }
    });
}

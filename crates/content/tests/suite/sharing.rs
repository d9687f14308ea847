//! One cache, several threads, and a folder that changes under them.

use std::os::unix::fs::FileExt;

use baton_content::{Blocking, CacheSettings, Found, Persistence, Policy};

use crate::site::{Site, Stop, query, reply};
use baton_http::Stamp;

/// Files say their number and length over and over; whatever a thread gets must be one whole state of one file, with
/// the head that belongs to it, whether the cache is too small for all of them or not.
#[test]
fn threads_never_see_a_mixture() {
    for (policy, memory_file_bytes_max) in [(Policy::Lru, 2_000), (Policy::Gds, 1 << 20)] {
        let site = Site::with(CacheSettings {
            names_max: 6,
            files_max: 2,
            memory_bytes_max: 8_000,
            memory_file_bytes_max,
            revalidate_ms: 0,
            policy,
            ..CacheSettings::default()
        });
        let contents = |file: usize, version: usize| {
            let line = format!("file {file} version {version}\n");
            line.repeat(1 + (file * 37 + version * 11) % 200).into_bytes()
        };
        for file in 0..8 {
            site.replace(&format!("{file}"), &contents(file, 0));
        }
        let stop = Stop::default();
        let (cache, tree, start) = (&site.cache, &site.tree, site.now().unix_seconds);
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..3_usize)
                .map(|reader| {
                    let stop = &stop;
                    scope.spawn(move || {
                        let mut served = 0;
                        while !stop.is_due() {
                            let file = (served * 5 + reader) % 8;
                            let now = Stamp::at(start + served as u64 / 50);
                            let path = format!("/{file}");
                            let found = cache.find(tree, &query(&path), &now, Blocking::Allowed);
                            let Ok(Found::File(stored)) = found else { panic!("{path}: {found:?}") };
                            let (head, body) = reply(&stored.whole(Persistence::KeepAlive, &now));
                            let text = String::from_utf8(body).unwrap();
                            let first = text.lines().next().unwrap();
                            assert!(first.starts_with(&format!("file {file} version ")), "{first}");
                            assert!(text.lines().all(|line| line == first), "{path}: a mixture");
                            let version: usize = first.rsplit(' ').next().unwrap().parse().unwrap();
                            assert_eq!(text.len(), contents(file, version).len(), "{path}: not all of it");
                            assert!(head.contains(&format!("Content-Length: {}\r\n", text.len())), "{head}");
                            served += 1;
                        }
                        served
                    })
                })
                .collect();
            let stop_at_last = stop.when_done();
            for version in 1..60 {
                for file in 0..8 {
                    site.replace(&format!("{file}"), &contents(file, version));
                }
            }
            drop(stop_at_last);
            for reader in readers {
                assert!(reader.join().unwrap() > 0);
            }
        });
        let stats = site.stats();
        assert!(stats.names.entries <= 6 && stats.memory_bytes <= 8_000, "{stats:?}");
        assert!(stats.files.entries - stats.in_memory <= 2, "{stats:?}");
        assert!(stats.changes > 0, "{stats:?}");
    }
}

/// A file that is cut and written again while it is read: what is found has the promised length and only bytes that
/// were in the file, or the file is given up; nothing hangs or crashes.
#[test]
fn a_file_that_shrinks_while_it_is_read_is_not_padded() {
    // Large enough that it often happens.
    const LEN: usize = 2_000_000;
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
                    let (head, body) = reply(&stored.whole(Persistence::KeepAlive, &site.now()));
                    assert_eq!(body.len() as u64, stored.len());
                    assert!(body.iter().all(|&byte| byte == b'x'), "bytes that were never in the file");
                    assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
                }
                Found::Failed(rustix::io::Errno::STALE) => {}
                other => panic!("{other:?}"),
            }
        }
    });
}

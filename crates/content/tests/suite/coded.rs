//! Files that are coded on the fly: made once, kept within the bound, never older than the file.

use std::sync::Arc;

use baton_compress::Rules;
use baton_content::{CacheRule, CacheSettings, Coded, Stored, ToCode};
use baton_http::Coding;

use crate::site::Site;

const CODINGS: [Coding; 3] = [Coding::Gzip, Coding::Brotli, Coding::Zstd];

fn site(settings: CacheSettings) -> Site {
    Site::configured(settings, |config| {
        config.compress = Some(Arc::new(Rules::default()));
        config.cache_control = vec![CacheRule {
            pattern: baton_pattern::Pattern::glob("*.log").unwrap(),
            types: Vec::new(),
            value: "max-age=1, no-transform".into(),
        }];
    })
}

fn text(seed: u8, len: usize) -> Vec<u8> {
    (0..len).map(|at| b"etaoin shrdlu"[(at * at / 7 + at * usize::from(seed)) % 13]).collect()
}

fn to_code(site: &Site, stored: &Arc<Stored>, coding: Coding) -> ToCode {
    match site.cache.coded(stored, coding, &site.now()) {
        Coded::ToDo(to_code) => to_code,
        other => panic!("{other:?}"),
    }
}

fn fields(stored: &Stored) -> &str {
    std::str::from_utf8(stored.fields()).unwrap()
}

#[test]
fn a_file_is_coded_once_for_each_coding() {
    for memory_file_bytes_max in [0, 1 << 20] {
        let site = site(CacheSettings { memory_file_bytes_max, ..CacheSettings::default() });
        site.write("a.txt", &text(1, 50_000));
        let stored = site.file("/a.txt");
        assert!(stored.compress().is_some() && fields(&stored).contains("\r\nVary: Accept-Encoding\r\n"));
        for coding in CODINGS {
            let made = to_code(&site, &stored, coding).run();
            assert!(made.is_coded() && made.len() < stored.len() && made.in_memory());
            assert!(made.etag().as_tag().is_weak(), "other bytes may mean the same");
            let encoding = format!("Content-Encoding: {}\r\n", coding.token());
            assert!(fields(&made).contains(&encoding) && fields(&made).contains("Vary: Accept-Encoding\r\n"));
            assert!(!fields(&made).contains("Accept-Ranges"), "{}", fields(&made));
            match site.cache.coded(&site.file("/a.txt"), coding, &site.now()) {
                Coded::Made(again) => assert!(Arc::ptr_eq(&made, &again)),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn one_client_codes_and_the_others_do_not_wait() {
    let site = site(CacheSettings::default());
    site.write("a.txt", &text(1, 50_000));
    let stored = site.file("/a.txt");
    let job = to_code(&site, &stored, Coding::Gzip);
    assert!(matches!(site.cache.coded(&stored, Coding::Gzip, &site.now()), Coded::AsItIs));
    drop(job);
    to_code(&site, &stored, Coding::Gzip).run();
    assert!(matches!(site.cache.coded(&stored, Coding::Gzip, &site.now()), Coded::Made(_)));
}

#[test]
fn few_files_are_coded_at_a_time() {
    let site = site(CacheSettings::default());
    let mut jobs = Vec::new();
    for number in 0..20 {
        let name = format!("{number}.txt");
        site.write(&name, &text(number, 5_000));
        let stored = site.file(&format!("/{name}"));
        match site.cache.coded(&stored, Coding::Gzip, &site.now()) {
            Coded::ToDo(job) => jobs.push(job),
            Coded::AsItIs => break,
            made @ Coded::Made(_) => panic!("{made:?}"),
        }
    }
    assert!(!jobs.is_empty() && jobs.len() < 20, "{}", jobs.len());
    drop(jobs);
    to_code(&site, &site.file("/0.txt"), Coding::Gzip);
}

/// Goal: no bytes of an old state, however the file changes. Method: change it between its look-up and the job, and behind it.
#[test]
fn what_changes_is_coded_anew() {
    let site = site(CacheSettings { memory_file_bytes_max: 0, ..CacheSettings::default() });
    site.write("a.txt", &text(1, 50_000));
    let stored = site.file("/a.txt");
    let job = to_code(&site, &stored, Coding::Gzip);
    site.write("a.txt", &text(2, 40_000));
    assert!(!job.run().is_coded(), "it is no longer what was looked up");
    site.wait(2);
    let changed = site.file("/a.txt");
    let coded = to_code(&site, &changed, Coding::Gzip).run();
    assert!(coded.is_coded());
    site.replace("a.txt", &text(3, 30_000));
    site.wait(2);
    let replaced = site.file("/a.txt");
    let again = to_code(&site, &replaced, Coding::Gzip).run();
    assert_ne!(again.etag(), coded.etag());
}

#[test]
fn what_does_not_become_shorter_is_not_coded_twice() {
    let site = site(CacheSettings::default());
    let mut state = 1_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    })
    .take(20_000)
    .collect();
    site.write("noise.txt", &noise);
    let stored = site.file("/noise.txt");
    let same = to_code(&site, &stored, Coding::Zstd).run();
    assert!(Arc::ptr_eq(&same, &stored));
    assert!(matches!(site.cache.coded(&stored, Coding::Zstd, &site.now()), Coded::AsItIs));
}

#[test]
fn rules_and_no_transform_decide() {
    let site = site(CacheSettings::default());
    for name in ["a.png", "a.log", "a.css"] {
        site.write(name, &text(1, 5_000));
    }
    assert!(site.file("/a.png").compress().is_none(), "it is compressed in itself");
    assert!(site.file("/a.log").compress().is_none(), "no-transform");
    assert!(!fields(&site.file("/a.log")).contains("Vary"));
    assert!(site.file("/a.css").compress().is_some());
    let off = Site::new();
    off.write("a.css", &text(1, 5_000));
    assert!(off.file("/a.css").compress().is_none());
}

/// Goal: coded files take no more memory than files may. Method: many more of them than fit, in all codings.
#[test]
fn many_coded_files_stay_within_the_memory_of_files() {
    let memory_bytes_max = 200_000;
    let site = site(CacheSettings { memory_bytes_max, memory_file_bytes_max: 0, ..CacheSettings::default() });
    for number in 0..60 {
        let name = format!("{number}.txt");
        site.write(&name, &text(number, 60_000));
        let stored = site.file(&format!("/{name}"));
        for coding in CODINGS {
            assert!(to_code(&site, &stored, coding).run().is_coded());
            assert!(site.stats().memory_bytes <= memory_bytes_max);
        }
    }
    assert!(site.stats().in_memory > 0);
    assert!(site.stats().files.evictions > 0, "not all of them fit");
}

#[test]
fn without_a_cache_of_files_nothing_is_coded() {
    let site = site(CacheSettings { files: false, ..CacheSettings::default() });
    site.write("a.txt", &text(1, 50_000));
    let stored = site.file("/a.txt");
    assert!(matches!(site.cache.coded(&stored, Coding::Gzip, &site.now()), Coded::AsItIs));
}

//! Running out of descriptors, in a process of its own, since the limit is per process.

use std::fs::{self, File};
use std::sync::Arc;

use baton_content::{Blocking, Cache, CacheSettings, Found, Query, Tree, TreeConfig, View};
use baton_http::{AcceptedCodings, Stamp};
use baton_sys::descriptors;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit, setrlimit};

/// Without descriptors a file that is not at hand cannot be found; as soon as there are some again, it can. If the
/// cache itself holds descriptors, it gives them up for the new file: those of files in memory, too, which took all
/// descriptors for good once.
#[test]
fn descriptors_run_out_and_come_back() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..4 {
        fs::write(folder.path().join(format!("{number}")), [b'0' + number; 1_000]).unwrap();
        fs::write(folder.path().join(format!("both{number}")), [b'0' + number; 6_000]).unwrap();
    }
    let tree =
        Arc::new(Tree::open(TreeConfig { root: folder.path().to_owned(), ..TreeConfig::default() }).unwrap());
    let cache = |memory_file_bytes_max| {
        let cache = Arc::new(Cache::new(CacheSettings { memory_file_bytes_max, ..CacheSettings::default() }));
        descriptors::register(&cache);
        cache
    };
    let now = Stamp::at(2_000_000_000);
    let find_in = |cache: &Cache, path: &str, blocking| {
        let query =
            Query { path: path.as_bytes(), accepted: AcceptedCodings::IDENTITY, view: View::default() };
        cache.find(&tree, &query, &now, blocking)
    };
    let none_in_memory = cache(0);
    let find = |path, blocking| find_in(&none_in_memory, path, blocking);

    let mut limit = getrlimit(Resource::Nofile);
    limit.current = Some(64);
    setrlimit(Resource::Nofile, limit).unwrap();
    let exhaust = || -> Vec<File> { std::iter::from_fn(|| File::open(folder.path()).ok()).collect() };

    let hoard = exhaust();
    for blocking in [Blocking::Allowed, Blocking::Never] {
        let found = find("/0", blocking);
        assert!(matches!(found, Ok(Found::Failed(Errno::MFILE))), "{found:?}");
    }
    drop(hoard);
    assert!(matches!(find("/0", Blocking::Allowed), Ok(Found::File(_))));
    assert!(matches!(find("/1", Blocking::Allowed), Ok(Found::File(_))));
    assert_eq!(none_in_memory.stats().files.entries, 2);

    let hoard = exhaust();
    assert!(matches!(find("/0", Blocking::Allowed), Ok(Found::File(_))), "an open file needs no descriptor");
    assert!(
        matches!(find("/2", Blocking::Allowed), Ok(Found::File(_))),
        "the cache gives up some of its own"
    );
    let stats = none_in_memory.stats();
    assert_eq!((stats.files.entries, stats.files.evictions), (1, 2));
    drop(hoard);
    assert!(matches!(find("/3", Blocking::Allowed), Ok(Found::File(_))));
    drop(none_in_memory);

    let in_memory = cache(10_000);
    let find = |path| find_in(&in_memory, path, Blocking::Allowed);
    let Ok(Found::File(in_use)) = find("/both0") else { panic!("there are descriptors") };
    assert!(in_use.has_both_ways() && matches!(find("/both1"), Ok(Found::File(_))));
    let hoard = exhaust();
    assert!(matches!(find("/both2"), Ok(Found::File(_))), "another cached file is closed");
    assert_eq!((in_memory.stats().in_memory, in_memory.stats().files.evictions), (2, 1));
    let found = find("/both3");
    assert!(matches!(found, Ok(Found::File(_))), "{found:?}");
    drop(hoard);
    assert!(
        matches!(find("/both0"), Ok(Found::File(again)) if Arc::ptr_eq(&again, &in_use)),
        "it was in use"
    );
}

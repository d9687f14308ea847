//! What happens when the process runs out of descriptors. In a process of its own: the limit is the process's.

use std::fs::{self, File};
use std::sync::Arc;

use baton_content::{Blocking, Cache, CacheSettings, Found, Query, Tree, TreeConfig};
use baton_http::{AcceptedCodings, Stamp};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit, setrlimit};

/// Without descriptors a file that is not at hand cannot be found; as soon as there are some again, it can. If the
/// cache itself holds descriptors, it gives them up for the new file.
#[test]
fn descriptors_run_out_and_come_back() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..4 {
        fs::write(folder.path().join(format!("{number}")), [b'0' + number; 1_000]).unwrap();
    }
    let tree =
        Arc::new(Tree::open(TreeConfig { root: folder.path().to_owned(), ..TreeConfig::default() }).unwrap());
    let cache = Cache::new(CacheSettings { memory_file_bytes_max: 0, ..CacheSettings::default() });
    let now = Stamp::at(2_000_000_000);
    let find = |path: &str, blocking| {
        let query = Query { path: path.as_bytes(), accepted: AcceptedCodings::IDENTITY, accept_json: false };
        cache.find(&tree, &query, &now, blocking)
    };

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
    assert_eq!(cache.stats().files.entries, 2);

    let hoard = exhaust();
    assert!(matches!(find("/0", Blocking::Allowed), Ok(Found::File(_))), "what is open needs no descriptor");
    assert!(
        matches!(find("/2", Blocking::Allowed), Ok(Found::File(_))),
        "the cache gives up some of its own"
    );
    assert_eq!((cache.stats().files.entries, cache.stats().files.evictions), (1, 2));
    drop(hoard);
    assert!(matches!(find("/3", Blocking::Allowed), Ok(Found::File(_))));
}

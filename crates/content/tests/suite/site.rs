//! A folder to serve, and a clock that the test moves.

use std::cell::Cell;
use std::fs;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use baton_buf::Piece;
use baton_content::{
    Blocking, Cache, CacheSettings, CacheStats, Found, NeedsDisk, Query, Stored, Tree, TreeConfig, View,
    Whole,
};
use baton_http::{AcceptedCodings, Stamp};
use tempfile::TempDir;

/// A temporary folder with a tree and a cache on it.
pub(crate) struct Site {
    pub(crate) folder: TempDir,
    pub(crate) tree: Arc<Tree>,
    pub(crate) cache: Arc<Cache>,
    seconds: Cell<u64>,
}

impl Site {
    pub(crate) fn new() -> Self {
        Self::with(CacheSettings::default())
    }

    pub(crate) fn with(settings: CacheSettings) -> Self {
        Self::configured(settings, |_| {})
    }

    /// `adjust` may change the configuration of the tree; its root exists already.
    pub(crate) fn configured(settings: CacheSettings, adjust: impl FnOnce(&mut TreeConfig)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = TreeConfig { root: folder.path().join("root"), ..TreeConfig::default() };
        fs::create_dir(&config.root).unwrap();
        adjust(&mut config);
        let tree = Arc::new(Tree::open(config).unwrap());
        // Long after the files were written: these are settled.
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 1000;
        Self { folder, tree, cache: Arc::new(Cache::new(settings)), seconds: Cell::new(seconds) }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("root").join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Replaces a file by a new one, as editors and deployments do.
    pub(crate) fn replace(&self, name: &str, content: &[u8]) {
        let new = self.folder.path().join("new");
        fs::write(&new, content).unwrap();
        fs::rename(new, self.path(name)).unwrap();
    }

    pub(crate) fn now(&self) -> Stamp {
        Stamp::at(self.seconds.get())
    }

    pub(crate) fn wait(&self, seconds: u64) {
        self.seconds.set(self.seconds.get() + seconds);
    }

    pub(crate) fn set_back(&self, seconds: u64) {
        self.seconds.set(self.seconds.get() - seconds);
    }

    /// Continues in real time: files written now are new.
    pub(crate) fn set_to_wall_clock(&self) {
        self.seconds.set(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs());
    }

    pub(crate) fn ask(&self, path: &str, blocking: Blocking) -> Result<Found, NeedsDisk> {
        self.cache.find(&self.tree, &query(path), &self.now(), blocking)
    }

    pub(crate) fn find(&self, path: &str) -> Found {
        self.ask(path, Blocking::Allowed).expect("a call that may wait does")
    }

    /// As a client that accepts some codings.
    pub(crate) fn find_coded(&self, path: &str, accept_encoding: &str) -> Arc<Stored> {
        let accepted = AcceptedCodings::parse(Some(accept_encoding.as_bytes()));
        let query = Query { accepted, ..query(path) };
        match self.cache.find(&self.tree, &query, &self.now(), Blocking::Allowed) {
            Ok(Found::File(stored)) => stored,
            other => panic!("{path}: {other:?}"),
        }
    }

    pub(crate) fn file(&self, path: &str) -> Arc<Stored> {
        match self.find(path) {
            Found::File(stored) => stored,
            other => panic!("{path}: {other:?}"),
        }
    }

    pub(crate) fn content(&self, path: &str) -> Vec<u8> {
        let stored = self.file(path);
        bytes_of(&stored.body(0, stored.len()))
    }

    pub(crate) fn stats(&self) -> CacheStats {
        self.cache.stats()
    }
}

/// Stops threads, at the latest when a failed assertion unwinds past it: a scope would wait for them for ever.
#[derive(Default)]
pub(crate) struct Stop(AtomicBool);

impl Stop {
    pub(crate) fn is_due(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Stops when the guard is dropped.
    pub(crate) fn when_done(&self) -> impl Drop {
        struct Guard<'a>(&'a AtomicBool);
        impl Drop for Guard<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        Guard(&self.0)
    }
}

pub(crate) fn query(path: &str) -> Query<'_> {
    Query { path: path.as_bytes(), accepted: AcceptedCodings::IDENTITY, view: View::default() }
}

/// The bytes that a client would get.
pub(crate) fn bytes_of(piece: &Piece) -> Vec<u8> {
    match piece {
        Piece::Memory(slice) => slice.to_vec(),
        Piece::Shared(_) | Piece::Piped(_) => panic!("files are never in {piece:?}"),
        Piece::File(slice) => {
            let mut bytes = vec![0; slice.len() as usize];
            let count = rustix::io::pread(slice.file().as_fd(), &mut bytes, slice.offset()).unwrap();
            bytes.truncate(count);
            bytes
        }
    }
}

/// Head and body of a reply.
pub(crate) fn reply(whole: &Whole) -> (String, Vec<u8>) {
    let (head, joined) = whole.first.split_at(whole.head_len);
    let rest = whole.rest.as_ref().map(bytes_of).unwrap_or_default();
    (String::from_utf8(head.to_vec()).unwrap(), [joined, &rest].concat())
}

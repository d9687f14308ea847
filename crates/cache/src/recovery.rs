//! After a start: what the folder has is found again, behind the clients.
//!
//! Until then their requests go to the origin. Purges come first: no response is found before all that may concern it is
//! known.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak, mpsc};
use std::thread;
use std::time::Duration;

use baton_segment::index::Facts;
use baton_store::{NotDurable, WalkedObject};

use crate::object::Object;
use crate::record::{ResponseRecord, kind, purge_from_bytes};
use crate::{CacheCounters, SharedCache};

fn run(cache: &Weak<SharedCache>) {
    while let Some(opened) = wait_for_journal(cache) {
        match opened {
            Ok(()) => {
                if let Some(cache) = cache.upgrade() {
                    cache.recover();
                }
                return;
            }
            // Another process has the folder, or the disk does not work. The store says so, and tries again.
            Err(NotDurable) => thread::sleep(PAUSE),
        }
    }
}

/// Waits until the store has read its journal, or cannot. `None`: the cache is gone.
fn wait_for_journal(cache: &Weak<SharedCache>) -> Option<Result<(), NotDurable>> {
    let (opened, is_opened) = mpsc::channel();
    cache.upgrade()?.blocks.store().sync(move |durable| {
        // The thread waits for it.
        let _ = opened.send(durable);
    });
    is_opened.recv().ok()
}

impl SharedCache {
    /// Has a thread find what the folder has, if there is one.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn recover_behind(self: &Arc<Self>) -> io::Result<()> {
        if !self.blocks.has_disk() {
            return Ok(());
        }
        let cache = Arc::downgrade(self);
        let thread = thread::Builder::new().name("cache-recovery".into());
        thread.spawn(move || run(&cache)).map(drop)
    }

    fn recover(&self) {
        let store = self.blocks.store();
        for mark in store.objects().of_kind(kind::PURGE) {
            match purge_from_bytes(&mark.record, self.fingerprint) {
                Some(purged) => self.purges.restore(purged),
                None => store.remove(&mark.key),
            }
        }
        let walk = Mutex::new(store.objects().of_kind(kind::RESPONSE));
        let threads = thread::available_parallelism().map_or(1, |cpus| cpus.get().min(THREADS_MAX));
        thread::scope(|scope| {
            for _ in 1..threads {
                // Without it the others have more to do.
                let _ = thread::Builder::new()
                    .name("cache-recovery".into())
                    .spawn_scoped(scope, || self.recover_responses(&walk));
            }
            self.recover_responses(&walk);
        });
        self.is_recovered.store(true, Ordering::Relaxed);
    }

    /// Takes some at a time until there is none: what is done with one takes longer than finding it.
    fn recover_responses(&self, walk: &Mutex<impl Iterator<Item = WalkedObject>>) {
        // Most responses are of a few routes.
        let mut partitions = HashMap::new();
        loop {
            let mut walk = walk.lock().unwrap_or_else(PoisonError::into_inner);
            let batch: Vec<_> = walk.by_ref().take(BATCH).collect();
            drop(walk);
            if batch.is_empty() {
                return;
            }
            for found in &batch {
                self.recover_response(found, &mut partitions);
            }
        }
    }

    fn recover_response(&self, found: &WalkedObject, partitions: &mut HashMap<String, Arc<str>>) {
        let record = ResponseRecord::from_bytes(&found.record, self.fingerprint);
        let Some((record, length)) = record.and_then(|record| record.length.map(|length| (record, length)))
        else {
            return self.blocks.store().remove(&found.key);
        };
        if record.process == self.process {
            // It has come since the start.
            return;
        }
        let partition =
            partitions.entry(record.partition.clone()).or_insert_with(|| record.partition.as_str().into());
        let key = record.key.clone();
        let hash = key.hash_within(&self.secret, partition.as_bytes()).0 as u64;
        let content = u128::from(found.key);
        let facts =
            Facts { length: Some(length), validator: None, handle: hash, policy: Some(record.policy) };
        let object = Arc::new(Object::recovered(&self.blocks, content, facts, record));
        let needs_all = !object.is_combinable();
        // A client may ask for it from now on. The index comes second: what it refuses goes from both.
        if !self.directory.recover(hash, &key, partition, object) {
            return;
        }
        if self.blocks.recover(content, facts, needs_all, &found.blocks) {
            CacheCounters::add(self.counters.recovered, 1);
        } else {
            self.directory.forget(hash, content);
        }
    }
}

/// Threads that make responses of records. More would keep CPUs from clients.
const THREADS_MAX: usize = 4;

/// Records that a thread takes at a time.
const BATCH: usize = 64;

/// Between two looks whether the folder can be used by now.
const PAUSE: Duration = Duration::from_secs(1);

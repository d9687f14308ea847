//! The cache of a process, shared by its event loops.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use baton_http::RequestHead;
use baton_http::origin::ResponseHead;
use baton_report::log;
use baton_segment::index::Facts;
use baton_segment::policy::CachePolicy;
use baton_segment::rules::{
    Arrival, Bypass, CacheRequest, CacheStatus, Decision, Generations, Key, KeySecret, Label, Purge, Purged,
    Stored, decide, invalidated, labels_of,
};
use baton_shares::ClientKey;
use baton_store::{Identity, NotDurable};

use crate::answer::{Reply, add_status};
use crate::blocks::{Available, Blocks, Evicted};
use crate::directory::{Directory, Entry};
use crate::fill::Fill;
use crate::live::LiveFills;
use crate::object::{Content, Object};
use crate::purge::{PurgeOrder, PurgeOutbox};
use crate::record::{ResponseRecord, kind, purge_from_bytes, purge_key, purge_to_bytes};
use crate::visit::Visit;
use crate::{
    Ask, CacheCounters, CacheStats, CacheWord, CachedAnswer, CachedRoute, DiskStats, Look, Settings, Sources,
};

/// The cache of a process.
#[derive(Debug)]
pub struct SharedCache {
    pub(crate) name: String,
    pub(crate) secret: KeySecret,
    pub(crate) directory: Directory,
    pub(crate) blocks: Arc<Blocks>,
    pub(crate) purges: Purges,
    pub(crate) live: LiveFills,
    pub(crate) counters: CacheCounters,
    /// Where other processes hear of invalidations, if there are any.
    outbox: Option<Arc<PurgeOutbox>>,
    /// Contents so far, and a random number of this process: together they name one.
    contents: AtomicU64,
    pub(crate) process: u64,
    /// By which records of this folder are known: their hashes are made with its secret.
    pub(crate) fingerprint: u64,
    pub(crate) is_recovered: AtomicBool,
    pub(crate) fills: AtomicU64,
    pub(crate) homes: AtomicU32,
    /// Seconds since 1970.
    pub(crate) unix_s: fn() -> u64,
}

/// What was purged.
#[derive(Debug)]
pub(crate) struct Purges {
    newest: AtomicU64,
    generations: Mutex<Generations>,
}

impl SharedCache {
    /// A cache, which tells `outbox` what it invalidates. What its folder has is not found before [`recover_behind`](Self::recover_behind).
    ///
    /// # Errors
    /// The kernel has no random bytes, no thread or no memory, or a setting is out of range. A folder that cannot be used
    /// is none: it is reported in the error log, and tried again.
    pub fn open(
        settings: &Settings,
        counters: CacheCounters,
        outbox: Option<Arc<PurgeOutbox>>,
    ) -> io::Result<Arc<Self>> {
        let identity = match settings.disk.as_ref().map(|disk| Identity::of_folder(&disk.folder)) {
            Some(Ok(identity)) => identity,
            Some(Err(error)) => {
                log::warning(format_args!("{error}\nwhat the folder has is not found again"));
                Identity::random()?
            }
            None => Identity::random()?,
        };
        let mut random = [0; 16];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        let (process, seed) = random.split_at(8);
        let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        let Identity { secret, starts } = identity;
        let sources = Sources { secret, starts, process: number(process), seed: number(seed), unix_s };
        Self::open_with(settings, counters, outbox, &sources)
    }

    /// Opens a cache with chance and time of the caller's, for simulations.
    ///
    /// # Errors
    /// As [`open`](Self::open) has.
    pub fn open_with(
        settings: &Settings,
        counters: CacheCounters,
        outbox: Option<Arc<PurgeOutbox>>,
        sources: &Sources,
    ) -> io::Result<Arc<Self>> {
        let &Sources { secret, starts, process, seed, unix_s } = sources;
        let secret = KeySecret::new(secret);
        let generations = Generations::of_start(starts, PURGES_MAX);
        Ok(Arc::new(Self {
            name: settings.name.clone(),
            fingerprint: Label::uri(&secret, b"fingerprint").0,
            secret,
            directory: Directory::new(settings.objects_max),
            blocks: Arc::new(Blocks::open(settings, counters, seed)?),
            purges: Purges {
                newest: AtomicU64::new(generations.newest()),
                generations: Mutex::new(generations),
            },
            live: LiveFills::default(),
            counters,
            outbox,
            contents: AtomicU64::new(0),
            process,
            is_recovered: AtomicBool::new(false),
            fills: AtomicU64::new(0),
            homes: AtomicU32::new(0),
            unix_s,
        }))
    }

    /// Looks whether a request of this client can be answered at once: with a response that is fresh, and here as a whole.
    ///
    /// # Errors
    /// The cache has nothing to do with the request.
    pub fn look(
        &self,
        route: &CachedRoute,
        arrival: Arrival,
        head: &RequestHead<'_>,
        client: Option<ClientKey>,
        now_s: u64,
        now_ms: u64,
    ) -> Result<Look, Bypass> {
        let asked = CacheRequest::of(&route.rules, head)?;
        let ask = Ask::key_of(route, &self.secret, arrival, head)?;
        let found = self.directory.with_known((&ask.key, ask.hash), &route.partition, |entry| {
            let entry = entry?;
            entry.judge(&route.rules);
            self.drop_purged(entry);
            match decide(&asked, entry.variants.iter().map(|object| &object.stored), now_s) {
                Decision::Serve(hit) if !hit.revalidates => {
                    let object = entry.object_of(hit.stored);
                    Some(Ok((Arc::clone(object), self.reply(object, &hit, head))))
                }
                Decision::NotCached(forward) => Some(Err(CacheWord::Forward(forward))),
                _ => None,
            }
        });
        match found {
            Some(Ok(_)) if self.wants_prefetch(route, &ask.key, head, now_s) => Ok(Look::Ask(ask)),
            Some(Ok((object, Reply { head, bytes }))) => {
                let body = match bytes.is_empty() {
                    true => Some(baton_buf::Aggregate::new()),
                    false if object.content.length().is_none() => None,
                    false => {
                        match self.blocks.get(object.content.key, bytes.start, bytes.end, WHOLE_BLOCKS_MAX) {
                            Available::Bytes(body) => Some(body),
                            Available::NeedsDisk(_) | Available::Gone => None,
                        }
                    }
                };
                let body = body.filter(|body| body.len() == bytes.end - bytes.start);
                let Some(body) = body else { return Ok(Look::Ask(ask)) };
                Visit::note_short(&object.content, client, &bytes, now_ms);
                self.note_saved(&object, body.len(), true, now_ms);
                Ok(Look::Answer(CachedAnswer { head, body, word: CacheWord::Hit }))
            }
            Some(Err(word)) => Ok(Look::NotCached(word)),
            None if asked.directives.only_if_cached => {
                Ok(Look::NotCached(CacheWord::Forward(baton_segment::rules::Forward::UriMiss)))
            }
            None => Ok(Look::Ask(ask)),
        }
    }

    fn reply(&self, object: &Object, hit: &baton_segment::rules::Hit<'_>, head: &RequestHead<'_>) -> Reply {
        let status = CacheStatus { cache: &self.name, ttl_s: Some(hit.ttl_s), ..CacheStatus::default() };
        debug_assert_eq!(CacheWord::of_hit(hit), CacheWord::Hit);
        Reply::of(object, hit, head, &status)
    }

    /// A client gets so many bytes that the origin need not send for it. `is_start`: they are the first of the response.
    pub(crate) fn note_saved(&self, object: &Object, bytes: u64, is_start: bool, now_ms: u64) {
        CacheCounters::add(self.counters.saved_bytes, bytes);
        if is_start && self.blocks.has_disk() {
            let evicted = self.blocks.warm(object.content.key, now_ms);
            self.forget(evicted);
        }
    }

    /// What a response to a request that the cache has not answered makes unusable.
    pub fn invalidate(
        &self,
        route: &CachedRoute,
        arrival: Arrival,
        request: &RequestHead<'_>,
        response: &ResponseHead,
    ) {
        let Some(key) = Ask::uri_of(route, arrival, request) else { return };
        let Some(invalid) = invalidated(&route.rules, request.method, &key, response) else { return };
        let uris = invalid.keys.iter().map(PurgeOrder::uri);
        let groups = invalid.groups.into_iter().map(|name| PurgeOrder::group(&key, name));
        let orders: Vec<_> = uris.chain(groups).collect();
        self.purge(&orders);
        if let Some(outbox) = &self.outbox {
            outbox.put(&orders);
        }
    }

    /// Adds to a response that the cache has nothing to do with such requests, and why: `otherwise`, if the rules of HTTP have no
    /// reason.
    pub fn note_bypass(
        &self,
        route: &CachedRoute,
        request: &RequestHead<'_>,
        otherwise: Bypass,
        response: &mut ResponseHead,
    ) {
        let bypass = CacheRequest::of(&route.rules, request).err().unwrap_or(otherwise);
        let forward = bypass.forward();
        let status = CacheStatus {
            cache: &self.name,
            forward: Some(forward),
            // The method needs no second word.
            detail: Some(bypass.label()).filter(|detail| *detail != forward.label()),
            ..CacheStatus::default()
        };
        add_status(response, &status);
    }

    pub(crate) fn note_purge(&self, purge: Purge) {
        let mut generations = self.purges.lock();
        let floor_before = generations.floor();
        let purged = generations.purge(purge);
        if self.blocks.has_disk() {
            self.write_mark(purged);
            if generations.floor() > floor_before {
                self.write_floor(generations.floor());
            }
        }
        self.purges.newest.store(generations.newest(), Ordering::Release);
        CacheCounters::add(self.counters.purged, 1);
    }

    fn write_mark(&self, purged: Purged) {
        let record = purge_to_bytes(purged, self.fingerprint);
        self.blocks.store().put_mark(purge_key(purged.purge).into(), kind::PURGE, record);
    }

    /// All that is older counts as purged, so the marks of older purges go.
    fn write_floor(&self, floor: u64) {
        self.write_mark(Purged { purge: Purge::Everything, generation: floor });
        let (blocks, fingerprint) = (Arc::clone(&self.blocks), self.fingerprint);
        let drop_old = move || {
            let store = blocks.store();
            for mark in store.objects().of_kind(kind::PURGE) {
                let purged = purge_from_bytes(&mark.record, fingerprint);
                if purged.is_some_and(|it| it.generation <= floor && it.purge != Purge::Everything) {
                    store.remove(&mark.key);
                }
            }
        };
        // It reads from the disk. Without a thread for it, the marks stay, and cost some bytes.
        let _ = std::thread::Builder::new().name("cache-purges".into()).spawn(drop_old);
    }

    /// Calls `done` once all purges until now are where a crash does not reach them, or are known not to be. `done` must
    /// not block. Without a folder nothing outlives the process that could have to be purged.
    pub fn when_recorded(&self, done: impl FnOnce(Result<(), NotDurable>) + Send + 'static) {
        if self.blocks.has_disk() { self.blocks.store().sync(done) } else { done(Ok(())) }
    }

    /// Waits until the disk has all that is queued for it, or does not take it, but not longer than `patience`.
    pub fn flush(&self, patience: Duration) {
        let (recorded, is_recorded) = mpsc::channel();
        self.when_recorded(move |durable| {
            // Fails if this has lost its patience.
            let _ = recorded.send(durable);
        });
        let _ = is_recorded.recv_timeout(patience);
    }

    /// Lets the memory take a part of its range, in thousandths: see [`MemoryShare`](crate::MemoryShare). Returns whether it
    /// has given up some.
    pub fn set_memory_share(&self, permille: u16, now_ms: u64) -> bool {
        let before = self.blocks.held().1;
        self.forget(self.blocks.set_memory_share(permille, now_ms));
        self.blocks.held().1 < before
    }

    /// What the cache holds.
    pub fn stats(&self) -> CacheStats {
        let (objects, bytes) = self.blocks.held();
        let disk = self.blocks.has_disk().then(|| {
            let store = self.blocks.store().stats();
            DiskStats {
                state: DiskStats::word(store.disk),
                bytes: store.disk_bytes,
                queue_bytes: store.queue_bytes,
                is_recovered: self.is_recovered.load(Ordering::Relaxed),
            }
        });
        CacheStats { objects: objects as u64, bytes, fills: self.fills.load(Ordering::Relaxed), disk }
    }

    /// Drops what was purged since it was looked at last.
    pub(crate) fn drop_purged(&self, entry: &mut Entry) {
        let newest = self.purges.newest();
        if entry.variants.iter().all(|object| object.generation() == newest) {
            return;
        }
        let generations = self.purges.lock();
        let newest = generations.newest();
        let key = &entry.key;
        let is_current =
            |object: &Object| generations.is_current(object.generation(), &self.secret, key, &object.labels);
        let (kept, purged): (Vec<_>, Vec<_>) =
            entry.variants.drain(..).partition(|object| is_current(object));
        drop(generations);
        kept.iter().for_each(|object| object.note_current(newest));
        entry.variants = kept;
        drop(purged);
    }

    /// Whether nothing has purged a response since this generation, as far as its labels are known.
    pub(crate) fn is_current(&self, generation: u64, key: &Key, labels: &[Label]) -> bool {
        generation == self.purges.newest()
            || self.purges.lock().is_current(generation, &self.secret, key, labels)
    }

    /// A new content for a response, which is about to be stored from this byte on. `Err`: why it is not.
    pub(crate) fn new_object(
        &self,
        fill: &Fill,
        stored: Stored,
        from: u64,
        now_ms: u64,
    ) -> (Arc<Object>, Result<(), &'static str>) {
        let labels = labels_of(&fill.ask.route.rules, &self.secret, &fill.ask.key, stored.head());
        let number = self.contents.fetch_add(1, Ordering::Relaxed);
        let content = self.secret.content(number, self.process).0;
        let length = stored.head().content_length().filter(|_| !stored.head().status().forbids_content());
        let policy = self.blocks.policy_of(fill.ask.route.policy, stored.head(), length);
        let facts = Facts { length, validator: None, handle: fill.ask.hash, policy: Some(policy) };
        let (begun, evicted) = match (&labels, stored.head().text().len() <= HEAD_BYTES_MAX) {
            (Err(_), _) => (Err("too-many-labels"), Evicted::default()),
            (_, false) => (Err("head-too-long"), Evicted::default()),
            (Ok(labels), true) => {
                let record = self.record(&fill.ask, &stored, labels, (policy, length), fill.generation);
                let first = self.blocks.layout().block_of(from);
                self.blocks.begin(content, facts, (first, fill.ask.first_byte()), record, now_ms)
            }
        };
        self.forget(evicted);
        let content = Arc::new(Content::new(&self.blocks, content, facts));
        (Arc::new(Object::new(stored, content, labels.unwrap_or_default(), fill.generation)), begun)
    }

    /// Writes down what has become of a response: another head, or its length.
    pub(crate) fn note_changed(&self, ask: &Ask, object: &Object) {
        let Object { stored, labels, content, .. } = object;
        let record =
            self.record(ask, stored, labels, (content.policy, content.length()), object.generation());
        // With the earlier record it is stale sooner, or not found after a start.
        let _ = self.blocks.put_record(content.key, record);
    }

    /// Empty without a folder: nothing would read it.
    fn record(
        &self,
        ask: &Ask,
        stored: &Stored,
        labels: &[Label],
        (policy, length): (CachePolicy, Option<u64>),
        generation: u64,
    ) -> Vec<u8> {
        if !self.blocks.has_disk() {
            return Vec::new();
        }
        let record = ResponseRecord {
            process: self.process,
            key: ask.key.clone(),
            partition: ask.route.partition.to_string(),
            generation,
            times: stored.times(),
            policy,
            length,
            head: stored.head().clone(),
            variant: stored.variant().clone(),
            labels: labels.into(),
        };
        record.to_bytes(self.fingerprint)
    }

    /// Forgets what the index has given up.
    pub(crate) fn forget(&self, evicted: Evicted) {
        CacheCounters::add(self.counters.evicted, evicted.0.len() as u64);
        for (hash, content) in evicted.0 {
            self.directory.forget(hash, content);
        }
    }
}

impl Drop for SharedCache {
    /// The directory is dropped with what it refers to; the disk keeps it for the next process.
    fn drop(&mut self) {
        self.blocks.close();
    }
}

impl Purges {
    /// The generation for a response whose fetch begins now.
    pub(crate) fn newest(&self) -> u64 {
        self.newest.load(Ordering::Acquire)
    }

    /// Takes a purge that was written down.
    pub(crate) fn restore(&self, purged: Purged) {
        let mut generations = self.lock();
        generations.restore(purged);
        self.newest.store(generations.newest(), Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, Generations> {
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Labels that a purge is remembered for. Beyond, the oldest half becomes a purge of everything that is as old.
const PURGES_MAX: usize = 100_000;

/// The longest head that is stored: what fits a record of the store beside a long key, and keeps the memory of all heads
/// bounded.
const HEAD_BYTES_MAX: usize = baton_store::RECORD_BYTES_MAX - PurgeOrder::TEXT_BYTES_MAX;

/// Blocks of an answer that is given at once. Longer ones are given as the client takes them.
const WHOLE_BLOCKS_MAX: usize = 8;

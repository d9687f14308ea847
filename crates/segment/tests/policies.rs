//! Goal: each policy keeps what its source says. Method: a few readers of an index of a few blocks, by hand.

use std::num::NonZeroU32;

use baton_segment::index::{Facts, Index, IndexSettings, ObjectId};
use baton_segment::layout::{BlockNumber, Grouping, Layout};
use baton_segment::policy::{Aim, CachePolicy, PolicyName};
use baton_segment::rules::KeyHash;

const BLOCK: u64 = 4096;

struct Cache {
    index: Index,
    now: u64,
}

impl Cache {
    /// Room for so many blocks; segments as the policy wants them, or of one block.
    fn new(policy: PolicyName, blocks: u64, one_block: bool) -> Self {
        let grouping = if one_block { Grouping::Uniform(NonZeroU32::MIN) } else { policy.grouping() };
        let index = Index::new(IndexSettings {
            layout: Layout::new(BLOCK, grouping).unwrap(),
            bytes_max: blocks * BLOCK,
            objects_max: 1000,
            policy,
            aim: Aim::Bytes,
            seed: 1,
        });
        Self { index, now: 0 }
    }

    fn open(&mut self, key: u128, blocks: u32) -> ObjectId {
        self.open_with(key, blocks, None)
    }

    fn open_with(&mut self, key: u128, blocks: u32, policy: Option<CachePolicy>) -> ObjectId {
        match self.index.find(KeyHash(key)) {
            Some(here) => {
                self.index.open(here);
                here
            }
            None => {
                let length = Some(u64::from(blocks) * BLOCK);
                let facts = Facts { length, handle: key as u64, policy, ..Facts::default() };
                self.index.insert(KeyHash(key), facts, self.now).unwrap()
            }
        }
    }

    /// Something of one block is asked for; whether it was here.
    fn ask(&mut self, key: u128, policy: PolicyName) -> bool {
        let grouping = Grouping::Uniform(NonZeroU32::MIN);
        let here = self.open_with(key, 1, Some(CachePolicy { name: policy, grouping }));
        let was_here = self.index.contains(here, 0);
        self.read_on(here, None, 1);
        self.index.close(here);
        was_here
    }

    /// Reads blocks one by one, a second each.
    fn read_on(&mut self, here: ObjectId, from: Option<BlockNumber>, to: BlockNumber) {
        let mut last = from;
        for block in from.map_or(0, |from| from + 1)..to {
            self.now += 1000;
            self.index.handle_use(here, last, block, self.now);
            // Whether it is kept is what tests ask afterwards.
            let _ = self.index.store(here, block..block + 1, self.now);
            last = Some(block);
        }
    }

    /// A session that reads the first blocks of an object.
    fn read(&mut self, key: u128, blocks: u32, first: u32) {
        let here = self.open(key, blocks);
        self.read_on(here, None, first);
        self.index.handle_leave(here, first - 1);
        self.index.close(here);
    }

    fn has(&self, key: u128) -> bool {
        self.index.find(KeyHash(key)).is_some()
    }

    /// Which blocks of an object are here.
    fn blocks(&self, key: u128) -> Vec<BlockNumber> {
        let Some(here) = self.index.find(KeyHash(key)) else { return Vec::new() };
        (0..300).filter(|block| self.index.contains(here, *block)).collect()
    }
}

#[test]
fn lru_evicts_what_was_used_longest_ago() {
    let mut cache = Cache::new(PolicyName::Lru, 3, true);
    for key in [1, 2, 3, 1, 4] {
        cache.read(key, 1, 1);
    }
    assert_eq!([1, 2, 3, 4].map(|key| cache.has(key)), [true, false, true, true]);
}

/// A large object goes before small ones that were used earlier.
#[test]
fn gds_evicts_large_and_long_unused() {
    let mut cache = Cache::new(PolicyName::Gds, 6, false);
    cache.read(1, 1, 1);
    cache.read(2, 1, 1);
    cache.read(3, 4, 4);
    cache.read(4, 1, 1);
    assert_eq!([1, 2, 3, 4].map(|key| cache.has(key)), [true, true, false, true]);
}

/// What is used twice stays while objects pass that are used once; one of these is remembered when it comes again.
#[test]
fn s3_fifo_lets_pass_what_is_used_once() {
    let mut cache = Cache::new(PolicyName::S3Fifo, 10, true);
    for _ in 0..3 {
        cache.read(1, 1, 1);
    }
    for key in 2..30 {
        cache.read(key, 1, 1);
    }
    assert!(cache.has(1) && !cache.has(15));
    cache.read(15, 1, 1);
    for key in 30..38 {
        cache.read(key, 1, 1);
    }
    assert!(cache.has(15), "a ghost comes into the main queue");
}

/// Goal: what is asked for often stays while short objects pass, more than there may be. They have so few bytes that the main queue
/// made room for them once.
#[test]
fn s3_fifo_lets_short_objects_pass_beyond_the_bound_of_objects() {
    const POPULAR: u128 = 100;
    let mut cache = Cache::new(PolicyName::S3Fifo, 100_000, true);
    (0..3).for_each(|_| (0..POPULAR).for_each(|key| cache.read(key, 8, 8)));
    for key in POPULAR..40 * POPULAR {
        let short = Facts { length: Some(1), handle: key as u64, ..Facts::default() };
        let here = cache.index.insert(KeyHash(key), short, cache.now).expect("room for one more");
        cache.index.store(here, 0..1, cache.now).expect("room for a byte");
        cache.index.close(here);
    }
    let left = (0..POPULAR).filter(|key| cache.blocks(*key).len() == 8).count();
    assert_eq!(left, POPULAR as usize);
}

/// First segments push others out of their share only; a later segment comes with the second request, and the last segment
/// of the object that was not requested for the longest time goes for it.
#[test]
fn wu_keeps_beginnings_and_evicts_ends() {
    let mut cache = Cache::new(PolicyName::Wu, 256, false);
    cache.read(1, 257, 160);
    assert_eq!(cache.blocks(1), (0..160).collect::<Vec<_>>());
    cache.read(2, 257, 160);
    assert_eq!(
        cache.blocks(2),
        (0..96).collect::<Vec<_>>(),
        "as much as there is room for, at the first request"
    );
    cache.read(2, 257, 160);
    assert_eq!(cache.blocks(2), (0..160).collect::<Vec<_>>());
    assert_eq!(cache.blocks(1), (0..64).collect::<Vec<_>>(), "its last two segments have gone");
}

/// Films that are begun often: their beginnings displace the rest of a film that was seen to its end.
#[test]
fn reach_keeps_what_is_asked_for_most_often() {
    let mut cache = Cache::new(PolicyName::Reach, 96, false);
    cache.read(1, 97, 96);
    for _ in 0..6 {
        for key in 2..5 {
            cache.read(key, 97, 16);
        }
    }
    for key in 2..5 {
        assert_eq!(cache.blocks(key).len(), 16, "film {key}");
    }
    assert!(cache.blocks(1).len() <= 48 && cache.has(1), "{:?}", cache.blocks(1));
}

/// Two films were begun as often. Of the one that a reader is halfway through, the part in front of the reader stays.
#[test]
fn reach_keeps_what_a_reader_is_on_the_way_to() {
    let end_is_kept = |leaves: bool| {
        let mut cache = Cache::new(PolicyName::Reach, 192, false);
        for key in [1, 2] {
            cache.read(key, 97, 96);
        }
        let here = cache.open(1, 97);
        cache.read_on(here, None, 60);
        if leaves {
            cache.index.handle_leave(here, 59);
            cache.index.close(here);
        }
        cache.read(2, 97, 60);
        // Something else becomes popular.
        for _ in 0..12 {
            cache.read(3, 49, 48);
        }
        (
            cache.blocks(1).iter().filter(|block| **block >= 64).count(),
            cache.blocks(2).iter().filter(|block| **block >= 64).count(),
        )
    };
    let (ahead, elsewhere) = end_is_kept(false);
    assert!(ahead > elsewhere, "{ahead} blocks ahead of the reader, {elsewhere} of the other film");
    let (behind, _) = end_is_kept(true);
    assert!(ahead > behind, "{ahead} blocks while it reads, {behind} after it has left");
}

/// Another version of what was asked for before has another key. Its readers count like those of the version before, so that
/// what has no room at first is kept once it is asked for often enough.
#[test]
fn reach_knows_the_next_version_by_its_handle() {
    let mut cache = Cache::new(PolicyName::Reach, 10, true);
    let residents = 1..11;
    for _ in 0..5 {
        residents.clone().for_each(|key| cache.read(key, 1, 1));
    }
    let mut keys = 100..;
    let mut is_kept = |handle_of: fn(u128) -> u64| {
        (0..30).any(|_| {
            residents.clone().for_each(|key| cache.read(key, 1, 1));
            keys.by_ref().take(5).any(|key| {
                let facts = Facts { length: Some(BLOCK), handle: handle_of(key), ..Facts::default() };
                let here = cache.index.insert(KeyHash(key), facts, cache.now).unwrap();
                cache.read_on(here, None, 1);
                cache.index.close(here);
                cache.has(key)
            })
        })
    };
    assert!(!is_kept(|key| key as u64), "each asked for once");
    assert!(is_kept(|_| 99), "the same again and again");
}

/// A reader of an object that is purged, or has gone, is not waited for when the next version comes.
#[test]
fn reach_forgets_readers_of_what_has_gone() {
    let mut cache = Cache::new(PolicyName::Reach, 1000, false);
    let before = cache.index.heap_bytes();
    for key in 1..10_000 {
        let here = cache.open(key, 40);
        cache.index.handle_use(here, None, 0, cache.now);
        cache.index.handle_use(here, Some(0), 16, cache.now);
        cache.index.purge(KeyHash(key));
        cache.index.close(here);
    }
    let (per_object, remembered) = (400, 4096);
    assert!(cache.index.heap_bytes() - before < 2 * per_object * remembered, "{}", cache.index.heap_bytes());
}

/// Objects that are asked for once do not displace one that comes back.
#[test]
fn reach_lets_newcomers_come_twice() {
    let mut cache = Cache::new(PolicyName::Reach, 4, false);
    for _ in 0..5 {
        for key in 1..5 {
            cache.read(key, 1, 1);
        }
    }
    for key in 5..12 {
        cache.read(key, 1, 1);
    }
    assert!((1..5).all(|key| cache.has(key)));
    // Their readers turn to another one.
    for _ in 0..100 {
        cache.read(20, 1, 1);
    }
    assert!(cache.has(20));
}

/// Goal: two classes share a cache by what they make use of. Method: one is asked for the same again and again, the other for
/// everything once; then their parts change. The share of each follows, however the cache was filled.
#[test]
fn room_goes_to_the_class_that_makes_use_of_it() {
    let mut cache = Cache::new(PolicyName::Lru, 1000, true);
    let mut once = 10_000..;
    // The class that wants everything once fills the cache first.
    (0..2000).for_each(|_| _ = cache.ask(once.next().unwrap(), PolicyName::Lru));
    for (again, other) in [(PolicyName::S3Fifo, PolicyName::Lru), (PolicyName::Lru, PolicyName::S3Fifo)] {
        let first = 1_000 * again as u128;
        let mut hits = 0;
        for round in 0..40 {
            for key in first..first + 800 {
                let was_here = cache.ask(key, again);
                hits += u32::from(was_here && round == 39);
                cache.ask(once.next().unwrap(), other);
            }
        }
        assert!(hits > 700, "{again}: {hits} of 800");
    }
}

/// Goal: what is asked for once moves no share, however much of it comes. Method: a film class in a part of the cache, then a
/// scan through the other class of ten times the cache.
#[test]
fn a_scan_through_one_class_leaves_the_others() {
    let mut cache = Cache::new(PolicyName::S3Fifo, 1000, true);
    let films: Vec<u128> = (1..11).collect();
    let view = |cache: &mut Cache, blocks: u32| {
        for &film in &films {
            let here = cache.open_with(film, 97, Some(PolicyName::Reach.into()));
            cache.read_on(here, None, blocks);
            cache.index.handle_leave(here, blocks - 1);
            cache.index.close(here);
        }
    };
    (0..3).for_each(|_| view(&mut cache, 20));
    for key in 1000..11_000 {
        cache.ask(key, PolicyName::S3Fifo);
    }
    let kept: usize = films.iter().map(|film| cache.blocks(*film).len()).sum();
    assert_eq!(kept, 200);
}

//! Goal: whatever an origin does, each body is of one version or ends visibly, no reader waits for ever, and the origin sends
//! no byte that it need not. Method: seeds choose readers, their pace, what the store keeps and how the origin behaves;
//! the model knows which version each block is of.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use baton_segment::fill::{Action, Answer, CutReason, End, FillId, FillSettings, Filling, ReaderId, Version};
use baton_segment::layout::{BlockNumber, Grouping, Layout};

const BLOCK: u64 = 4096;
const AHEAD: u32 = 3;
const READERS_MAX: usize = 60;

/// How an origin misbehaves; none of it where a law is about bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    changes: bool,
    cuts: bool,
    ignores_ranges: bool,
    shorter: bool,
    broken: bool,
    no_validator: bool,
    no_length: bool,
    /// The store refuses blocks, and drops some.
    forgets: bool,
    stores_nothing: bool,
    leaves: bool,
}

struct Response {
    /// What the origin had when it was asked.
    version: u64,
    asked: Range<BlockNumber>,
    next: BlockNumber,
    has_head: bool,
    /// Blocks that it sends before it is cut.
    end: BlockNumber,
    whole: BlockNumber,
    paused: bool,
    /// Neither ended nor closed.
    open: bool,
    /// Blocks in memory, and their version.
    last: Vec<(BlockNumber, u64)>,
}

struct Reader {
    wanted: Range<BlockNumber>,
    next: BlockNumber,
    served: bool,
    version: Option<u64>,
}

struct World {
    random: fastrand::Rng,
    faults: Faults,
    layout: Layout,
    filling: Filling,
    version: u64,
    store: BTreeMap<BlockNumber, u64>,
    responses: BTreeMap<FillId, Response>,
    readers: BTreeMap<ReaderId, Reader>,
    next_reader: ReaderId,
    sent: Vec<BlockNumber>,
    ends: BTreeMap<&'static str, u32>,
}

impl World {
    fn new(seed: u64, faults: Faults) -> Self {
        let layout = Layout::new(BLOCK, Grouping::UNIFORM).unwrap();
        let settings = FillSettings { ahead_blocks: AHEAD, fills_max: 4, readers_max: READERS_MAX };
        Self {
            random: fastrand::Rng::with_seed(seed),
            faults,
            layout,
            filling: Filling::new(layout, settings, None),
            version: 1,
            store: BTreeMap::new(),
            responses: BTreeMap::new(),
            readers: BTreeMap::new(),
            next_reader: 0,
            sent: Vec::new(),
            ends: BTreeMap::new(),
        }
    }

    fn length(version: u64) -> u64 {
        (20 + version % 5) * BLOCK + version % 2
    }

    fn blocks(&self) -> u32 {
        self.layout.blocks_in(Self::length(self.version))
    }

    fn chance(&mut self, one_in: u32) -> bool {
        self.random.u32(..one_in) == 0
    }

    fn told(&self, version: u64) -> Version {
        Version {
            validator: (!self.faults.no_validator).then_some(version),
            length: (!self.faults.no_length).then(|| Self::length(version)),
        }
    }

    fn call(&mut self, event: impl FnOnce(&mut Filling, &dyn Fn(BlockNumber) -> bool)) {
        let store = &self.store;
        event(&mut self.filling, &|block| store.contains_key(&block));
        while let Some(action) = self.filling.next_action() {
            self.act(action);
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Fetch { fill, from, to, if_range } => {
                assert!(to.is_none_or(|to| from < to));
                // If-Range: a part if the version is that one, else all.
                let changed = if_range.is_some_and(|tag| tag != self.version);
                let all = self.blocks();
                let starts_at_0 = changed || (self.faults.ignores_ranges && self.version.is_multiple_of(2));
                let mut whole = if starts_at_0 { all } else { to.unwrap_or(all).min(all) };
                let next = if starts_at_0 { 0 } else { from };
                if self.faults.shorter && self.chance(3) && whole > next + 1 {
                    whole -= 1;
                }
                let cut = self.faults.cuts && self.chance(4);
                let end = if cut && next < whole { self.random.u32(next..whole) } else { whole };
                let asked = from..to.unwrap_or(all);
                self.responses.insert(
                    fill,
                    Response {
                        version: self.version,
                        asked,
                        next,
                        has_head: false,
                        end,
                        whole,
                        paused: false,
                        open: true,
                        last: Vec::new(),
                    },
                );
                assert!(self.responses.values().filter(|response| response.open).count() <= 4);
            }
            Action::Pause(fill) => {
                assert!(!std::mem::replace(&mut self.responses.get_mut(&fill).unwrap().paused, true));
            }
            Action::Resume(fill) => {
                assert!(std::mem::replace(&mut self.responses.get_mut(&fill).unwrap().paused, false));
            }
            Action::Close(fill) => {
                // Its last blocks stay in memory for those who are served now.
                if let Some(response) = self.responses.get_mut(&fill) {
                    response.end = response.next;
                    response.whole = response.next;
                    response.has_head = true;
                    (response.paused, response.open) = (true, false);
                }
            }
            Action::Serve { reader, block } => self.serve(reader, block),
            Action::Cut { reader, reason } => {
                let reader = self.readers.remove(&reader).unwrap();
                assert!(reader.version.is_some(), "only who has bytes is cut");
                *self.ends.entry(reason.as_str()).or_default() += 1;
                // An origin that ends a body of unknown length too soon contradicts itself later.
                let lies = self.faults.no_validator || (self.faults.shorter && self.faults.no_length);
                assert!(reason != CutReason::Changed || self.faults.changes || lies);
            }
            Action::Pass(reader) => self.gone_without_bytes(reader, "pass"),
            Action::Again(reader) => self.gone_without_bytes(reader, "again"),
            Action::NewVersion(_) => self.store.clear(),
            Action::Length(length) => {
                let blocks = self.layout.blocks_in(length);
                for reader in self.readers.values_mut() {
                    reader.wanted.end = reader.wanted.end.min(blocks);
                }
                self.readers.retain(|_, reader| !reader.wanted.is_empty() && reader.next < reader.wanted.end);
            }
        }
    }

    fn gone_without_bytes(&mut self, reader: ReaderId, how: &'static str) {
        let reader = self.readers.remove(&reader).unwrap();
        assert_eq!(reader.version, None, "{how}: it has bytes");
        *self.ends.entry(how).or_default() += 1;
    }

    fn serve(&mut self, id: ReaderId, block: BlockNumber) {
        let in_memory = || {
            let lasts = self.responses.values().flat_map(|response| &response.last);
            lasts.filter(|(last, _)| *last == block).map(|(_, version)| *version).next_back()
        };
        let version =
            self.store.get(&block).copied().or_else(in_memory).expect("neither stored nor in memory");
        let reader = self.readers.get_mut(&id).unwrap();
        assert_eq!(block, reader.next, "blocks come in order");
        assert!(!reader.served);
        reader.served = true;
        let before = *reader.version.get_or_insert(version);
        assert_eq!(before, version, "two versions in one body");
    }

    fn come(&mut self) {
        let from = if self.chance(2) { 0 } else { self.random.u32(..self.blocks()) };
        let to = if self.chance(2) { self.blocks() } else { self.random.u32(from + 1..=self.blocks()) };
        self.come_for(from..to);
    }

    fn come_for(&mut self, wanted: Range<BlockNumber>) {
        let id = self.next_reader;
        self.next_reader += 1;
        self.readers
            .insert(id, Reader { wanted: wanted.clone(), next: wanted.start, served: false, version: None });
        self.call(|filling, stored| filling.handle_reader(id, wanted, stored));
    }

    /// A reader that was served takes its block.
    fn take(&mut self) {
        let served: Vec<_> =
            self.readers.iter().filter(|(_, reader)| reader.served).map(|(id, _)| *id).collect();
        let Some(id) = self.random.choice(served) else { return };
        let reader = self.readers.get_mut(&id).unwrap();
        reader.served = false;
        reader.next += 1;
        if reader.next == reader.wanted.end {
            self.readers.remove(&id);
            *self.ends.entry("whole").or_default() += 1;
        }
        self.call(|filling, stored| filling.handle_taken(id, stored));
    }

    fn leave(&mut self) {
        let ids: Vec<_> = self.readers.keys().copied().collect();
        let Some(id) = self.random.choice(ids) else { return };
        let reader = self.readers.remove(&id).unwrap();
        let finish = self.chance(3).then_some(reader.next + 2);
        self.call(|filling, stored| filling.handle_leave(id, finish, stored));
    }

    /// The next piece of a response.
    fn send(&mut self) {
        let ready: Vec<_> =
            self.responses.iter().filter(|(_, response)| !response.paused).map(|(id, _)| *id).collect();
        let Some(id) = self.random.choice(ready) else { return };
        let broken = self.faults.broken && self.chance(10);
        let faults = self.faults;
        let loses = self.faults.stores_nothing || (self.faults.forgets && self.chance(3));
        let response = &self.responses[&id];
        let (version, next) = (response.version, response.next);
        if !response.has_head {
            let told = self.told(version);
            let is_part =
                next == response.asked.start && (next > 0 || !faults.ignores_ranges) && !faults.no_length;
            let end = self.layout.bytes_of(response.whole - 1, Some(Self::length(version))).end;
            let part = Answer::Partial { bytes: u64::from(next) * BLOCK..end, version: told };
            let answer = match self.random.u32(..4) {
                0 if broken => Answer::Broken,
                1 if broken => Answer::Failed,
                2 if broken => Answer::NotStored,
                _ if is_part => part,
                _ if next == 0 => Answer::Whole(told),
                _ => Answer::Partial {
                    bytes: u64::from(next) * BLOCK..end,
                    version: Version { length: Some(Self::length(version)), ..told },
                },
            };
            if matches!(answer, Answer::Whole(_)) && !self.faults.shorter {
                let all = self.layout.blocks_in(Self::length(version));
                let response = self.responses.get_mut(&id).unwrap();
                if response.end == response.whole {
                    response.end = all;
                }
                response.whole = all;
            }
            if matches!(answer, Answer::Broken | Answer::Failed | Answer::NotStored) {
                self.responses.remove(&id);
            } else {
                self.responses.get_mut(&id).unwrap().has_head = true;
            }
            self.call(|filling, stored| filling.handle_answer(id, answer, stored));
        } else if next < response.end {
            self.sent.push(next);
            let response = self.responses.get_mut(&id).unwrap();
            response.next += 1;
            response.last.push((next, version));
            if response.last.len() > AHEAD as usize + 1 {
                response.last.remove(0);
            }
            if !loses {
                self.store.entry(next).or_insert(version);
            }
            self.call(|filling, stored| filling.handle_block(id, stored));
        } else {
            let end = match response.next == response.whole && response.end == response.whole {
                true => End::Complete {
                    at: self.layout.bytes_of(next.max(1) - 1, Some(Self::length(version))).end,
                },
                false => End::Cut,
            };
            let response = self.responses.get_mut(&id).unwrap();
            (response.paused, response.open) = (true, false);
            self.call(|filling, stored| filling.handle_end(id, end, stored));
        }
    }

    fn step(&mut self) {
        match self.random.u32(..20) {
            0..2 => self.come(),
            2 if self.faults.leaves => self.leave(),
            3 if self.faults.changes && self.chance(4) => self.version += 1,
            4 if self.faults.forgets => {
                let block = self.random.u32(..30);
                self.store.remove(&block);
            }
            5..12 => self.take(),
            _ => self.send(),
        }
    }

    /// Readers take and the origin sends until nothing moves.
    fn drain(&mut self) {
        for _ in 0..20_000 {
            if self.filling.is_idle() {
                return;
            }
            self.take();
            self.send();
        }
        panic!("stuck: {:?}", self.filling);
    }
}

fn run(seed: u64, faults: Faults) -> World {
    let mut world = World::new(seed, faults);
    for _ in 0..300 {
        world.step();
    }
    world.drain();
    assert!(world.readers.is_empty(), "a reader was forgotten");
    world
}

#[test]
fn bodies_are_of_one_version_or_end_visibly() {
    let mut ends = BTreeSet::new();
    for seed in 0..3000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let faults = Faults {
            changes: random.bool(),
            cuts: random.bool(),
            ignores_ranges: random.bool(),
            shorter: random.bool(),
            broken: random.bool(),
            no_validator: random.u8(..4) == 0,
            no_length: random.u8(..4) == 0,
            forgets: random.bool(),
            stores_nothing: random.u8(..8) == 0,
            leaves: random.bool(),
        };
        let result = std::panic::catch_unwind(|| run(seed, faults));
        match result {
            Ok(world) => ends.extend(world.ends.into_keys()),
            Err(_) => panic!("seed {seed}, {faults:?}"),
        }
    }
    assert_eq!(ends.into_iter().collect::<Vec<_>>(), ["again", "changed", "origin-failed", "pass", "whole"]);
}

/// With an origin and a store that do what they should: blocks that are wanted come once, and few others.
#[test]
fn an_origin_sends_each_byte_once() {
    for seed in 0..500 {
        let world = run(seed, Faults::default());
        let distinct: BTreeSet<_> = world.sent.iter().collect();
        assert_eq!(distinct.len(), world.sent.len(), "seed {seed}: {:?}", world.sent);
    }
}

/// Many readers of one cold film, at one offset: it is sent once, and never far ahead of the fastest of them.
#[test]
fn readers_of_a_cold_object_share_one_fill() {
    let mut world = World::new(1, Faults::default());
    for _ in 0..10 {
        world.come_for(0..21);
    }
    let mut fastest = 0;
    for _ in 0..2000 {
        world.send();
        fastest = world.readers.values().map(|reader| reader.next).max().unwrap_or(0).max(fastest);
        let at = world.sent.last().map_or(0, |last| last + 1);
        assert!(at <= fastest + AHEAD, "{at} for {fastest}");
        if world.chance(3) {
            world.take();
        }
    }
    world.drain();
    assert_eq!(world.sent, (0..21).collect::<Vec<_>>());
    assert_eq!(world.ends["whole"], 10);
}

/// Readers who begin anywhere, more of them than there may be fills: some get their own responses, none waits for a fill
/// that has ended.
#[test]
fn seeks_beyond_the_bound_of_fills_are_served() {
    for seed in 0..300 {
        let mut world = World::new(seed, Faults::default());
        while world.readers.len() < READERS_MAX / 2 {
            world.come();
            if world.chance(4) {
                world.send();
            }
        }
        world.drain();
        let distinct: BTreeSet<_> = world.sent.iter().collect();
        assert_eq!(distinct.len(), world.sent.len(), "seed {seed}: {:?}", world.sent);
        assert!(
            world.ends.keys().all(|end| ["whole", "pass"].contains(end)),
            "seed {seed}: {:?}",
            world.ends
        );
    }
}

/// A reader of what the store does not keep, however slow, is served from the fill's last blocks.
#[test]
fn what_is_not_stored_comes_once_for_its_reader() {
    for seed in 0..50 {
        let mut world = World::new(seed, Faults { stores_nothing: true, ..Faults::default() });
        world.come_for(0..21);
        for _ in 0..500 {
            world.send();
            if world.chance(4) {
                world.take();
            }
        }
        world.drain();
        assert_eq!(world.sent, (0..21).collect::<Vec<_>>(), "seed {seed}");
    }
}

/// A fill whose reader leaves is closed, or goes on as far as policy says.
#[test]
fn a_reader_that_leaves_stops_its_fill() {
    for (finish, expected) in [(None, 1 + AHEAD), (Some(10), 10)] {
        let mut world = World::new(1, Faults::default());
        world.come_for(0..21);
        for _ in 0..50 {
            world.send();
        }
        assert_eq!(world.sent.len() as u32, AHEAD, "paused");
        world.take();
        world.send();
        world.readers.clear();
        world.call(|filling, stored| filling.handle_leave(0, finish, stored));
        for _ in 0..50 {
            world.send();
        }
        assert!(world.filling.is_idle());
        assert_eq!(world.sent.len() as u32, expected);
    }
}

/// The next segment is fetched before a reader wants it, and only what is not here.
#[test]
fn a_segment_is_fetched_ahead() {
    let mut world = World::new(1, Faults::default());
    world.come_for(0..4);
    world.drain();
    world.call(|filling, stored| filling.prefetch(2..8, stored));
    world.drain();
    assert_eq!(world.sent, (0..8).collect::<Vec<_>>());
}

/// An origin whose parts are shorter than a block is not asked for ever.
#[test]
fn a_part_without_a_whole_block_is_of_no_use() {
    let mut world = World::new(1, Faults::default());
    world.come_for(0..1);
    world.drain();
    world.come_for(5..6);
    let (id, response) = world.responses.iter().next_back().unwrap();
    let (id, version) = (*id, world.told(response.version));
    let bytes = 5 * BLOCK..6 * BLOCK - 1;
    world.call(|filling, stored| filling.handle_answer(id, Answer::Partial { bytes, version }, stored));
    assert!(world.filling.is_idle() && world.readers.is_empty(), "{:?}", world.filling);
    assert_eq!(world.ends["pass"], 1);
}

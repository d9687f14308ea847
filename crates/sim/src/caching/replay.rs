//! Runs a workload through a cache: the server's own index and policy, without its bytes.
//!
//! A reader takes a minute of film at a time, and no more than a segment. What is not here comes from the origin in blocks,
//! as fast as the reader takes it. When a reader of the origin leaves, the fill is a few blocks ahead; a policy that wants
//! whole segments lets it go on to the segment's end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use baton_segment::index::{Facts, Index, IndexSettings, ObjectId, Removed};
use baton_segment::layout::{BlockNumber, Grouping};
use baton_segment::rules::KeyHash;
use hashbrown::HashSet;

use super::outcome::CacheOutcome;
use super::scenario::CacheScenario;
use super::session::Session;
use super::workload::Workload;

/// How far a fill is ahead of its reader, in blocks.
const AHEAD_BLOCKS: u32 = 4;

/// Runs a workload. `so_far` is told now and then how many sessions have begun.
pub(crate) fn replay(
    scenario: &CacheScenario,
    workload: &Workload,
    so_far: &mut dyn FnMut(u64),
) -> CacheOutcome {
    let mut replay = Replay::new(scenario, workload);
    let sessions = workload.sessions();
    let warm = (sessions.len() as f64 * scenario.warm_up) as usize;
    for (number, session) in sessions.iter().enumerate() {
        replay.advance(session.at_ms);
        if number == warm {
            replay.outcome = CacheOutcome::default();
            replay.unread.clear();
        }
        if number % PROGRESS_SESSIONS == 0 {
            so_far(number as u64);
        }
        replay.begin(session);
    }
    replay.advance(u64::MAX);
    so_far(sessions.len() as u64);
    replay.finish(scenario, workload)
}

const PROGRESS_SESSIONS: usize = 4096;

struct Replay<'a> {
    scenario: &'a CacheScenario,
    workload: &'a Workload,
    index: Index,
    completes: bool,
    readers: Vec<Reader<'a>>,
    free: Vec<usize>,
    /// Readers by the time of their next step.
    due: BinaryHeap<Reverse<(u64, usize)>>,
    /// Blocks that are here and were never read.
    unread: HashSet<(u32, BlockNumber), foldhash::fast::FixedState>,
    outcome: CacheOutcome,
}

#[derive(Clone, Debug)]
struct Reader<'a> {
    session: &'a Session,
    here: ObjectId,
    /// How many of the session's ranges it has begun, and what is left of the last.
    begun: usize,
    left: Range<u64>,
    /// The block that it has reached last.
    last: Option<BlockNumber>,
    /// Whether the last block came from the origin.
    filling: bool,
    waited: bool,
    missed: bool,
}

impl<'a> Replay<'a> {
    fn new(scenario: &'a CacheScenario, workload: &'a Workload) -> Self {
        let index = Index::new(IndexSettings {
            layout: scenario.layout(),
            bytes_max: scenario.bytes_max,
            objects_max: 1 << 31,
            policy: scenario.policy_name(),
            aim: scenario.aim,
            seed: scenario.seed,
        });
        let completes = scenario.policy.grouping == Some(Grouping::Whole);
        Self {
            scenario,
            workload,
            index,
            completes,
            readers: Vec::new(),
            free: Vec::new(),
            due: BinaryHeap::new(),
            unread: HashSet::default(),
            outcome: CacheOutcome::default(),
        }
    }

    fn begin(&mut self, session: &'a Session) {
        let object = self.workload.objects()[session.object as usize];
        let key = key_of(session.object);
        let here = match self.index.find(key) {
            Some(here) => {
                self.index.open(here);
                here
            }
            None => {
                let policy = Some(self.scenario.policy_of(&object));
                let handle = key.0 as u64;
                let facts = Facts { length: Some(object.bytes), handle, policy, ..Facts::default() };
                match self.index.insert(key, facts, session.at_ms) {
                    Ok(here) => here,
                    Err(_) => return,
                }
            }
        };
        let mut reader = Reader {
            session,
            here,
            begun: 0,
            left: 0..0,
            last: None,
            filling: false,
            waited: false,
            missed: false,
        };
        self.outcome.requests += 1;
        if object.tail_first {
            let layout = self.index.layout(here);
            let last = layout.blocks_in(object.bytes) - 1;
            let bytes = layout.bytes_of(last, Some(object.bytes));
            self.read(&mut reader, last..last + 1, bytes, session.at_ms);
        }
        let number = self.free.pop().unwrap_or(self.readers.len());
        if number == self.readers.len() {
            self.readers.push(reader);
        } else {
            self.readers[number] = reader;
        }
        self.step(number, session.at_ms);
    }

    /// All steps until a moment.
    fn advance(&mut self, now: u64) {
        while let Some(&Reverse((at, number))) = self.due.peek()
            && at <= now
        {
            self.due.pop();
            self.step(number, at);
        }
    }

    fn step(&mut self, number: usize, now: u64) {
        let mut reader = self.readers[number].clone();
        if reader.left.is_empty()
            && let Some(next) = reader.session.reads.get(reader.begun)
        {
            if reader.begun > 0 {
                self.stop_filling(&mut reader, now);
            }
            (reader.left, reader.begun) = (next.clone(), reader.begun + 1);
        }
        let left = reader.left.clone();
        if left.is_empty() && reader.last.is_some() {
            self.leave(number, reader, now);
            return;
        }
        let bytes = left.start..left.end.min(left.start.saturating_add(reader.session.bytes_per_minute));
        let layout = self.index.layout(reader.here);
        let mut blocks = layout.blocks_over(&bytes);
        blocks.end = blocks.end.max(blocks.start + 1);
        let blocks = self.within_segment(&reader, blocks);
        let end = layout.bytes_of(blocks.end - 1, None).end.min(left.end);
        self.read(&mut reader, blocks, bytes.start..end, now);
        reader.left.start = end;
        let took_ms = (end - bytes.start) as f64 / reader.session.bytes_per_minute as f64 * 60_000.0;
        self.readers[number] = reader;
        self.due.push(Reverse((now + took_ms as u64, number)));
    }

    /// The first blocks of a range that are in one segment.
    fn within_segment(&self, reader: &Reader<'_>, blocks: Range<BlockNumber>) -> Range<BlockNumber> {
        let layout = self.index.layout(reader.here);
        let all = layout.blocks_in(self.workload.objects()[reader.session.object as usize].bytes);
        let segment = layout.segment_of(blocks.start, Some(all));
        let span = layout.blocks_of(segment, Some(all));
        let end = if span.tail == Some(blocks.start) { blocks.start + 1 } else { span.body.end };
        blocks.start..blocks.end.min(end)
    }

    /// Reads blocks of one segment, and of them these bytes.
    fn read(&mut self, reader: &mut Reader<'_>, blocks: Range<BlockNumber>, bytes: Range<u64>, now: u64) {
        let layout = self.index.layout(reader.here);
        let first = reader.last.is_none();
        self.index.handle_use(reader.here, reader.last, blocks.start, now);
        reader.last = Some(blocks.end - 1);
        self.outcome.wanted_bytes += bytes.end - bytes.start;
        for block in blocks.clone() {
            let range = layout.bytes_of(block, None);
            reader.filling = !self.index.contains(reader.here, block);
            if reader.filling {
                self.outcome.origin_bytes += self.bytes_of(reader.session.object, block);
                reader.missed = true;
            } else {
                self.outcome.hit_bytes +=
                    range.end.min(bytes.end).saturating_sub(range.start.max(bytes.start));
                self.unread.remove(&(reader.session.object, block));
            }
            // The first block, and the index at the end, which is read before.
            let at_start = block == blocks.start && (first || block == 0);
            reader.waited |= at_start && reader.filling;
        }
        self.store(reader, blocks, now);
    }

    fn store(&mut self, reader: &Reader<'_>, blocks: Range<BlockNumber>, now: u64) {
        // Whether it was kept shows when it is read again.
        let _ = self.index.store(reader.here, blocks, now);
        while let Some(removed) = self.index.next_removed() {
            if let Removed::Block { key, block, .. } = removed {
                self.forget_unread(object_of(key), block);
            }
        }
    }

    /// A block goes that was fetched ahead: for nothing, if it was never read.
    fn forget_unread(&mut self, object: u32, block: BlockNumber) {
        if self.unread.remove(&(object, block)) {
            self.outcome.useless_bytes += self.bytes_of(object, block);
        }
    }

    /// The fill was ahead of its reader, who goes elsewhere.
    fn stop_filling(&mut self, reader: &mut Reader<'_>, now: u64) {
        let layout = self.index.layout(reader.here);
        if !reader.filling {
            return;
        }
        reader.filling = false;
        let all = layout.blocks_in(self.workload.objects()[reader.session.object as usize].bytes);
        let next = layout.block_of(reader.left.start.saturating_sub(1)) + 1;
        let mut end = all.min(next + AHEAD_BLOCKS);
        if self.completes && next < all {
            let segment = layout.segment_of(next - 1, Some(all));
            end = end.max(layout.blocks_of(segment, Some(all)).body.end);
        }
        let fetched: Vec<_> = (next..end).filter(|block| !self.index.contains(reader.here, *block)).collect();
        for &block in &fetched {
            self.outcome.origin_bytes += self.bytes_of(reader.session.object, block);
            self.unread.insert((reader.session.object, block));
        }
        if next < end {
            self.store(reader, next..end, now);
        }
        for block in fetched {
            if !self.index.contains(reader.here, block) {
                self.forget_unread(reader.session.object, block);
            }
        }
    }

    fn leave(&mut self, number: usize, mut reader: Reader<'a>, now: u64) {
        self.stop_filling(&mut reader, now);
        self.outcome.hits += u64::from(!reader.missed);
        self.outcome.delayed_starts += u64::from(reader.waited);
        if let Some(last) = reader.last {
            self.index.handle_leave(reader.here, last);
        }
        self.index.close(reader.here);
        while self.index.next_removed().is_some() {}
        self.free.push(number);
    }

    fn bytes_of(&self, object: u32, block: BlockNumber) -> u64 {
        let bytes = self.workload.objects()[object as usize].bytes;
        let range = self.scenario.layout().bytes_of(block, Some(bytes));
        range.end - range.start
    }

    fn finish(mut self, scenario: &CacheScenario, workload: &Workload) -> CacheOutcome {
        for (object, block) in std::mem::take(&mut self.unread) {
            self.outcome.useless_bytes += self.bytes_of(object, block);
        }
        CacheOutcome {
            workload: workload.name.clone(),
            policy: scenario.policy.to_string(),
            cache_bytes: scenario.bytes_max,
            cache_share: scenario.bytes_max as f64 / workload.bytes().max(1) as f64,
            ..self.outcome
        }
    }
}

/// Spreads the numbers of objects as a hash would.
fn key_of(object: u32) -> KeyHash {
    KeyHash(u128::from(object) << 64 | u128::from(u64::from(object).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

fn object_of(key: KeyHash) -> u32 {
    (key.0 >> 64) as u32
}

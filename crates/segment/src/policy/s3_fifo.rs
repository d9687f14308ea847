//! S3-FIFO: a small queue through which most segments pass once, a main queue, and keys of those that passed.
//!
//! ```text
//! new ──► small (10 %) ──used twice──► main (90 %) ──used──► main again
//!            │                ▲           │
//!            └─► ghosts ──────┘ comes     └─► gone
//! ```
//!
//! J. Yang and others, *FIFO Queues are All You Need for Cache Eviction*, SOSP 2023, algorithm 1. Queues are measured
//! in bytes, ghosts by the bytes that they had: as many as the main queue holds. Where there are too many objects, queues
//! are measured in segments: a small queue of many short ones has few bytes, and the main queue would make room for them.

use super::ghosts::Ghosts;
use super::interface::{Millis, Policy, Removal, SegmentPlace};
use super::list::{Links, List};
use crate::layout::SegmentNumber;
use crate::units::{UnitId, Units};

#[derive(Debug, Default)]
pub(super) struct S3Fifo {
    links: Links,
    small: Queue,
    main: Queue,
    /// By unit.
    states: Vec<State>,
    ghosts: Ghosts,
}

#[derive(Debug, Default)]
struct Queue {
    list: List,
    bytes: u64,
    segments: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    in_main: bool,
    /// Uses since it came, or since it passed the end of the main queue; 3 at most.
    uses: u8,
}

/// The published share of the small queue.
const SMALL_SHARE: f64 = 0.1;
const USES_MAX: u8 = 3;

impl Queue {
    fn push(&mut self, links: &mut Links, unit: UnitId) {
        self.list.push(links, unit.0);
        self.segments += 1;
    }

    fn remove(&mut self, links: &mut Links, unit: UnitId) {
        self.list.remove(links, unit.0);
        self.segments -= 1;
    }

    fn oldest(&self) -> Option<UnitId> {
        self.list.oldest().map(UnitId)
    }
}

impl S3Fifo {
    fn queue_of(&mut self, unit: UnitId) -> &mut Queue {
        if self.states[unit.at()].in_main { &mut self.main } else { &mut self.small }
    }

    fn move_to_main(&mut self, unit: UnitId, bytes: u64) {
        self.small.remove(&mut self.links, unit);
        self.small.bytes -= bytes;
        self.main.push(&mut self.links, unit);
        self.main.bytes += bytes;
        self.states[unit.at()] = State { in_main: true, uses: 0 };
    }

    /// The unit to evict, the queues being measured like this.
    fn victim_by(&mut self, units: &Units, size: impl Fn(&Queue) -> u64) -> Option<UnitId> {
        loop {
            let small_max = (size(&self.small) + size(&self.main)) as f64 * SMALL_SHARE;
            let (oldest_small, oldest_main) = (self.small.oldest(), self.main.oldest());
            let from_small = size(&self.small) as f64 > small_max || oldest_main.is_none();
            match (oldest_small.filter(|_| from_small), oldest_main) {
                (Some(unit), _) if self.states[unit.at()].uses > 1 => {
                    self.move_to_main(unit, units.bytes_of(unit));
                }
                (Some(unit), _) => return Some(unit),
                (None, Some(unit)) if self.states[unit.at()].uses > 0 => {
                    self.states[unit.at()].uses -= 1;
                    self.main.list.renew(&mut self.links, unit.0);
                }
                (None, Some(unit)) => return Some(unit),
                (None, None) => return oldest_small,
            }
        }
    }
}

impl Policy for S3Fifo {
    fn handle_use(&mut self, _: Millis, _: &SegmentPlace, unit: Option<UnitId>, _: Option<SegmentNumber>) {
        if let Some(unit) = unit {
            let uses = &mut self.states[unit.at()].uses;
            *uses = USES_MAX.min(*uses + 1);
        }
    }

    fn admits(&mut self, _: Millis, _: &SegmentPlace, _: &Units) -> bool {
        true
    }

    fn handle_inserted(&mut self, _: Millis, unit: UnitId, place: &SegmentPlace) {
        if self.states.len() <= unit.at() {
            self.states.resize(unit.at() + 1, State::default());
        }
        let in_main = self.ghosts.contains(place);
        self.states[unit.at()] = State { in_main, uses: 0 };
        let queue = if in_main { &mut self.main } else { &mut self.small };
        queue.push(&mut self.links, unit);
    }

    fn handle_resized(&mut self, unit: UnitId, before: u64, after: u64) {
        let queue = self.queue_of(unit);
        queue.bytes = queue.bytes - before + after;
    }

    fn handle_removed(&mut self, unit: UnitId, place: &SegmentPlace, why: Removal) {
        let in_main = self.states[unit.at()].in_main;
        let queue = if in_main { &mut self.main } else { &mut self.small };
        queue.remove(&mut self.links, unit);
        if why == Removal::Evicted && !in_main {
            let bytes_max = ((self.small.bytes + self.main.bytes) as f64 * (1.0 - SMALL_SHARE)) as u64;
            self.ghosts.add(place, bytes_max);
        }
    }

    fn victim(&mut self, _: Millis, units: &Units) -> Option<UnitId> {
        self.victim_by(units, |queue| queue.bytes)
    }

    fn victim_by_number(&mut self, _: Millis, units: &Units) -> Option<UnitId> {
        self.victim_by(units, |queue| queue.segments)
    }

    fn heap_bytes(&self) -> usize {
        self.links.heap_bytes() + self.states.capacity() * size_of::<State>() + self.ghosts.heap_bytes()
    }
}

//! Reach: keeps the bytes that will be asked for most often.
//!
//! ```text
//! value of a segment, in uses per millisecond =
//!     starts per millisecond × share of the readers who reach the segment
//!   + for each reader on its way there: share of those who get so far / time that it needs
//! ```
//!
//! The first segment of an object of several counts eightfold: readers wait for it. Everything is estimated from what readers do. Starts: how many there were lately, and how long it is silent since. The
//! share: the object's own readers, and as long as they are few, those of all objects. The time: how fast the object's
//! readers read. An object of one segment has starts only.
//!
//! The victim is the least of some units that are drawn at random, and loses its last blocks first. What would displace
//! it has to be worth more. Drawing needs no order of units, whose values change with time alone (as in A. Blankstein and
//! others, *Hyperbolic Caching*, ATC 2017); readers on their way are from interval caching (A. Dan and D. Sitaram,
//! 1996), the share from K. Wu's distance.

mod history;
mod stages;
mod turnover;
mod viewing;

use self::history::{Histories, HistoryId};
use self::stages::AllReaders;
use self::turnover::Turnover;
use super::interface::{Aim, Millis, Policy, Removal, SegmentPlace};
use crate::layout::{BlockNumber, SegmentNumber};
use crate::units::{UnitId, Units};

#[derive(Debug)]
pub(super) struct Reach {
    aim: Aim,
    histories: Histories,
    /// By unit.
    kept: Vec<Kept>,
    all: AllReaders,
    turnover: Turnover,
    random: fastrand::Rng,
    /// The least of those that were drawn last.
    least: Option<UnitId>,
}

/// A segment that is or might be here.
#[derive(Clone, Copy, Debug, Default)]
struct Kept {
    history: HistoryId,
    first_block: BlockNumber,
    blocks: u32,
    /// Of the whole segment: what is used to compare, not to count.
    bytes: f32,
}

/// Readers wait for the first segment, and for no other one that is fetched ahead. With this weight, and a cache of 5 %, a
/// third as many wait, and the origin sends no more bytes (docs/decisions/0041-what-is-asked-for-most-often.md).
const PREFIX_WEIGHT: f64 = 8.0;
/// Units that are drawn for a victim: the least of them is among the last 3 % of all, mostly.
const DRAWN: usize = 32;
/// Slots that are looked at for them, since some are empty.
const SLOTS_TRIED: usize = 4 * DRAWN;

impl Reach {
    pub(super) fn new(aim: Aim, seed: u64) -> Self {
        Self {
            aim,
            histories: Histories::default(),
            kept: Vec::new(),
            all: AllReaders::default(),
            turnover: Turnover::default(),
            random: fastrand::Rng::with_seed(seed),
            least: None,
        }
    }

    fn value(&self, now: Millis, segment: &Kept) -> f64 {
        let Some(history) = self.histories.get(segment.history) else { return 0.0 };
        let mut uses = history.starts_per_ms(now, self.turnover.millis(now));
        if let Some(viewing) = &history.viewing {
            uses *= f64::from(viewing.share(segment.first_block, &self.all));
            uses += f64::from(viewing.on_their_way(now, segment.first_block, segment.blocks, &self.all));
            if segment.first_block == 0 {
                uses *= PREFIX_WEIGHT;
            }
        }
        match self.aim {
            Aim::Bytes => uses,
            Aim::Hits => uses / f64::from(segment.bytes.max(1.0)),
        }
    }

    /// The unit of the least value among some that are drawn, and the least of those that were drawn last time.
    fn draw(&mut self, now: Millis, units: &Units) -> Option<(UnitId, f64)> {
        if units.is_empty() {
            return None;
        }
        let mut least = self.least.map(|unit| (unit, self.value(now, &self.kept[unit.at()])));
        let mut drawn = 0;
        for _ in 0..SLOTS_TRIED {
            let Some(unit) = units.in_slot(self.random.usize(..units.slots())) else { continue };
            let value = self.value(now, &self.kept[unit.at()]);
            if least.is_none_or(|(_, least)| value < least) {
                least = Some((unit, value));
            }
            drawn += 1;
            if drawn == DRAWN {
                break;
            }
        }
        // Nearly all slots are empty after a purge of nearly everything.
        let least = least.or_else(|| {
            let first = (0..units.slots()).find_map(|slot| units.in_slot(slot))?;
            Some((first, self.value(now, &self.kept[first.at()])))
        });
        self.least = least.map(|(unit, _)| unit);
        least
    }

    fn kept_of(&mut self, place: &SegmentPlace) -> Kept {
        Kept {
            history: self.histories.of_object(place.key),
            first_block: place.first_block,
            blocks: place.blocks,
            bytes: place.bytes as f32,
        }
    }
}

impl Policy for Reach {
    fn handle_room(&mut self, bytes_max: u64) {
        self.turnover.set_bytes_max(bytes_max);
    }

    fn handle_use(
        &mut self,
        now: Millis,
        place: &SegmentPlace,
        unit: Option<UnitId>,
        from: Option<SegmentNumber>,
    ) {
        if unit.is_none() {
            self.turnover.handle_miss(now, place.bytes);
        }
        if from.is_none() {
            self.histories.handle_start(now, place);
            self.histories.forget_some(now, &mut self.random);
        }
        if place.is_only {
            return;
        }
        let history = self.histories.of_object(place.key);
        if let Some(viewing) = self.histories.viewing(history) {
            viewing.handle_use(now, place, from, &mut self.all);
        }
    }

    fn handle_pause(&mut self, place: &SegmentPlace) {
        if let Some(viewing) = self.histories.viewing_of(place.key) {
            viewing.handle_pause(place.segment);
        }
    }

    fn handle_leave(&mut self, place: &SegmentPlace) {
        if let Some(viewing) = self.histories.viewing_of(place.key) {
            viewing.handle_leave(place.segment);
        }
    }

    fn handle_gone(&mut self, key: u64) {
        if let Some(viewing) = self.histories.viewing_of(key) {
            viewing.forget_readers();
        }
    }

    fn admits(&mut self, now: Millis, place: &SegmentPlace, units: &Units) -> bool {
        let Some((_, least)) = self.draw(now, units) else { return true };
        let segment = self.kept_of(place);
        self.value(now, &segment) > least
    }

    fn handle_inserted(&mut self, _: Millis, unit: UnitId, place: &SegmentPlace) {
        if self.kept.len() <= unit.at() {
            self.kept.resize(unit.at() + 1, Kept::default());
        }
        self.kept[unit.at()] = self.kept_of(place);
        self.histories.handle_unit_added(self.kept[unit.at()].history);
    }

    fn handle_resized(&mut self, _: UnitId, _: u64, _: u64) {}

    fn handle_removed(&mut self, unit: UnitId, _: &SegmentPlace, _: Removal) {
        self.least = self.least.filter(|least| *least != unit);
        self.histories.handle_unit_removed(self.kept[unit.at()].history);
    }

    fn victim(&mut self, now: Millis, units: &Units) -> Option<UnitId> {
        // What was drawn for `admits` serves, until it is gone.
        self.least.or_else(|| self.draw(now, units).map(|(unit, _)| unit))
    }

    fn peels(&self) -> bool {
        true
    }

    fn heap_bytes(&self) -> usize {
        self.histories.heap_bytes() + self.kept.capacity() * size_of::<Kept>()
    }
}

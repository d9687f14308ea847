//! What is remembered of objects: how often readers start with them. Also of some that are not here, so that their second
//! start counts.

use hashbrown::HashTable;

use super::viewing::Viewing;
use crate::policy::interface::{Millis, SegmentPlace};

/// The number of a history.
pub(super) type HistoryId = u32;

#[derive(Debug)]
pub(super) struct History {
    key: u64,
    /// When a reader last started.
    last: Millis,
    /// Starts, and the time from the first one to the last; earlier ones fade.
    starts: f32,
    span_ms: f32,
    /// Units that are here.
    pub(super) units: u32,
    /// Of objects with several segments.
    pub(super) viewing: Option<Box<Viewing>>,
}

/// How much of earlier starts remains with each one: about the last ten count.
const FADING: f32 = 0.9;
/// A millisecond of silence after the last start counts as much as so many between starts: an object that was popular
/// once has to make room for those that are now.
const SILENCE_WEIGHT: f64 = 8.0;
/// What is not known about newcomers: as if they had been silent for so many turnovers of the cache before they came.
/// With fewer, objects that never come again displace others; from 8 to 1000 the figures differ by a percent.
const NEWCOMER_TURNOVERS: f64 = 16.0;

impl History {
    fn handle_start(&mut self, now: Millis) {
        if self.starts > 0.0 {
            self.span_ms = self.span_ms * FADING + now.saturating_sub(self.last) as f32;
        }
        self.starts = self.starts * FADING + 1.0;
        self.last = now;
    }

    /// An estimate of starts per millisecond.
    pub(super) fn starts_per_ms(&self, now: Millis, turnover_ms: f64) -> f64 {
        let silence_ms = now.saturating_sub(self.last) as f64;
        let time_ms =
            f64::from(self.span_ms) + SILENCE_WEIGHT * silence_ms + NEWCOMER_TURNOVERS * turnover_ms;
        f64::from(self.starts) / time_ms
    }

    fn is_forgettable(&self) -> bool {
        self.units == 0 && self.viewing.as_ref().is_none_or(|viewing| viewing.is_idle())
    }
}

/// All histories.
#[derive(Debug, Default)]
pub(super) struct Histories {
    slots: Vec<Option<History>>,
    free: Vec<HistoryId>,
    by_key: HashTable<HistoryId>,
    /// Histories of objects that have units.
    here: usize,
}

/// Histories of objects that are not here: as many as of those that are, and these.
const FORMER_MIN: usize = 4096;
/// Of so many that are drawn the one with the fewest starts is forgotten.
const DRAWN: usize = 16;

impl Histories {
    pub(super) fn find(&self, key: u64) -> Option<HistoryId> {
        let is_it =
            |id: &HistoryId| self.slots[*id as usize].as_ref().is_some_and(|history| history.key == key);
        self.by_key.find(key, is_it).copied()
    }

    pub(super) fn get(&self, id: HistoryId) -> Option<&History> {
        self.slots.get(id as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, id: HistoryId) -> Option<&mut History> {
        self.slots.get_mut(id as usize)?.as_mut()
    }

    /// A reader starts with an object.
    pub(super) fn handle_start(&mut self, now: Millis, place: &SegmentPlace) {
        let id = self.of_object(place.key);
        if let Some(history) = self.get_mut(id) {
            history.handle_start(now);
        }
    }

    /// The history of an object, a new one if there is none.
    pub(super) fn of_object(&mut self, key: u64) -> HistoryId {
        if let Some(id) = self.find(key) {
            return id;
        }
        let history = History { key, last: 0, starts: 0.0, span_ms: 0.0, units: 0, viewing: None };
        let id = self.free.pop().unwrap_or(self.slots.len() as HistoryId);
        if id as usize == self.slots.len() {
            self.slots.push(Some(history));
        } else {
            self.slots[id as usize] = Some(history);
        }
        let slots = &self.slots;
        let rehash = |id: &HistoryId| slots[*id as usize].as_ref().map_or(0, |history| history.key);
        self.by_key.insert_unique(key, id, rehash);
        id
    }

    pub(super) fn handle_unit_added(&mut self, id: HistoryId) {
        if let Some(history) = self.get_mut(id) {
            history.units += 1;
            self.here += usize::from(self.get(id).is_some_and(|history| history.units == 1));
        }
    }

    pub(super) fn handle_unit_removed(&mut self, id: HistoryId) {
        if let Some(history) = self.get_mut(id) {
            history.units -= 1;
            self.here -= usize::from(self.get(id).is_some_and(|history| history.units == 0));
        }
    }

    /// Forgets an object that is not here, if too many are remembered.
    pub(super) fn forget_some(&mut self, now: Millis, random: &mut fastrand::Rng) {
        while self.by_key.len() > 2 * self.here + FORMER_MIN {
            let drawn = (0..DRAWN).filter_map(|_| {
                let id = random.usize(..self.slots.len()) as HistoryId;
                let history = self.get(id).filter(|history| history.is_forgettable())?;
                Some((id, history.key, history.starts_per_ms(now, 1.0)))
            });
            // More than half can be forgotten, so that one is drawn; else it will be next time.
            let Some((id, key, _)) = drawn.min_by(|one, other| one.2.total_cmp(&other.2)) else { return };
            if let Ok(entry) = self.by_key.find_entry(key, |other| *other == id) {
                entry.remove();
            }
            self.slots[id as usize] = None;
            self.free.push(id);
        }
    }

    /// The readers of an object with several segments.
    pub(super) fn viewing(&mut self, id: HistoryId) -> Option<&mut Viewing> {
        let history = self.get_mut(id)?;
        Some(history.viewing.get_or_insert_with(|| Box::new(Viewing::new())))
    }

    /// The readers of the object of a key, if it has several segments and is known.
    pub(super) fn viewing_of(&mut self, key: u64) -> Option<&mut Viewing> {
        let id = self.find(key)?;
        self.get_mut(id)?.viewing.as_deref_mut()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let viewings = self.slots.iter().flatten().filter_map(|history| history.viewing.as_ref());
        self.slots.capacity() * size_of::<Option<History>>()
            + self.free.capacity() * size_of::<HistoryId>()
            + self.by_key.allocation_size()
            + viewings.map(|viewing| viewing.heap_bytes()).sum::<usize>()
    }
}

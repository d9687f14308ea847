//! First segments always, later ones by distance and recency.
//!
//! K. Wu, P. Yu and J. Wolf, *Segment-Based Proxy Caching of Multimedia Streams*, WWW10, 2001. The first blocks of each
//! object are always admitted, to a share of the cache of their own with an LRU list. A later segment is admitted from the
//! object's second request on, if it is worth more than the one that it would displace. Its value is `1 / ((T - T') * i)`:
//! `T - T'` is the time since the object was requested last, `i` the segment's number. The victim is the last segment of
//! an object near the end of the list of objects, so one eviction frees about half of what is there of an object.

use std::collections::BTreeSet;

use super::interface::{Millis, Policy, Removal, SegmentPlace};
use super::list::{Links, List};
use crate::layout::{BlockNumber, SegmentNumber};
use crate::units::{ObjectId, UnitId, Units};

/// The first eight seconds at 2 Mbit/s in blocks of 256 KiB.
const PREFIX_BLOCKS: BlockNumber = 8;
/// The share of the cache that first segments have to themselves.
const PREFIX_SHARE: f64 = 0.1;
/// How many objects at the end of the list compete for the least value.
const CANDIDATES: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Wu {
    prefix_bytes_max: u64,
    prefix_bytes: u64,
    unit_links: Links,
    /// First segments, by use.
    prefixes: List,
    object_links: Links,
    /// Objects with later segments, by request.
    objects: List,
    /// Later segments that are here.
    later: BTreeSet<(ObjectId, SegmentNumber)>,
    /// By unit.
    is_prefix: Vec<bool>,
    /// By object.
    requests: Vec<Requests>,
}

/// When an object was requested.
#[derive(Clone, Copy, Debug, Default)]
struct Requests {
    /// The key of the object, since numbers are reused.
    key: u64,
    last: Option<Millis>,
    before_last: Option<Millis>,
}

impl Wu {
    fn last_segment(&self, object: ObjectId) -> Option<SegmentNumber> {
        self.later.range((object, 0)..=(object, SegmentNumber::MAX)).next_back().map(|(_, segment)| *segment)
    }

    /// The least valuable last segment, and its value.
    fn weakest(&self, now: Millis) -> Option<(ObjectId, SegmentNumber, f64)> {
        let value = |number: u32| {
            let object = ObjectId(number);
            let segment = self.last_segment(object)?;
            Some((object, segment, value(now, self.requests[object.at()].last, segment)))
        };
        let candidates = self.objects.oldest_first(&self.object_links).take(CANDIDATES).filter_map(value);
        candidates.min_by(|(.., one), (.., other)| one.total_cmp(other))
    }
}

/// `1 / ((T - T') * i)`; 0 for what was never requested before.
fn value(now: Millis, last: Option<Millis>, segment: SegmentNumber) -> f64 {
    let since = |last| (now.saturating_sub(last).max(1) * u64::from(segment.max(1))) as f64;
    last.map_or(0.0, |last| 1.0 / since(last))
}

fn is_prefix(place: &SegmentPlace) -> bool {
    place.first_block < PREFIX_BLOCKS
}

impl Policy for Wu {
    fn handle_room(&mut self, bytes_max: u64) {
        self.prefix_bytes_max = (bytes_max as f64 * PREFIX_SHARE) as u64;
    }

    fn handle_use(
        &mut self,
        now: Millis,
        place: &SegmentPlace,
        unit: Option<UnitId>,
        from: Option<SegmentNumber>,
    ) {
        let first = from.is_none();
        let at = place.object.at();
        if self.requests.len() <= at {
            self.requests.resize(at + 1, Requests::default());
        }
        let requests = &mut self.requests[at];
        if requests.key != place.key {
            *requests = Requests { key: place.key, ..Requests::default() };
        }
        if first {
            requests.before_last = requests.last.replace(now);
            if self.last_segment(place.object).is_some() {
                self.objects.renew(&mut self.object_links, place.object.0);
            }
        }
        if let Some(unit) = unit.filter(|_| is_prefix(place)) {
            self.prefixes.renew(&mut self.unit_links, unit.0);
        }
    }

    fn admits(&mut self, now: Millis, place: &SegmentPlace, _: &Units) -> bool {
        let before = || self.requests.get(place.object.at()).and_then(|requests| requests.before_last);
        let ours = || value(now, before(), place.segment);
        let theirs = || self.weakest(now).map_or(0.0, |(.., value)| value);
        is_prefix(place) || ours() > theirs()
    }

    fn handle_inserted(&mut self, _: Millis, unit: UnitId, place: &SegmentPlace) {
        if self.is_prefix.len() <= unit.at() {
            self.is_prefix.resize(unit.at() + 1, false);
        }
        self.is_prefix[unit.at()] = is_prefix(place);
        if is_prefix(place) {
            self.prefixes.push(&mut self.unit_links, unit.0);
            return;
        }
        if self.last_segment(place.object).is_none() {
            self.objects.push(&mut self.object_links, place.object.0);
        }
        self.later.insert((place.object, place.segment));
    }

    fn handle_resized(&mut self, unit: UnitId, before: u64, after: u64) {
        if self.is_prefix[unit.at()] {
            self.prefix_bytes = self.prefix_bytes - before + after;
        }
    }

    fn handle_removed(&mut self, unit: UnitId, place: &SegmentPlace, _: Removal) {
        if self.is_prefix[unit.at()] {
            self.prefixes.remove(&mut self.unit_links, unit.0);
            return;
        }
        self.later.remove(&(place.object, place.segment));
        if self.last_segment(place.object).is_none() {
            self.objects.remove(&mut self.object_links, place.object.0);
        }
    }

    fn victim(&mut self, now: Millis, units: &Units) -> Option<UnitId> {
        let oldest_prefix = || self.prefixes.oldest().map(UnitId);
        let weakest = || self.weakest(now).and_then(|(object, segment, _)| units.find(object, segment));
        if self.prefix_bytes > self.prefix_bytes_max {
            return oldest_prefix();
        }
        weakest().or_else(oldest_prefix)
    }

    fn heap_bytes(&self) -> usize {
        self.unit_links.heap_bytes()
            + self.object_links.heap_bytes()
            + self.later.len() * size_of::<(ObjectId, SegmentNumber)>() * 3 / 2
            + self.is_prefix.capacity()
            + self.requests.capacity() * size_of::<Requests>()
    }
}

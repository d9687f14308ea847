//! Greedy-Dual-Size: the value of a segment is `L + 1 / size` at its last use, `L` being the value of the last victim.
//!
//! Equal costs give the best hit ratio (Cao and Irani, *Cost-Aware WWW Proxy Caching Algorithms*, USENIX ITS 1997,
//! section 4); with costs in proportion to the size it would be LRU. The size is that of the whole segment, so that a
//! segment does not change its value while it is filled.

use std::collections::BTreeSet;

use super::interface::{Millis, Policy, Removal, SegmentPlace};
use crate::layout::SegmentNumber;
use crate::units::{UnitId, Units};

/// One, as a fixed-point number: distinguishes segments of a gigabyte, and with such of a kilobyte `L` lasts for 2^34
/// evictions.
const ONE: u64 = 1 << 44;

#[derive(Debug, Default)]
pub(super) struct Gds {
    /// By unit; of those that are gone the last value.
    values: Vec<u64>,
    order: BTreeSet<(u64, UnitId)>,
    /// `L` of the paper.
    inflation: u64,
}

impl Gds {
    fn value_of_use(&self, bytes: u64) -> u64 {
        self.inflation.saturating_add(ONE / bytes.max(1))
    }

    fn give(&mut self, unit: UnitId, value: u64) {
        if self.values.len() <= unit.at() {
            self.values.resize(unit.at() + 1, 0);
        }
        self.values[unit.at()] = value;
        self.order.insert((value, unit));
    }
}

impl Policy for Gds {
    fn handle_use(
        &mut self,
        _: Millis,
        place: &SegmentPlace,
        unit: Option<UnitId>,
        _: Option<SegmentNumber>,
    ) {
        if let Some(unit) = unit {
            self.order.remove(&(self.values[unit.at()], unit));
            self.give(unit, self.value_of_use(place.bytes));
        }
    }

    fn admits(&mut self, _: Millis, _: &SegmentPlace, _: &Units) -> bool {
        true
    }

    fn handle_inserted(&mut self, _: Millis, unit: UnitId, place: &SegmentPlace) {
        self.give(unit, self.value_of_use(place.bytes));
    }

    fn handle_resized(&mut self, _: UnitId, _: u64, _: u64) {}

    fn handle_removed(&mut self, unit: UnitId, _: &SegmentPlace, why: Removal) {
        let value = self.values[unit.at()];
        self.order.remove(&(value, unit));
        if why == Removal::Evicted {
            self.inflation = self.inflation.max(value);
        }
    }

    fn victim(&mut self, _: Millis, _: &Units) -> Option<UnitId> {
        self.order.first().map(|(_, unit)| *unit)
    }

    fn heap_bytes(&self) -> usize {
        // A B-tree's nodes are two thirds full on average.
        self.values.capacity() * size_of::<u64>() + self.order.len() * size_of::<(u64, UnitId)>() * 3 / 2
    }
}

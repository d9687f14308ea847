//! Least recently used: the segment that readers have not reached for the longest time goes first.

use super::interface::{Millis, Policy, Removal, SegmentPlace};
use super::list::{Links, List};
use crate::layout::SegmentNumber;
use crate::units::{UnitId, Units};

#[derive(Debug, Default)]
pub(super) struct Lru {
    links: Links,
    list: List,
}

impl Policy for Lru {
    fn handle_use(&mut self, _: Millis, _: &SegmentPlace, unit: Option<UnitId>, _: Option<SegmentNumber>) {
        if let Some(unit) = unit {
            self.list.renew(&mut self.links, unit.0);
        }
    }

    fn admits(&mut self, _: Millis, _: &SegmentPlace, _: &Units) -> bool {
        true
    }

    fn handle_inserted(&mut self, _: Millis, unit: UnitId, _: &SegmentPlace) {
        self.list.push(&mut self.links, unit.0);
    }

    fn handle_resized(&mut self, _: UnitId, _: u64, _: u64) {}

    fn handle_removed(&mut self, unit: UnitId, _: &SegmentPlace, _: Removal) {
        self.list.remove(&mut self.links, unit.0);
    }

    fn victim(&mut self, _: Millis, _: &Units) -> Option<UnitId> {
        self.list.oldest().map(UnitId)
    }

    fn heap_bytes(&self) -> usize {
        self.links.heap_bytes()
    }
}

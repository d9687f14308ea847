//! A turn of a contender under a load, and what a cell tells of it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::effort::Effort;
use super::record::Outcome;
use crate::quantity::Quantity;

/// What a cell tells.
pub(super) type Values = BTreeMap<Quantity, f64>;

/// A cell that was measured, and whether other processes took part of its CPUs.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) outcome: Outcome,
    pub(super) disturbed: bool,
}

/// When a cell is measured, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) number: usize,
    /// Where in the script of sessions it begins, as a share of the script: each load of a server in a part of its own, whose
    /// files no earlier one has brought into memory.
    pub(super) place: f64,
    pub(super) duration: Duration,
    /// The first of a server that has just been started: memory of idle connections shows once only, as servers seldom
    /// return it.
    pub(super) is_first: bool,
    pub(super) effort: Effort,
}

impl Measured {
    /// This cell with the idle connections' memory as an earlier try found it.
    pub(super) fn with_memory_of(mut self, earlier: Self) -> Self {
        if let (Outcome::Measured(now), Outcome::Measured(earlier)) = (&mut self.outcome, earlier.outcome) {
            now.extend(earlier.get_key_value(&Quantity::IdleBytes).map(|(name, value)| (*name, *value)));
        }
        self
    }
}

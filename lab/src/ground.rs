//! What procedures have in common: where they run and for how long, and what they find.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use crate::quantity::Quantity;

/// Where a procedure runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ground<'a> {
    /// The command of this project.
    pub(crate) baton: &'a Path,
    /// For files, configurations and logs.
    pub(crate) folder: &'a Path,
    pub(crate) rounds: usize,
    /// Of one measurement.
    pub(crate) duration: Duration,
    /// Just enough to see that it works.
    pub(crate) is_tiny: bool,
}

impl Ground<'_> {
    /// All of a list, or just so many of it.
    pub(crate) fn some<'l, T>(&self, all: &'l [T], few: usize) -> &'l [T] {
        if self.is_tiny { &all[..few.min(all.len())] } else { all }
    }
}

/// What a procedure has found under one load, of one contender, in one round.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) load: String,
    pub(crate) contender: String,
    pub(crate) round: usize,
    pub(crate) values: Result<BTreeMap<Quantity, f64>>,
}

/// Takes each finding as soon as there is one.
pub(crate) type Keep<'a> = &'a mut dyn FnMut(Finding) -> Result<()>;

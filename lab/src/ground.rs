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

/// Takes what a procedure has found under a load, of a contender, in a round, as soon as it is there.
pub(crate) type Keep<'a> =
    &'a mut dyn FnMut(&str, &str, usize, Result<BTreeMap<Quantity, f64>>) -> Result<()>;

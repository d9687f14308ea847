//! What a meter is: begun over processes, it ends with readings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use crate::quantity::Quantity;
use crate::rig::processes;
use crate::servers::RunningServer;

/// What is watched.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    /// Processes; their children count, too.
    pub processes: Vec<i32>,
    /// The control groups that they are in.
    pub groups: Vec<PathBuf>,
    /// The CPUs that they may use.
    pub cpus: Vec<usize>,
    /// For files of the meters.
    pub folder: PathBuf,
}

/// What a meter says.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Of which quantity.
    pub quantity: Quantity,
    /// What it is to be divided by.
    pub per: Per,
    /// The value, or why this machine or this server has none.
    pub value: Result<f64, String>,
}

/// What a reading is divided by, so that cells can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// Requests.
    Request,
    /// Requests, and seconds become microseconds.
    RequestUs,
    /// Seconds of the measurement.
    Second,
    /// Nothing: it is a state or a share.
    Nothing,
}

impl Per {
    /// The value for each of them.
    pub(crate) fn divide(self, value: f64, requests: u64, span: Duration) -> f64 {
        match self {
            Self::Request => value / requests.max(1) as f64,
            Self::RequestUs => value * 1e6 / requests.max(1) as f64,
            Self::Second => value / span.as_secs_f64(),
            Self::Nothing => value,
        }
    }
}

/// A meter that has begun.
pub(super) trait Meter {
    /// What happened since, in the order of [`MeterName::readings`](super::MeterName::readings).
    fn end(self: Box<Self>, watched: &Watched) -> Result<Vec<f64>>;
}

/// What the kernel has counted so far of each process or thread, or under one number of all.
pub(super) type Counts<const COUNT: usize> = BTreeMap<i32, [f64; COUNT]>;

/// A meter of counts that the kernel keeps anyway: by how much they grow.
pub(super) struct Growth<const COUNT: usize> {
    read: fn(&Watched) -> Result<Counts<COUNT>>,
    before: Counts<COUNT>,
    /// From sums to readings.
    finish: fn([f64; COUNT]) -> Vec<f64>,
}

impl<const COUNT: usize> Growth<COUNT> {
    pub(super) fn begin(
        watched: &Watched,
        read: fn(&Watched) -> Result<Counts<COUNT>>,
        finish: fn([f64; COUNT]) -> Vec<f64>,
    ) -> Result<Box<dyn Meter>> {
        Ok(Box::new(Self { read, before: read(watched)?, finish }))
    }
}

impl<const COUNT: usize> Meter for Growth<COUNT> {
    fn end(self: Box<Self>, watched: &Watched) -> Result<Vec<f64>> {
        let mut sums = [0.0; COUNT];
        for (whose, now) in (self.read)(watched)? {
            let before = self.before.get(&whose).copied().unwrap_or([0.0; COUNT]);
            (0..COUNT).for_each(|at| sums[at] += (now[at] - before[at]).max(0.0));
        }
        Ok((self.finish)(sums))
    }
}

/// A meter of what is so at the end.
pub(super) struct State(pub(super) fn(&Watched) -> Result<f64>);

impl Meter for State {
    fn end(self: Box<Self>, watched: &Watched) -> Result<Vec<f64>> {
        Ok(vec![(self.0)(watched)?])
    }
}

impl Watched {
    /// A server with its processes.
    pub fn of(server: &RunningServer) -> Self {
        Self {
            processes: server.processes(),
            groups: server.groups.clone(),
            cpus: server.cpus.clone(),
            folder: server.folder.clone(),
        }
    }

    /// All processes that live now, children included.
    pub(super) fn tree(&self) -> BTreeSet<i32> {
        self.processes.iter().flat_map(|pid| processes::tree(*pid)).collect()
    }

    /// Their threads, as process and thread.
    pub(super) fn threads(&self) -> Vec<(i32, i32)> {
        let mut threads = Vec::new();
        for pid in self.tree() {
            let entries = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
            let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
            threads.extend(numbers.map(|thread| (pid, thread)));
        }
        threads
    }
}

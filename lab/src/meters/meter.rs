//! What a meter is: begun over processes, it ends with readings.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Result;
use serde::Serialize;

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
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reading {
    /// `user_s`, `system_calls`: unique among all meters.
    pub name: &'static str,
    /// `s`, `bytes`, `%`, or nothing for a count.
    pub unit: &'static str,
    /// The value, or why this machine or this server has none.
    pub value: Result<f64, String>,
}

/// A meter that has begun.
pub(super) trait Meter {
    /// What happened since.
    fn end(self: Box<Self>, watched: &Watched) -> Result<Vec<Reading>>;
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

/// Readings of this table, in its order.
pub(super) fn readings<const N: usize>(
    table: &'static [(&'static str, &'static str)],
    values: [f64; N],
) -> Vec<Reading> {
    debug_assert_eq!(table.len(), N);
    table.iter().zip(values).map(|((name, unit), value)| Reading { name, unit, value: Ok(value) }).collect()
}

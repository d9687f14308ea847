//! What a comparison of policies is made of.

use std::path::PathBuf;
use std::time::Duration;

use super::content::TraceKind;

/// What to compare, under which conditions and how long.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    /// The command of this project: all nodes, and the front-ends with policies.
    pub baton: PathBuf,
    /// Policies of our front-end.
    pub policies: Vec<String>,
    /// Ways of our front-end to the nodes: `relay`, `handoff`.
    pub ways: Vec<String>,
    /// Other front-ends: `haproxy`, `nginx`.
    pub others: Vec<String>,
    /// What clients ask for; the last line of the result is about the last of them.
    pub traces: Vec<TraceKind>,
    /// How often each front-end is measured.
    pub rounds: usize,
    /// How long requests come before a measurement.
    pub warm_up: Duration,
    /// How long each measurement takes.
    pub duration: Duration,
    /// The cluster.
    pub cluster: ClusterBounds,
    /// Where mount points, configurations and logs are put.
    pub folder: PathBuf,
}

/// A cluster and its load.
#[derive(Clone, Copy, Debug)]
pub struct ClusterBounds {
    /// How many nodes there are.
    pub nodes: usize,
    /// The part of a CPU that each node has.
    pub node_cpus: f64,
    /// Memory of each, page cache included, in MiB.
    pub memory_mib: u64,
    /// Rate at which each may read from its disk, in MB (10^6) per second.
    pub disk_mb_per_s: f64,
    /// How far the kernel reads ahead, in KiB.
    pub read_ahead_kb: u32,
    /// How much content there is, in MB (10^6). It takes so much memory of the machine.
    pub content_mb: u64,
    /// Connections of clients.
    pub connections: usize,
}

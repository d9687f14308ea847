//! What a comparison of policies is made of.

use std::path::PathBuf;
use std::time::Duration;

/// What to compare, under which conditions and how long.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    /// The command of this project: all nodes, and the front-ends with policies.
    pub baton: PathBuf,
    /// Policies of our front-end.
    pub policies: Vec<String>,
    /// Other front-ends: `haproxy`, `nginx`.
    pub others: Vec<String>,
    /// How many nodes there are.
    pub nodes: usize,
    /// Memory of each, page cache included, in MiB.
    pub memory_mib: u64,
    /// Rate at which each may read from its disk, in MB (10^6) per second.
    pub disk_mb_per_s: f64,
    /// How far the kernel reads ahead, in KiB.
    pub read_ahead_kb: u32,
    /// How many directories of 5.1 MB the content has.
    pub directories: usize,
    /// Connections of clients.
    pub connections: usize,
    /// How often each front-end is measured.
    pub rounds: usize,
    /// How long requests come before a measurement.
    pub warm_up: Duration,
    /// How long each measurement takes.
    pub duration: Duration,
    /// Where mount points, configurations and logs are put.
    pub folder: PathBuf,
}

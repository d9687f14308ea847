//! What a comparison of policies is made of.

use serde::Deserialize;

use super::content::TraceKind;

/// What to compare.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClusterSettings {
    /// Policies of our front-end.
    pub(super) policies: Vec<String>,
    /// Ways of our front-end to the nodes: `relay`, `handoff`.
    pub(super) ways: Vec<String>,
    /// Other front-ends: `haproxy`, `nginx`.
    pub(super) others: Vec<String>,
    /// What clients ask for: `mix`, `zipf:1.0`.
    pub(super) traces: Vec<TraceKind>,
    /// How long requests come before a measurement.
    pub(super) warm_up_seconds: f64,
    /// The cluster.
    pub(super) cluster: ClusterBounds,
}

/// A cluster and its load.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClusterBounds {
    /// How many nodes there are.
    pub(super) nodes: usize,
    /// The part of a CPU that each node has.
    pub(super) node_cpus: f64,
    /// Memory of each, page cache included, in MiB.
    pub(super) memory_mib: u64,
    /// Rate at which each may read from its disk, in MB (10^6) per second.
    pub(super) disk_mb_per_s: f64,
    /// How far the kernel reads ahead, in KiB.
    pub(super) read_ahead_kb: u32,
    /// How much content there is, in MB (10^6). It takes so much memory of the machine.
    pub(super) content_mb: u64,
    /// Connections of clients.
    pub(super) connections: usize,
}

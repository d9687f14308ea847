//! Rendezvous hashing (Thaler and Ravishankar, 1998): an order of preference over the nodes for each target, the same
//! on all front-ends, without a table.

use crate::hash::mix;
use crate::{Cluster, NodeId, Target};

/// The home of a target among the serving nodes, whatever their loads: it follows from names and weights.
pub fn home(target: Target, cluster: &Cluster) -> Option<NodeId> {
    preferred(target.hash, cluster, |_| true)
}

/// The serving node that the target prefers to all others that qualify. Its chance is proportional to its capacity.
///
/// When a node joins, leaves, or changes its capacity, only targets that prefer it, now or before, move.
pub(super) fn preferred(
    target: u64,
    cluster: &Cluster,
    qualifies: impl Fn(NodeId) -> bool,
) -> Option<NodeId> {
    let candidates = cluster.serving().iter().copied().filter(|&node| qualifies(node));
    let distances = candidates.map(|node| (distance(target, node, cluster), node));
    distances.min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, node)| node)
}

/// An exponentially distributed distance: the minimum over nodes belongs to each in proportion to its rate (the
/// logarithmic method of Schindelhauer and Schomaker, 2005).
fn distance(target: u64, node: NodeId, cluster: &Cluster) -> f64 {
    let hash = mix(target ^ cluster.key(node));
    // The upper 53 bits as a number between 0 and 1, and never one of these.
    let uniform = ((hash >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    -uniform.ln() / f64::from(cluster.capacity(node))
}

//! How a hash with a fixed partition passes over nodes that do not take a target.

use crate::hash::mix;
use crate::{Cluster, Decision, NodeId, Target, Why};

/// The node that the partition names for the hash of the target; if it does not take the target, that for a hash of
/// the hash, and so on. All front-ends with the same partition draw the same nodes.
pub(super) fn draw(target: Target, cluster: &Cluster, named_by: impl Fn(u64) -> NodeId) -> Decision {
    let named = named_by(target.hash);
    if cluster.takes(named, target.hash) {
        return Decision::to(named, Why::Hashed);
    }
    let others = (0..DRAWS_MAX).scan(target.hash, |hash, _| {
        *hash = mix(hash.wrapping_add(1));
        Some(named_by(*hash))
    });
    let mut takers = others.filter(|&node| cluster.takes(node, target.hash));
    // Hardly a node may take anything: when the whole cluster is starting, say.
    match takers.next().or_else(|| cluster.least_loaded(named)) {
        Some(node) if node == named => Decision::to(node, Why::Hashed),
        Some(node) => Decision::to(node, Why::Overflow { from: named }),
        None => Decision::no_node(),
    }
}

/// More draws than it takes to meet a node that takes the target, unless nearly all are starting.
const DRAWS_MAX: u32 = 16;

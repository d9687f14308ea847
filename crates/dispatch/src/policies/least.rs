//! Least connections, which most balancers offer beside round robin. Ignores the target.

use crate::{Cluster, Decision, NodeId, Policy, Target, Time, Why};

/// The node with the fewest connections for its weight; equals take turns.
#[derive(Default)]
pub(crate) struct LeastConnections {
    next: NodeId,
}

impl Policy for LeastConnections {
    fn choose(&mut self, _: Target, cluster: &Cluster, _: Time) -> Decision {
        let Some(node) = cluster.least_loaded(self.next) else { return Decision::no_node() };
        self.next = node.following();
        Decision::to(node, Why::LeastLoaded)
    }

    fn handle_membership(&mut self, _: &Cluster, _: Time) {}
}

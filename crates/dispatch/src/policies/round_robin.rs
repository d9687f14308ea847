//! WRR: nodes take turns, those with fewer open connections more often. Blind to the target.

use crate::{Cluster, Decision, NodeId, Policy, Target, Time, Why};

/// Weighted round robin, "weighted by some measure of the load" (Pai, 1999, section 3.1.2): here a node's turns are
/// proportional to its weight divided by its pressure and one. With nothing to do nodes get turns by weight alone; under
/// load, they get such as lead to connections by weight.
///
/// The turns are spread evenly instead of given in runs: at each decision every node earns its part, the one with the
/// most credit is chosen and pays what all have earned. At equal loads that is plain round robin.
#[derive(Default)]
pub(crate) struct WeightedRoundRobin {
    /// Turns that each node is owed.
    credits: Vec<f64>,
}

impl Policy for WeightedRoundRobin {
    fn choose(&mut self, _: Target, cluster: &Cluster, _: Time) -> Decision {
        let mut earned_by_all = 0.0;
        let mut richest: Option<NodeId> = None;
        for &node in cluster.serving() {
            let Some(credit) = self.credits.get_mut(node.index()) else { continue };
            let earned = f64::from(cluster.capacity(node)) / (1.0 + f64::from(cluster.pressure(node)));
            *credit += earned;
            earned_by_all += earned;
            if richest.is_none_or(|richest| self.credits[node.index()] > self.credits[richest.index()]) {
                richest = Some(node);
            }
        }
        let Some(node) = richest else { return Decision::no_node() };
        self.credits[node.index()] -= earned_by_all;
        Decision::to(node, Why::RoundRobin)
    }

    fn handle_membership(&mut self, cluster: &Cluster, _: Time) {
        self.credits.resize(cluster.len(), 0.0);
    }
}

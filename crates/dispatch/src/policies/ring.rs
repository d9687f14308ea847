//! The ring of consistent hashing (Karger and others, 1997): nodes at many points of a circle of hashes.

use crate::hash::pair;
use crate::{Cluster, NodeId, PolicySettings, STANDARD_WEIGHT};

/// Points of nodes in the order of their hashes. A target belongs to the first point at or after its own hash.
#[derive(Debug)]
pub(super) struct Ring {
    points: Vec<(u64, NodeId)>,
    points_of_standard_node: u32,
}

impl Ring {
    pub(super) const fn new(settings: &PolicySettings) -> Self {
        Self { points: Vec::new(), points_of_standard_node: settings.ring_points }
    }

    /// Builds the ring of the serving nodes. A node's points depend on its key and weight alone, so front-ends agree,
    /// and the failure of a node moves no target of the others.
    pub(super) fn rebuild(&mut self, cluster: &Cluster) {
        self.points.clear();
        for &node in cluster.serving() {
            let points = u64::from(self.points_of_standard_node) * u64::from(cluster.weight(node));
            let points = (points / u64::from(STANDARD_WEIGHT)).max(1);
            self.points.extend((0..points).map(|number| (pair(cluster.key(node), number), node)));
        }
        self.points.sort_unstable();
    }

    /// The nodes from a hash on, once around the circle. A node comes as often as it has points.
    pub(super) fn nodes_from(&self, hash: u64) -> impl Iterator<Item = NodeId> {
        let start = self.points.partition_point(|&(point, _)| point < hash);
        let (before, after) = self.points.split_at(start);
        after.iter().chain(before).map(|&(_, node)| node)
    }
}

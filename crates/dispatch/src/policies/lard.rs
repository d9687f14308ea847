//! LARD: each target on one node, moved when loads are out of balance (Pai, 1999, figure 3.2).

use crate::mapping::Mapping;
use crate::{Cluster, Decision, NodeId, Policy, PolicySettings, Target, Thresholds, Time, Why};

/// Basic locality-aware request distribution. Meant to be used under [`crate::Admission`].
pub(crate) struct Lard {
    servers: Mapping<NodeId>,
    thresholds: Thresholds,
    /// Where the search for a lightly loaded node starts, for round robin among equals.
    next: NodeId,
}

/// The rule of LARD, and of LARD/R.
impl Thresholds {
    /// The node is overloaded while another idles, or so much that it delays requests in any case.
    pub(super) fn is_imbalanced(self, cluster: &Cluster, node: NodeId) -> bool {
        let pressure = cluster.pressure(node);
        (pressure > self.t_high && cluster.any_below(self.t_low)) || pressure >= 2.0 * self.t_high
    }

    /// How much pressure a node may have with one connection more: T_high while another node idles, otherwise twice that.
    pub(super) fn pressure_max(self, cluster: &Cluster) -> f32 {
        if cluster.any_below(self.t_low) { self.t_high } else { 2.0 * self.t_high }
    }
}

impl Lard {
    pub(crate) fn new(settings: &PolicySettings) -> Self {
        Self {
            servers: Mapping::new(settings.mappings_max, settings.seed),
            thresholds: settings.thresholds(),
            next: NodeId::default(),
        }
    }
}

impl Policy for Lard {
    fn choose(&mut self, target: Target, cluster: &Cluster, _: Time) -> Decision {
        let server = self.servers.get(target.hash);
        if let Some(&mut server) = server
            && cluster.is_serving(server)
            && !self.thresholds.is_imbalanced(cluster, server)
        {
            return Decision::to(server, Why::Mapped);
        }
        let Some(lightest) = cluster.least_loaded(self.next) else { return Decision::no_node() };
        self.next = lightest.following();
        let why = match server {
            // All nodes may be overloaded alike: then the target stays.
            Some(server) if *server == lightest => Why::Mapped,
            Some(server) => Why::Moved { from: std::mem::replace(server, lightest) },
            None => {
                if self.servers.is_full() {
                    self.servers.forget_oldest();
                }
                self.servers.insert(target.hash, lightest);
                Why::FirstAssignment
            }
        };
        Decision::to(lightest, why)
    }

    fn handle_membership(&mut self, _: &Cluster, _: Time) {
        // Nothing to do: a target of a failed node is reassigned at its next request (section 3.1.6).
    }

    fn handle_thresholds(&mut self, thresholds: Thresholds) {
        self.thresholds = thresholds;
    }
}

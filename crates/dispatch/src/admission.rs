//! The admission limit: how many connections the cluster may have at once.

use crate::{Cluster, Decision, Fit, NodeId, Policy, PolicySettings, Target, Thresholds, Time};

/// Wraps any policy: while the cluster has S connections, requests wait at the front-end, where they can still go to
/// the node that is free first (Pai, 1999, section 3.1.4).
///
/// Without it, all nodes could rise to twice T_high, and locality-aware distribution would be round robin.
pub struct Admission {
    inner: Box<dyn Policy + Send>,
    thresholds: Thresholds,
}

impl Admission {
    /// The limit that follows from T_low and T_high of the settings, around this policy.
    pub fn new(inner: Box<dyn Policy + Send>, settings: &PolicySettings) -> Self {
        Self { inner, thresholds: settings.thresholds() }
    }

    /// S: the connections that the cluster may have at once; 0 if no node serves.
    pub fn limit(&self, cluster: &Cluster) -> u64 {
        admission_limit(self.thresholds, cluster)
    }
}

impl Policy for Admission {
    fn choose(&mut self, target: Target, cluster: &Cluster, now: Time) -> Decision {
        if cluster.serving().is_empty() {
            return Decision::no_node();
        }
        if cluster.total_load() >= self.limit(cluster) {
            return Decision::wait();
        }
        self.inner.choose(target, cluster, now)
    }

    fn completed(&mut self, target: Target, node: NodeId, bytes: u64, service_us: u64, now: Time) {
        self.inner.completed(target, node, bytes, service_us, now);
    }

    fn handle_membership(&mut self, cluster: &Cluster, now: Time) {
        self.inner.handle_membership(cluster, now);
    }

    fn handle_thresholds(&mut self, thresholds: Thresholds) {
        self.thresholds = thresholds;
        self.inner.handle_thresholds(thresholds);
    }

    fn fit(&self) -> Option<Fit> {
        Some(Fit { thresholds: self.thresholds, seen: None })
    }
}

/// S under these thresholds.
///
/// As published, `(n - 1) * T_high + T_low - 1`. With weights, the node left at T_low is the heaviest one, so that some node
/// is always below T_high.
pub fn admission_limit(thresholds: Thresholds, cluster: &Cluster) -> u64 {
    let (t_low, t_high) = (f64::from(thresholds.t_low), f64::from(thresholds.t_high));
    let (total, heaviest) = (f64::from(cluster.total_capacity()), f64::from(cluster.capacity_max()));
    let limit = (total - heaviest) * t_high + heaviest * t_low - 1.0;
    match cluster.serving().len() {
        0 => 0,
        // At least one connection, even for very light nodes.
        _ => (limit.round() as u64).max(1),
    }
}

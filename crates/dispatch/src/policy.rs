//! What every policy answers to.

use crate::{Cluster, Decision, Fit, NodeId, Target, Thresholds, Time};

/// A rule by which a front-end distributes requests.
///
/// A policy reads no clock and counts no connections: the same calls get the same decisions. It never chooses a node
/// that does not serve. The caller reports each begin and end of a connection to the cluster ([`Cluster::begin`],
/// [`Cluster::end`]).
pub trait Policy {
    /// Chooses the node for a request.
    fn choose(&mut self, target: Target, cluster: &Cluster, now: Time) -> Decision;

    /// A request that got a node has ended: the bytes that were sent, and the microseconds from hand-off to the end.
    ///
    /// Call it for every request, also if the client left, except for those lost with a failed node. Policies may
    /// ignore it.
    fn completed(&mut self, target: Target, node: NodeId, bytes: u64, service_us: u64, now: Time) {
        let _ = (target, node, bytes, service_us, now);
    }

    /// Nodes joined, left, failed or recovered, or weights changed. Tables are made again here, and only here.
    fn handle_membership(&mut self, cluster: &Cluster, now: Time);

    /// Other thresholds hold from now on. Policies without thresholds ignore it.
    fn handle_thresholds(&mut self, thresholds: Thresholds) {
        let _ = thresholds;
    }

    /// The thresholds that hold, of a policy under [`crate::Admission`].
    fn fit(&self) -> Option<Fit> {
        None
    }
}

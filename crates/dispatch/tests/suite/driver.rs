//! A front-end without a network: connections begin and end as a test says.

use baton_dispatch::{Cluster, Decision, NodeId, Policy, PolicyName, PolicySettings, Target, Time};

/// A cluster, a policy, and the active connections.
pub(crate) struct FrontEnd {
    pub(crate) cluster: Cluster,
    pub(crate) policy: Box<dyn Policy + Send>,
    pub(crate) active: Vec<(Target, NodeId)>,
    pub(crate) now: Time,
}

/// A second, in the unit of the policies.
pub(crate) const SECOND: Time = 1_000_000;

impl FrontEnd {
    pub(crate) fn new(cluster: Cluster, policy: Box<dyn Policy + Send>) -> Self {
        let mut front_end = Self { cluster, policy, active: Vec::new(), now: 0 };
        front_end.tell_membership();
        front_end
    }

    /// A cluster of so many standard nodes.
    pub(crate) fn of(policy: PolicyName, nodes: usize) -> Self {
        let settings =
            PolicySettings { mappings_max: 1 << 12, replicas_max: 1 << 8, ..PolicySettings::default() };
        Self::new(Cluster::of(&vec![100; nodes], 10 * SECOND), policy.build(&settings))
    }

    /// Decides on a request, and begins its connection.
    pub(crate) fn request(&mut self, target: impl Into<Wanted>) -> Decision {
        let Wanted(target) = target.into();
        let decision = self.policy.choose(target, &self.cluster, self.now);
        if let Some(node) = decision.node {
            self.cluster.begin(node);
            self.active.push((target, node));
        }
        decision
    }

    /// Decides on a request, and serves it at once.
    pub(crate) fn serve(&mut self, target: impl Into<Wanted>) -> Decision {
        let decision = self.request(target);
        if decision.node.is_some() {
            self.complete(self.active.len() - 1);
        }
        decision
    }

    /// Ends the connection at this index of `active`, which is in the order of arrival.
    pub(crate) fn complete(&mut self, at: usize) {
        let (target, node) = self.active.remove(at);
        self.cluster.end(node);
        self.policy.completed(target, node, 5_000, 2_000, self.now);
    }

    pub(crate) fn complete_all(&mut self) {
        while !self.active.is_empty() {
            self.complete(self.active.len() - 1);
        }
    }

    /// Lets time pass, and slow starts advance.
    pub(crate) fn wait(&mut self, time: Time) {
        self.now += time;
        let epoch = self.cluster.epoch();
        self.cluster.handle_timeout(self.now);
        if self.cluster.epoch() != epoch {
            self.tell_membership();
        }
    }

    pub(crate) fn join(&mut self, weight: u32) -> NodeId {
        let node = self.cluster.join(weight, self.now);
        self.tell_membership();
        node
    }

    /// A node fails, and its connections with it.
    pub(crate) fn fail(&mut self, node: NodeId) {
        self.cluster.fail(node);
        self.tell_membership();
        let lost = self.active.iter().filter(|(_, of)| *of == node).count();
        (0..lost).for_each(|_| self.cluster.end(node));
        self.active.retain(|(_, of)| *of != node);
    }

    pub(crate) fn drain(&mut self, node: NodeId) {
        self.cluster.drain(node);
        self.tell_membership();
    }

    pub(crate) fn recover(&mut self, node: NodeId) {
        self.cluster.recover(node, self.now);
        self.tell_membership();
    }

    fn tell_membership(&mut self) {
        self.policy.handle_membership(&self.cluster, self.now);
    }
}

/// A test's request: a target, or the hash of one.
pub(crate) struct Wanted(Target);

impl From<u64> for Wanted {
    fn from(hash: u64) -> Self {
        Self(Target::new(hash))
    }
}

impl From<Target> for Wanted {
    fn from(target: Target) -> Self {
        Self(target)
    }
}

/// The hash of a target that a test knows by a number.
pub(crate) fn numbered(number: u64) -> u64 {
    baton_dispatch::target_hash(&number.to_le_bytes())
}

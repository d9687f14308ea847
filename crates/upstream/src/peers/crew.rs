//! The peers of one configuration, or of one view of a cluster's members, by the numbers that their balance knows them by.

use baton_dispatch::NodeId;

use super::checks::{CheckSettings, CheckTimes};
use super::standing::Ejection;
use crate::origins::OriginRecord;

/// A peer, for its balance.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// What it is known by to the crew that follows, and to other front-ends.
    pub(super) name: String,
    pub(super) weight: u32,
    pub(super) is_backup: bool,
    pub(super) record: OriginRecord,
}

/// Peers that requests are distributed among, until another crew follows.
#[derive(Debug)]
pub(super) struct Crew {
    /// Greater than that of each crew before, in the same balance.
    pub(super) serial: u64,
    members: Vec<Member>,
    nodes: Vec<NodeId>,
    pub(super) ejection: Option<Ejection>,
    pub(super) is_checked: bool,
}

impl Crew {
    /// These peers, the number of each in its balance, and what they are judged by.
    pub(super) fn new(
        serial: u64,
        members: Vec<Member>,
        nodes: Vec<NodeId>,
        ejection: Option<Ejection>,
        is_checked: bool,
    ) -> Self {
        Self { serial, members, nodes, ejection, is_checked }
    }

    /// How many peers there are.
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// A peer.
    pub(super) fn member(&self, peer: usize) -> &Member {
        &self.members[peer]
    }

    /// What the balance knows a peer by.
    pub(super) fn node(&self, peer: usize) -> NodeId {
        self.nodes[peer]
    }

    /// The peer that the balance knows by this number, if it is one of these.
    pub(super) fn peer(&self, node: NodeId) -> Option<usize> {
        self.nodes.iter().position(|known| *known == node)
    }

    /// Whether there is one.
    pub(super) fn has(&self, node: NodeId) -> bool {
        self.nodes.contains(&node)
    }

    /// Each peer and its number.
    pub(super) fn members(&self) -> impl Iterator<Item = (&Member, NodeId)> {
        self.members.iter().zip(self.nodes.iter().copied())
    }

    /// A peer whose check is due. The caller makes the check.
    pub(super) fn take_due_check(&self, check: &CheckSettings, now_ms: u64) -> Option<usize> {
        self.members.iter().position(|member| CheckTimes(&member.record).take_due(check, now_ms))
    }

    /// When the next check is due; `u64::MAX`: never.
    pub(super) fn next_check_ms(&self) -> u64 {
        self.members.iter().map(|member| CheckTimes(&member.record).due_ms()).min().unwrap_or(u64::MAX)
    }
}

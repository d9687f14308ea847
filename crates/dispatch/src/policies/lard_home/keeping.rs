//! What nodes have in memory, as the front-end believes, and what they are to keep there.

use super::duel::Duel;
use crate::policies::frequency::{Ages, Frequency};
use crate::policies::mirror::{Mirror, UNKNOWN_BYTES};
use crate::{Cluster, NodeId, PolicySettings, Target, Variant};

/// The memories of the nodes, and how often targets were asked for.
pub(super) struct Keeping {
    /// Where the first node of each target has it in memory.
    memory: Mirror,
    ages: Ages,
    duel: Duel,
    variant: Variant,
    node_bytes: u64,
}

/// Memory is believed to hold more than it does, by one part in so many: a target that is sent elsewhere although it is
/// still there has to be read, one that stays although it is not has to be read anyway.
const BENEFIT_OF_DOUBT: u64 = 16;
/// Counts of requests are halved after so many for each target in memory. With a half, a little worse on traces that stay as
/// they are, with an eighth, a per cent and a half.
const AGE_REQUESTS_PER_TARGET: u64 = 32;

impl Keeping {
    pub(super) fn new(settings: &PolicySettings) -> Self {
        Self {
            memory: Mirror::new(settings.mappings_max, settings.node_cache_order, settings.seed),
            ages: Ages::default(),
            duel: Duel::new(settings),
            variant: settings.variant,
            node_bytes: settings.node_cache_bytes + settings.node_cache_bytes / BENEFIT_OF_DOUBT,
        }
    }

    /// A target is asked for once more; how often that is.
    pub(super) fn count(&mut self, target: Target, before: Frequency) -> Frequency {
        self.ages.handle_request(self.memory.len() as u64 * AGE_REQUESTS_PER_TARGET);
        let frequency = self.ages.one_more(before);
        if self.variant == Variant::Duel {
            self.duel.handle_request(target, frequency, &self.ages);
        }
        frequency
    }

    /// Whether a node has the target in memory, which is used by this.
    pub(super) fn is_used(&mut self, target: Target, frequency: Frequency) -> bool {
        self.variant == Variant::Mapped || self.memory.use_target(target.hash, frequency).is_some()
    }

    /// Believes a target that is in no memory to be in that of the node from now on.
    pub(super) fn keep(&mut self, target: Target, node: NodeId, frequency: Frequency) {
        self.memory.insert(target.hash, node, bytes_of(target), frequency);
    }

    /// Whether the node shall keep a target that is in no memory. If so, it is believed to be there from now on.
    pub(super) fn keep_if_worth(&mut self, target: Target, node: NodeId, frequency: Frequency) -> bool {
        let keeps_all = self.variant == Variant::Picture
            || (self.variant == Variant::Duel && !self.duel.is_choosing_better());
        let is_worth =
            keeps_all || self.memory.is_worth_keeping(node, bytes_of(target), frequency, &self.ages);
        if is_worth {
            self.keep(target, node, frequency);
        }
        is_worth
    }

    /// A node has answered with so many bytes.
    pub(super) fn handle_answer(&mut self, target: Target, node: NodeId, bytes: u64) {
        if target.bytes_hint.is_none() {
            self.memory.resize(target.hash, node, bytes);
            self.duel.resize(target, bytes);
        }
    }

    pub(super) fn handle_membership(&mut self, cluster: &Cluster) {
        self.memory.handle_membership(cluster, self.node_bytes);
        self.duel.handle_membership(self.memory.bytes_max());
    }
}

/// How large the answer is believed to be.
pub(super) fn bytes_of(target: Target) -> u64 {
    target.bytes_hint.unwrap_or(UNKNOWN_BYTES)
}

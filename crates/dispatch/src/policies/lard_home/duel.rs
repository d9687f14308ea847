//! Which of two ways to fill memory reads less: keeping whatever is read, or only what is worth its memory.
//!
//! Where popularity stays as it is, choosing reads less; where requests come in runs, what was asked for often a while ago
//! keeps out what is asked for now. So both ways are tried beside the cluster, each in a picture of one memory that all
//! nodes share, and the cluster follows the one that costs less (set dueling: Qureshi and others, 2007). One target in
//! [`ONE_IN`], by its hash, takes part, in memories that are smaller by as much (spatial sampling: Waldspurger and others,
//! 2015).

use super::keeping::bytes_of;
use crate::hash::mix;
use crate::policies::frequency::{Ages, Frequency};
use crate::policies::mirror::Mirror;
use crate::{NodeId, PolicySettings, Target};

/// Both ways, side by side.
pub(super) struct Duel {
    keeping_all: Contestant,
    choosing: Contestant,
    /// Requests since the contestants were compared.
    requests: u32,
    is_choosing_better: bool,
}

/// A memory that is filled in one of the ways, and what reading has cost it lately.
struct Contestant {
    memory: Mirror,
    cost: u64,
}

/// One target in so many takes part. With all of them throughput changes by less than by the seed; with one in 16, zipf 1.1
/// through a failure loses half a per cent.
const ONE_IN: u64 = 4;
/// Contestants are compared after so many requests, and half of what reading had cost them before counts with the rest.
const ROUND_REQUESTS: u32 = 4096;
/// A read costs a disk of the study about as much as reading so many bytes more: 28 ms at 10 MB/s (Pai, 1999, section
/// 3.2.2). With a quarter of it, or four times as much, throughput changes by less than by the seed.
const READ_BYTES: u64 = 256 << 10;
/// The one node of the contestants.
const POOL: NodeId = NodeId(0);

impl Duel {
    pub(super) fn new(settings: &PolicySettings) -> Self {
        let contestant = || {
            let targets_max = settings.mappings_max.div_ceil(ONE_IN as usize);
            Contestant { memory: Mirror::new(targets_max, settings.node_cache_order, settings.seed), cost: 0 }
        };
        Self { keeping_all: contestant(), choosing: contestant(), requests: 0, is_choosing_better: false }
    }

    /// Whether nodes had better keep only what is worth it.
    pub(super) const fn is_choosing_better(&self) -> bool {
        self.is_choosing_better
    }

    /// A target is asked for, by now so often.
    pub(super) fn handle_request(&mut self, target: Target, frequency: Frequency, ages: &Ages) {
        if !is_sampled(target) {
            return;
        }
        self.keeping_all.handle_request(target, frequency, |_| true);
        self.choosing.handle_request(target, frequency, |memory| {
            memory.is_worth_keeping(POOL, bytes_of(target), frequency, ages)
        });
        self.requests += 1;
        if self.requests == ROUND_REQUESTS {
            self.requests = 0;
            self.is_choosing_better = self.choosing.cost < self.keeping_all.cost;
            self.keeping_all.cost /= 2;
            self.choosing.cost /= 2;
        }
    }

    /// How large a target is has been seen.
    pub(super) fn resize(&mut self, target: Target, bytes: u64) {
        if is_sampled(target) {
            self.keeping_all.memory.resize(target.hash, POOL, bytes);
            self.choosing.memory.resize(target.hash, POOL, bytes);
        }
    }

    /// Nodes came or went. Together they have so much memory, in bytes.
    pub(super) fn handle_membership(&mut self, bytes: u64) {
        self.keeping_all.memory.set_sizes([bytes / ONE_IN]);
        self.choosing.memory.set_sizes([bytes / ONE_IN]);
    }
}

impl Contestant {
    fn handle_request(
        &mut self,
        target: Target,
        frequency: Frequency,
        is_to_be_kept: impl FnOnce(&mut Mirror) -> bool,
    ) {
        if self.memory.use_target(target.hash, frequency).is_some() {
            return;
        }
        let bytes = bytes_of(target);
        self.cost += READ_BYTES.saturating_add(bytes);
        if is_to_be_kept(&mut self.memory) {
            self.memory.insert(target.hash, POOL, bytes, frequency);
        }
    }
}

/// Whether a target takes part.
const fn is_sampled(target: Target) -> bool {
    mix(target.hash).is_multiple_of(ONE_IN)
}

//! What can be set about policies, with the published values as defaults.

use crate::thresholds::{Fits, Thresholds};

/// Settings of all policies; each reads those that concern it.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicySettings {
    /// Active connections of a standard node below which it is likely to have idle resources (T_low).
    pub t_low: u32,
    /// Active connections of a standard node above which requests are likely to be delayed (T_high). More than
    /// `t_low`. With twice as many, a node is overloaded in any case.
    pub t_high: u32,
    /// Whether [bounded](crate::PolicyName::build_bounded) policies fit both to the nodes, and how; `None`: they stay.
    pub fits: Option<Fits>,
    /// How long the set of nodes of a target must have been unchanged before it shrinks (K), in microseconds.
    pub quiet_us: u64,
    /// Targets that are remembered; of more, the least recently requested are forgotten.
    pub mappings_max: usize,
    /// Nodes beyond the first that targets may have together; at the bound, no target gets one more.
    pub replicas_max: usize,
    /// The assumed memory of a standard node, in bytes (LB/GC).
    pub node_cache_bytes: u64,
    /// The assumed order of eviction there (LB/GC).
    pub node_cache_order: CacheOrder,
    /// Points of a standard node on the ring of consistent hashing: more are more even, and more memory.
    pub ring_points: u32,
    /// How far beyond the mean a node may be loaded to take the targets whose hash names it, in percent of the mean. More
    /// than 100.
    pub bound_percent: u32,
    /// Slots of the table of Maglev; brought up to a prime number. A hundred for each node keep it even.
    pub maglev_slots: usize,
    /// What random choices and hash tables start from. Placement does not depend on it.
    pub seed: u64,
}

/// Which target a cache evicts first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheOrder {
    /// The least recently used.
    Lru,
    /// Greedy-Dual-Size with equal costs (Cao and Irani, 1997): the large and long unused.
    #[default]
    Gds,
}

impl Default for PolicySettings {
    fn default() -> Self {
        Self {
            // Pai, 1999, section 3.1.4 (T_low, T_high) and 3.1.5 (K).
            t_low: 25,
            t_high: 65,
            fits: None,
            quiet_us: 20_000_000,
            mappings_max: 1 << 20,
            replicas_max: 1 << 16,
            // Section 3.2.2.
            node_cache_bytes: 32 << 20,
            node_cache_order: CacheOrder::Gds,
            ring_points: 160,
            // Mirrokni, Thorup, Zadimoghaddam, 2018: a bound of 1.25 is the usual choice.
            bound_percent: 125,
            // Eisenbud and others, 2016, section 3.4: the small table.
            maglev_slots: 65_537,
            seed: 0,
        }
    }
}

impl PolicySettings {
    /// The thresholds.
    pub const fn thresholds(&self) -> Thresholds {
        Thresholds { t_low: self.t_low as f32, t_high: self.t_high as f32 }
    }

    /// `bound_percent` as a factor. At the mean itself, or below, some requests would find no node within the bound.
    pub(crate) fn bound(&self) -> f32 {
        self.bound_percent.max(101) as f32 / 100.0
    }
}

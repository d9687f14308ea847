//! The policies by name.

use std::fmt;
use std::str::FromStr;

use crate::policies::{
    BoundedHash, ConsistentHash, Lard, LardReplicated, LeastConnections, LocalityBased, LocalityGlobalCache,
    Maglev, PowerOfTwo, WeightedRoundRobin,
};
use crate::policy::Policy;
use crate::settings::PolicySettings;
use crate::{Admission, Fitted};

/// The policies by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PolicyName {
    /// Weighted round robin, the weights from open connections.
    Wrr,
    /// Locality-based: the name space is partitioned by a hash.
    Lb,
    /// Locality-based with the front-end mirroring every cache.
    LbGc,
    /// Locality-aware: one node for each target, moved when loads are out of balance.
    Lard,
    /// Locality-aware with replication: a set of nodes for each target.
    LardR,
    /// Weighted round robin over nodes that share their memory; the sharing is the simulator's.
    WrrGms,
    /// The node with the fewest connections for its weight.
    LeastConnections,
    /// The lighter of two nodes drawn at random.
    PowerOfTwo,
    /// Consistent hashing on a ring.
    ConsistentHash,
    /// Consistent hashing with bounded loads.
    BoundedHash,
    /// Consistent hashing by a table of Maglev.
    Maglev,
    /// Locality-aware with homes: as `LardR`, new targets placed by hash.
    LardH,
}

impl PolicyName {
    /// Every policy, the published ones first.
    pub const ALL: [Self; 12] = [
        Self::Wrr,
        Self::Lb,
        Self::LbGc,
        Self::Lard,
        Self::LardR,
        Self::WrrGms,
        Self::LeastConnections,
        Self::PowerOfTwo,
        Self::ConsistentHash,
        Self::BoundedHash,
        Self::Maglev,
        Self::LardH,
    ];

    /// The name as it is written in configurations and figures.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Wrr => "wrr",
            Self::Lb => "lb",
            Self::LbGc => "lb-gc",
            Self::Lard => "lard",
            Self::LardR => "lard-r",
            Self::WrrGms => "wrr-gms",
            Self::LeastConnections => "least-connections",
            Self::PowerOfTwo => "power-of-two",
            Self::ConsistentHash => "consistent-hash",
            Self::BoundedHash => "bounded-hash",
            Self::Maglev => "maglev",
            Self::LardH => "lard-h",
        }
    }

    /// What the policy does, in one sentence.
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Wrr => "weighted round robin: nodes take turns, those with fewer connections more often",
            Self::Lb => "locality-based: a hash of the target names the node, whatever its load",
            Self::LbGc => "locality-based, the front-end knowing what every cache holds",
            Self::Lard => {
                "locality-aware: a target stays on one node until loads are out of balance, then moves"
            }
            Self::LardR => {
                "locality-aware with replication: hot targets get more nodes, quiet ones lose them"
            }
            Self::WrrGms => {
                "weighted round robin over nodes that read from each other's memory (simulator only)"
            }
            Self::LeastConnections => "the node with the fewest connections for its weight",
            Self::PowerOfTwo => "the lighter of two nodes drawn at random",
            Self::ConsistentHash => "consistent hashing: few targets move when nodes come and go",
            Self::BoundedHash => "consistent hashing that passes over nodes loaded beyond a bound",
            Self::Maglev => "consistent hashing by lookup table, the most even of the hashes",
            Self::LardH => {
                "locality-aware with homes: as lard-r, but new targets go where a hash says, so that front-ends agree"
            }
        }
    }

    /// A policy of this name without state; call [`Policy::handle_membership`] to give it the nodes.
    ///
    /// `WrrGms` decides as `Wrr` does: only the nodes' handling of misses differs.
    pub fn build(self, settings: &PolicySettings) -> Box<dyn Policy + Send> {
        match self {
            Self::Wrr | Self::WrrGms => Box::new(WeightedRoundRobin::default()),
            Self::Lb => Box::new(LocalityBased::default()),
            Self::LbGc => Box::new(LocalityGlobalCache::new(settings)),
            Self::Lard => Box::new(Lard::new(settings)),
            Self::LardR => Box::new(LardReplicated::new(settings)),
            Self::LeastConnections => Box::new(LeastConnections::default()),
            Self::PowerOfTwo => Box::new(PowerOfTwo::new(settings)),
            Self::ConsistentHash => Box::new(ConsistentHash::new(settings)),
            Self::BoundedHash => Box::new(BoundedHash::new(settings)),
            Self::Maglev => Box::new(Maglev::new(settings)),
            Self::LardH => Box::new(LardReplicated::with_homes(settings)),
        }
    }
}

impl PolicyName {
    /// The policy under the admission limit, with thresholds that fit the nodes if the settings say so.
    pub fn build_bounded(self, settings: &PolicySettings) -> Box<dyn Policy + Send> {
        let bounded = Box::new(Admission::new(self.build(settings), settings));
        match settings.fits {
            Some(fits) => Box::new(Fitted::new(bounded, settings, fits)),
            None => bounded,
        }
    }
}

impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for PolicyName {
    type Err = UnknownPolicy;

    /// Reads a name; case, and what separates words, do not matter (`LARD/R` is `lard-r`).
    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        let plain = |name: &str| -> String {
            name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
        };
        let wanted = plain(name);
        Self::ALL
            .into_iter()
            .find(|known| plain(known.as_str()) == wanted)
            .ok_or_else(|| UnknownPolicy(name.to_owned()))
    }
}

/// No policy is called this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPolicy(pub String);

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no distribution policy is called `{}`; there are ", self.0)?;
        for (at, name) in PolicyName::ALL.into_iter().enumerate() {
            write!(f, "{}{name}", if at == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownPolicy {}

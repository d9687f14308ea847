//! The policies by name.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use crate::layout::Grouping;

/// A policy of admission and replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PolicyName {
    /// Least recently used.
    Lru,
    /// Greedy-Dual-Size with equal costs (Cao and Irani, USENIX ITS 1997).
    Gds,
    /// Three FIFO queues (Yang and others, SOSP 2023).
    S3Fifo,
    /// First segments always, later ones by distance and recency (Wu, Yu and Wolf, WWW10, 2001).
    Wu,
    /// How often each byte is asked for: requests for the object times the share of readers who reach the segment.
    Reach,
}

impl PolicyName {
    /// Every policy, the simplest first.
    pub const ALL: [Self; 5] = [Self::Lru, Self::Gds, Self::S3Fifo, Self::Wu, Self::Reach];

    /// The policy for films, unless another one is chosen: it knows how far viewers get.
    pub const FILMS: Self = Self::Reach;
    /// The policy for everything else: it keeps what is asked for again, whatever comes once.
    pub const FILES: Self = Self::S3Fifo;

    /// The name as it is written in configurations and figures.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lru => "lru",
            Self::Gds => "gds",
            Self::S3Fifo => "s3-fifo",
            Self::Wu => "wu",
            Self::Reach => "reach",
        }
    }

    /// What the policy does, in one sentence.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Lru => "least recently used: what was not asked for the longest time goes",
            Self::Gds => "Greedy-Dual-Size: large and long unused goes, for many hits rather than many bytes",
            Self::S3Fifo => "three queues: what is not asked for again soon after it came goes first",
            Self::Wu => {
                "first segments stay; later ones come with the second request and go last segment first"
            }
            Self::Reach => {
                "what is asked for least often goes: starts per hour times the share that gets so far"
            }
        }
    }

    /// The grouping of blocks that suits the policy.
    #[must_use]
    pub const fn grouping(self) -> Grouping {
        match self {
            Self::Lru | Self::Gds | Self::S3Fifo => Grouping::UNIFORM,
            Self::Wu => Grouping::Pyramid,
            Self::Reach => Grouping::Uniform(NonZeroU32::new(16).unwrap()),
        }
    }
}

impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is no policy's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyNameError(String);

impl fmt::Display for PolicyNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = PolicyName::ALL.map(PolicyName::as_str).join(", ");
        write!(f, "no cache policy is called `{}`; there are {names}", self.0)
    }
}

impl std::error::Error for PolicyNameError {}

impl FromStr for PolicyName {
    type Err = PolicyNameError;

    fn from_str(word: &str) -> Result<Self, PolicyNameError> {
        Self::ALL.into_iter().find(|name| name.as_str() == word).ok_or_else(|| PolicyNameError(word.into()))
    }
}

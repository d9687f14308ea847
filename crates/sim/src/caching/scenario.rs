//! One run: a policy, how it groups blocks, and the size of the cache.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use baton_segment::layout::{BlockSizeError, Grouping, Layout};
use baton_segment::policy::{Aim, PolicyName, PolicyNameError};

/// A policy and its grouping of blocks. As text: `wu`, `wu/whole`, `lru/uniform:16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachePolicy {
    /// The policy.
    pub name: PolicyName,
    /// The grouping.
    pub grouping: Grouping,
}

/// What is no policy, or no grouping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CachePolicyError {
    /// The word before the slash.
    Policy(PolicyNameError),
    /// The word behind it.
    Grouping(String),
}

impl fmt::Display for CachePolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(error) => error.fmt(f),
            Self::Grouping(word) => write!(
                f,
                "no grouping is called `{word}`; there are uniform, uniform:BLOCKS, exponential, pyramid, whole"
            ),
        }
    }
}

impl std::error::Error for CachePolicyError {}

impl FromStr for CachePolicy {
    type Err = CachePolicyError;

    fn from_str(text: &str) -> Result<Self, CachePolicyError> {
        let (name, grouping) = match text.split_once('/') {
            Some((name, grouping)) => (name, Some(grouping)),
            None => (text, None),
        };
        let name: PolicyName = name.parse().map_err(CachePolicyError::Policy)?;
        let grouping = match grouping {
            None => name.grouping(),
            Some(word) => grouping_of(word).ok_or_else(|| CachePolicyError::Grouping(word.into()))?,
        };
        Ok(Self { name, grouping })
    }
}

fn grouping_of(word: &str) -> Option<Grouping> {
    let blocks = word.strip_prefix("uniform:").map(str::parse::<NonZeroU32>);
    match (word, blocks) {
        (_, Some(blocks)) => blocks.ok().map(Grouping::Uniform),
        ("uniform", _) => Some(Grouping::UNIFORM),
        ("exponential", _) => Some(Grouping::Exponential),
        ("pyramid", _) => Some(Grouping::Pyramid),
        ("whole", _) => Some(Grouping::Whole),
        _ => None,
    }
}

impl fmt::Display for CachePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)?;
        match self.grouping {
            grouping if grouping == self.name.grouping() => Ok(()),
            Grouping::UNIFORM => f.write_str("/uniform"),
            Grouping::Uniform(blocks) => write!(f, "/uniform:{blocks}"),
            Grouping::Exponential => f.write_str("/exponential"),
            Grouping::Pyramid => f.write_str("/pyramid"),
            Grouping::Whole => f.write_str("/whole"),
        }
    }
}

/// One run.
#[derive(Clone, Copy, Debug)]
pub struct CacheScenario {
    /// The policy.
    pub policy: CachePolicy,
    /// What it is to make the most of.
    pub aim: Aim,
    /// The size of the cache in bytes.
    pub bytes_max: u64,
    /// The size of a block, which [`Layout::new`] accepts.
    block_bytes: u64,
    /// What random choices start from.
    pub seed: u64,
}

impl CacheScenario {
    /// The policy of Baton with blocks of this size; `compare_caches` fills in the rest.
    ///
    /// # Errors
    /// A size that is no power of two, or out of range.
    pub fn new(block_bytes: u64, aim: Aim, seed: u64) -> Result<Self, BlockSizeError> {
        let name = PolicyName::Reach;
        Layout::new(block_bytes, name.grouping())?;
        let policy = CachePolicy { name, grouping: name.grouping() };
        Ok(Self { policy, aim, bytes_max: 1, block_bytes, seed })
    }

    /// This scenario with another policy and size.
    #[must_use]
    pub fn with(self, policy: CachePolicy, bytes_max: u64) -> Self {
        Self { policy, bytes_max, ..self }
    }

    pub(super) fn layout(&self) -> Layout {
        Layout::new(self.block_bytes, self.policy.grouping).expect("checked by new")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_read_as_they_are_written() {
        for text in ["lru", "wu", "wu/whole", "reach", "lru/uniform:16", "s3-fifo/exponential"] {
            assert_eq!(text.parse::<CachePolicy>().unwrap().to_string(), text);
        }
        for (text, expected) in [("lfu", "there are lru, gds"), ("wu/conic", "no grouping is called `conic`")]
        {
            let error = text.parse::<CachePolicy>().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}

//! Which policy an object gets, with which grouping: as a route or the cache says, or by what the object is.
//!
//! As text: `wu`, `wu/whole`, `lru/uniform:16`, `auto`. Configuration, simulator and figures write it so.

use std::fmt;
use std::str::FromStr;

use super::name::{PolicyName, PolicyNameError};
use crate::layout::{Grouping, GroupingError};

/// A policy and its grouping of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachePolicy {
    /// The policy.
    pub name: PolicyName,
    /// The grouping.
    pub grouping: Grouping,
}

/// What was said about the policy of an object. What was left open, the object decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PolicyChoice {
    /// The policy; `None`: [`PolicyName::FILMS`] for films, [`PolicyName::FILES`] for everything else.
    pub name: Option<PolicyName>,
    /// The grouping; `None`: the policy's own.
    pub grouping: Option<Grouping>,
}

/// An object of video or sound is a film if it has more bytes than this many blocks: two segments of
/// [`PolicyName::FILMS`]. In a shorter one no viewer is on the way to a segment for long.
pub const FILM_BLOCKS_MIN: u64 = 32;

impl PolicyChoice {
    /// This choice, and another one for what it leaves open.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { name: self.name.or(other.name), grouping: self.grouping.or(other.grouping) }
    }

    /// The policy of an object.
    #[must_use]
    pub fn of_object(self, is_film: bool) -> CachePolicy {
        let name = self.name.unwrap_or(if is_film { PolicyName::FILMS } else { PolicyName::FILES });
        CachePolicy { name, grouping: self.grouping.unwrap_or(name.grouping()) }
    }
}

/// Whether an object is a film: of video or sound, and long. `media_type` is a `Content-Type`.
#[must_use]
pub fn is_film(media_type: &[u8], length: Option<u64>, block_bytes: u64) -> bool {
    let begins = |with: &[u8]| media_type.get(..with.len()).is_some_and(|it| it.eq_ignore_ascii_case(with));
    let is_long = length.is_some_and(|length| length > FILM_BLOCKS_MIN * block_bytes);
    is_long && (begins(b"video/") || begins(b"audio/"))
}

impl From<PolicyName> for CachePolicy {
    fn from(name: PolicyName) -> Self {
        Self { name, grouping: name.grouping() }
    }
}

impl From<CachePolicy> for PolicyChoice {
    fn from(policy: CachePolicy) -> Self {
        Self { name: Some(policy.name), grouping: Some(policy.grouping) }
    }
}

/// The grouping is written if it is not the policy's own.
impl fmt::Display for CachePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let grouping = Some(self.grouping).filter(|grouping| *grouping != self.name.grouping());
        PolicyChoice { name: Some(self.name), grouping }.fmt(f)
    }
}

impl fmt::Display for PolicyChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name.map_or(AUTO, PolicyName::as_str))?;
        self.grouping.map_or(Ok(()), |grouping| write!(f, "/{grouping}"))
    }
}

/// What is no policy, or no grouping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CachePolicyError {
    /// The word before the slash.
    Policy(PolicyNameError),
    /// The word behind it.
    Grouping(GroupingError),
}

impl fmt::Display for CachePolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(error) => error.fmt(f),
            Self::Grouping(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CachePolicyError {}

impl FromStr for PolicyChoice {
    type Err = CachePolicyError;

    fn from_str(text: &str) -> Result<Self, CachePolicyError> {
        let (name, grouping) = match text.split_once('/') {
            Some((name, grouping)) => (name, Some(grouping)),
            None => (text, None),
        };
        let name = (name != AUTO).then(|| name.parse()).transpose().map_err(CachePolicyError::Policy)?;
        let grouping = grouping.map(str::parse).transpose().map_err(CachePolicyError::Grouping)?;
        Ok(Self { name, grouping })
    }
}

const AUTO: &str = "auto";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_read_as_they_are_written() {
        for text in
            ["auto", "lru", "wu", "wu/whole", "reach", "lru/uniform:16", "auto/exponential", "wu/uniform:4"]
        {
            assert_eq!(text.parse::<PolicyChoice>().unwrap().to_string(), text);
        }
        for (text, expected) in [
            ("lfu", "there are lru, gds"),
            ("wu/conic", "no grouping is called `conic`"),
            ("wu/uniform:0", "`uniform:0`"),
        ] {
            let error = text.parse::<PolicyChoice>().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    /// What a route says counts first, then what the cache says, then what the object is.
    #[test]
    fn what_is_left_open_the_object_decides() {
        let choice = |text: &str| text.parse::<PolicyChoice>().unwrap();
        for (route, cache, film, other) in [
            ("auto", "auto", "reach", "s3-fifo"),
            ("auto", "lru", "lru", "lru"),
            ("wu", "lru", "wu", "wu"),
            ("auto/exponential", "auto", "reach/exponential", "s3-fifo/exponential"),
            ("wu/uniform:4", "auto", "wu/uniform:4", "wu/uniform:4"),
        ] {
            let both = choice(route).or(choice(cache));
            let shown = [true, false].map(|is_film| both.of_object(is_film).to_string());
            assert_eq!(shown, [film, other], "{route}, {cache}");
        }
    }

    #[test]
    fn films_are_video_and_sound_of_more_than_two_segments() {
        let is = |media_type: &str, blocks: u64| is_film(media_type.as_bytes(), Some(blocks << 18), 1 << 18);
        assert!(is("video/mp4", 33) && is("Audio/ogg; codecs=opus", 33));
        assert!(!is("video/mp4", 32) && !is("image/png", 33) && !is("vide", 33) && !is("", 33));
        assert!(!is_film(b"video/mp4", None, 4096));
    }
}

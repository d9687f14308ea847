//! Which segments are kept: policies of admission and replacement, as machines without I/O.
//!
//! The index tells a policy which segments readers reach, which are stored and which are gone, and asks it whether a
//! segment may displace another and which one goes. A policy knows units by number ([`UnitId`]) and objects that have
//! gone by their handle.

mod choice;
mod gds;
mod ghosts;
mod interface;
mod list;
mod lru;
mod name;
mod reach;
mod s3_fifo;
mod wu;

pub use choice::{CachePolicy, CachePolicyError, FILM_BLOCKS_MIN, PolicyChoice, is_film};
pub(crate) use ghosts::Ghosts;
pub use interface::{Aim, Millis, Policy, Removal, SegmentPlace};
pub use name::{PolicyName, PolicyNameError};

impl PolicyName {
    /// A policy of this name, which has no room yet; the seed decides what is left to chance.
    #[must_use]
    pub fn machine(self, aim: Aim, seed: u64) -> Box<dyn Policy> {
        match self {
            Self::Lru => Box::new(lru::Lru::default()),
            Self::Gds => Box::new(gds::Gds::default()),
            Self::S3Fifo => Box::new(s3_fifo::S3Fifo::default()),
            Self::Wu => Box::new(wu::Wu::default()),
            Self::Reach => Box::new(reach::Reach::new(aim, seed)),
        }
    }
}

//! What becomes of blocks: why one is not stored, and what the store is to drop.

use std::fmt;

use super::object::Generation;
use crate::layout::BlockNumber;
use crate::rules::KeyHash;

/// Why nothing was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotStored {
    /// Longer than the layout can divide, or a block beyond the end.
    OutOfRange,
    /// All objects are being read, and there may be no more of them.
    TooManyObjects,
    /// Purged, or replaced by a newer version.
    Purged,
    /// Not worth what it would displace.
    NotWorthIt,
}

impl NotStored {
    /// The word in logs and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OutOfRange => "out-of-range",
            Self::TooManyObjects => "too-many-objects",
            Self::Purged => "purged",
            Self::NotWorthIt => "not-worth-it",
        }
    }
}

impl fmt::Display for NotStored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What the store is to drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// A block.
    Block {
        /// The object's key.
        key: KeyHash,
        /// The object's generation.
        generation: Generation,
        /// The block.
        block: BlockNumber,
    },
    /// The record of an object, whose blocks have been named before.
    Object {
        /// The object's key.
        key: KeyHash,
        /// The object's generation.
        generation: Generation,
        /// The handle that the caller gave.
        handle: u64,
    },
}

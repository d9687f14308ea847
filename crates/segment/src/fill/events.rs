//! What goes into the machine of an object's fills, and what comes out.

use std::ops::Range;

use crate::layout::BlockNumber;

/// The caller's number of a reader: a client's request for bytes of the object.
pub type ReaderId = u32;

/// The number of a fill: a request to the origin. Not used twice within an object's life.
pub type FillId = u32;

/// What an origin says of the object: two responses with the same version are parts of one body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// A hash of the strong validator. Without one, parts of different responses never meet in a body.
    pub validator: Option<u64>,
    /// The length in bytes, if it is known.
    pub length: Option<u64>,
}

/// The head of an origin's response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// `206` with one range.
    Partial {
        /// The bytes of `Content-Range`.
        bytes: Range<u64>,
        /// Validator and the complete length.
        version: Version,
    },
    /// `200`: the object changed, or the origin does not do ranges.
    Whole(Version),
    /// `416`: the object is shorter than it was.
    NotSatisfiable,
    /// A response that is not stored: an error, or one that the rules of caching exclude.
    NotStored,
    /// `206` without or with several ranges, or of other bytes than were asked for.
    Broken,
    /// No connection, or none of the above in time.
    Failed,
}

/// How a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The body ended as its framing says, after so many bytes of the object; that is where a body of unknown length ends.
    Complete {
        /// The offset behind the last byte.
        at: u64,
    },
    /// Cut off, or stalled.
    Cut,
}

/// Why a reader's response is cut: the word in logs and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutReason {
    /// The object changed at the origin, and the reader has bytes of the old version.
    Changed,
    /// The origin did not send the rest.
    OriginFailed,
}

impl CutReason {
    /// The word in logs and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::OriginFailed => "origin-failed",
        }
    }
}

/// What the caller is to do, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ask the origin for blocks, the last of which may be shorter; without an end for all from the first on.
    Fetch {
        /// The new fill.
        fill: FillId,
        /// The first block.
        from: BlockNumber,
        /// The block behind the last one.
        to: Option<BlockNumber>,
        /// Send `If-Range` with the validator, whose hash this is.
        if_range: Option<u64>,
    },
    /// Read no more from a fill's connection, until `Resume`.
    Pause(FillId),
    /// Read again.
    Resume(FillId),
    /// Close a fill's connection; its events are no longer expected. Bytes beyond those asked for are dropped.
    Close(FillId),
    /// Give a block to a reader: from the store, or from the fills' last blocks in memory.
    Serve {
        /// The reader.
        reader: ReaderId,
        /// The block.
        block: BlockNumber,
    },
    /// End a reader's response visibly; it is gone.
    Cut {
        /// The reader.
        reader: ReaderId,
        /// Why.
        reason: CutReason,
    },
    /// Answer a reader, who got nothing so far, by a request of its own that is not stored; it is gone.
    Pass(ReaderId),
    /// Answer a reader, who got nothing so far, anew: the object changed. It is gone.
    Again(ReaderId),
    /// Purge what is stored and begin an object of this version: the blocks that follow are its own.
    NewVersion(Version),
    /// The length has become known.
    Length(u64),
}

/// Bounds of an object's fills.
#[derive(Clone, Copy, Debug)]
pub struct FillSettings {
    /// How far a fill may be ahead of its fastest reader, in blocks, at least 1; so many of its last blocks stay in memory.
    pub ahead_blocks: u32,
    /// Fills at a time, at least 1.
    pub fills_max: usize,
    /// Readers at a time; others get their own responses.
    pub readers_max: usize,
}

impl Default for FillSettings {
    /// A second or two of film; a client and some seeks; as many as would wait for a popular film that is not here yet.
    fn default() -> Self {
        Self { ahead_blocks: 4, fills_max: 8, readers_max: 4000 }
    }
}

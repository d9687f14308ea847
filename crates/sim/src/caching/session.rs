//! A reader of an object.

use std::ops::Range;

/// An object of a workload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object {
    pub(super) bytes: u64,
    /// Readers read its last block before all others.
    pub(super) tail_first: bool,
    /// Video or sound.
    pub(super) is_media: bool,
}

/// A reader of an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Session {
    pub(super) at_ms: u64,
    pub(super) object: u32,
    /// Bytes that are read, one range after the other.
    pub(super) reads: Vec<Range<u64>>,
    /// How many of them are taken within a minute.
    pub(super) bytes_per_minute: u64,
}

//! The records of bodies, as bytes or by their places.

use baton_fcgi::{FileRange, RegionSlice, request};
use baton_pool::Chunk;

use crate::rig::ID;

/// The first `len` bytes of a chunk are the next of the body.
pub(crate) fn in_pool(chunk: &Chunk, len: usize) -> Vec<u8> {
    let mut records = Vec::new();
    let slice = RegionSlice { offset: chunk.offset() as u32, len: len as u32 };
    request::push_slices(&mut records, ID, &[slice]);
    records
}

/// `len` bytes of the file, from `offset` on, are.
pub(crate) fn in_file(offset: u64, len: u64) -> Vec<u8> {
    let mut records = Vec::new();
    request::push_file(&mut records, ID, FileRange { offset, len });
    records
}

/// These are.
pub(crate) fn as_bytes(bytes: &[u8]) -> Vec<u8> {
    let mut records = Vec::new();
    request::push_stdin(&mut records, ID, bytes);
    records
}

/// The end of a body.
pub(crate) fn end() -> Vec<u8> {
    let mut records = Vec::new();
    request::push_stdin_end(&mut records, ID);
    records
}

//! The checksum of a block.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::key::BlockId;

/// The checksum of the bytes of a block. It depends on the block's name, too: the right bytes in the wrong place do not
/// pass.
pub(crate) fn checksum(id: &BlockId, bytes: &[u8]) -> u64 {
    let mut name = [0; 24];
    name[..16].copy_from_slice(id.key.as_bytes());
    name[16..20].copy_from_slice(&id.generation.to_le_bytes());
    name[20..].copy_from_slice(&id.number.to_le_bytes());
    xxh3_64_with_seed(bytes, xxh3_64(&name))
}

//! Bounds of a store.

use std::path::PathBuf;

/// Where a store lies and how large it may become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// The folder, which this store alone uses; `None`: memory only.
    pub folder: Option<PathBuf>,
    /// Bytes of the file system that blocks may take, counted in slots: see [`Store::footprint`](crate::Store::footprint).
    /// The journal comes on top: at most twice the objects' records and places, and 16 MiB.
    pub bytes_max: u64,
    /// Number of objects, on disk or in memory.
    pub objects_max: usize,
    /// Bytes of memory for blocks that are [held](crate::Store::hold), and for records that no disk takes.
    pub memory_bytes_max: u64,
    /// Longest block in bytes, a power of two of 4 KiB to 16 MiB. A store that was written with another bound starts
    /// empty.
    pub block_bytes_max: u32,
    /// Bytes that may wait for the disk; blocks beyond are not stored.
    pub queue_bytes_max: u64,
    /// Bytes of the file system that the store leaves free for others. Where fewer are free, new blocks take the place of
    /// others, once those are evicted.
    pub reserve_bytes: u64,
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self {
            folder: None,
            bytes_max: 10 << 30,
            objects_max: 1_000_000,
            memory_bytes_max: 64 << 20,
            block_bytes_max: 256 << 10,
            queue_bytes_max: 32 << 20,
            reserve_bytes: 256 << 20,
        }
    }
}

impl StoreSettings {
    /// The settings with a valid `block_bytes_max`.
    pub(crate) fn normalized(self) -> Self {
        let block_bytes_max = self.block_bytes_max.clamp(BLOCK_BYTES_LEAST, BLOCK_BYTES_MOST);
        Self { block_bytes_max: block_bytes_max.next_power_of_two(), ..self }
    }
}

const BLOCK_BYTES_LEAST: u32 = 4 << 10;
const BLOCK_BYTES_MOST: u32 = 16 << 20;

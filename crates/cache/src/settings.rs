//! Bounds of the shared cache.

use std::path::PathBuf;

use baton_segment::policy::PolicyName;

/// The bounds of a process's cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of bodies that are kept in memory, whether they are on the disk or not.
    pub memory_bytes_max: u64,
    /// Of these, how many are kept whatever the pressure on memory.
    pub memory_bytes_min: u64,
    /// Where bodies are kept that survive a restart, if anywhere.
    pub disk: Option<DiskSettings>,
    /// Most responses, each with its head in memory.
    pub objects_max: usize,
    /// Bytes of a block: a power of two of 4 KiB to 16 MiB.
    pub block_bytes: u32,
    /// What is evicted first; `None`: by what it is, [`PolicyChoice`](baton_segment::policy::PolicyChoice).
    pub policy: Option<PolicyName>,
    /// The name in `Cache-Status`.
    pub name: String,
}

/// The folder of a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskSettings {
    /// One process at a time uses it.
    pub folder: PathBuf,
    /// Bytes of the file system that bodies may take. Heads come on top.
    pub bytes_max: u64,
    /// Bytes of the file system that are left free for others.
    pub reserve_bytes: u64,
}

impl DiskSettings {
    /// The part of one of several processes: a folder below this one, and its share of the bytes.
    #[must_use]
    pub fn of_process(&self, index: usize, processes: usize) -> Self {
        Self {
            folder: self.folder.join(index.to_string()),
            bytes_max: self.bytes_max / processes.max(1) as u64,
            reserve_bytes: self.reserve_bytes,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            memory_bytes_max: 256 << 20,
            memory_bytes_min: 32 << 20,
            disk: None,
            objects_max: 100_000,
            block_bytes: 256 << 10,
            policy: None,
            name: "baton".into(),
        }
    }
}

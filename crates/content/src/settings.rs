//! How much a cache may hold, and which of its parts are on.

use crate::policy::Policy;

/// Bounds and switches of a [`crate::Cache`].
///
/// The three parts are those of Flash (Pai, Druschel, Zwaenepoel, *Flash: An Efficient and Portable Web Server*, 1999,
/// sections 5.2 to 5.4) and can be switched off each for itself: the eight combinations of its section 6.4 show what each is
/// worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheSettings {
    /// Most names cached, missing ones included. When full, the least recently used is evicted.
    pub names_max: usize,
    /// Most descriptors of files that are not in memory, and as many again of files that are (for `sendfile`). When
    /// full, the least recently used is closed.
    pub files_max: usize,
    /// Most memory for small files, in bytes, each counted with about a kilobyte for what surrounds it. When full,
    /// `policy` decides.
    pub memory_bytes_max: u64,
    /// Files up to this size, in bytes, are kept in memory and sent from it, larger ones from the descriptor;
    /// at most [`MEMORY_FILE_BYTES_LIMIT`]. When memory is full, those beyond 16 KiB have to be requested repeatedly.
    pub memory_file_bytes_max: u64,
    /// Files up to this size, in bytes, are also kept in memory once they are requested repeatedly; at most
    /// [`MEMORY_FILE_BYTES_LIMIT`]. As loading costs as much as sending, it happens at a name's revalidation, and for
    /// at most an eighth of `memory_bytes_max` per second.
    pub memory_hot_file_bytes_max: u64,
    /// Whether heads of replies are kept with their files, or made for each request.
    pub heads: bool,
    /// Whether it is remembered which file a name leads to.
    pub names: bool,
    /// Whether files are kept open or in memory, or opened, read and closed for each request.
    pub files: bool,
    /// How long a cached name is valid, in milliseconds. The clock of the cache is the second of the
    /// [`baton_http::Stamp`]: 0 revalidates at each use, up to 1000 once per second, and so on.
    pub revalidate_ms: u64,
    /// Which small files are evicted when memory is full.
    pub policy: Policy,
}

/// The largest file that is ever kept in memory: 1 GiB.
pub const MEMORY_FILE_BYTES_LIMIT: u64 = 1 << 30;

impl Default for CacheSettings {
    fn default() -> Self {
        Self {
            names_max: 10_000,
            files_max: 2_000,
            memory_bytes_max: 64 << 20,
            memory_file_bytes_max: 128 << 10,
            memory_hot_file_bytes_max: 2 << 20,
            heads: true,
            names: true,
            files: true,
            revalidate_ms: 1_000,
            policy: Policy::Lru,
        }
    }
}

//! `[cache]`: the caches of names, response heads and open files.

use super::kind::{Bytes, Flag, Integer};
use super::setting::settings;
use super::words::{Word, words};

words! {
    /// Which entry goes when a cache is full.
    Policy {
        /// the least recently used one
        Lru = "lru",
        /// Greedy-Dual-Size: small and popular files stay
        Gds = "gds",
    }
}

settings! {
    /// The caches of one worker process: names, response heads, and open files with the bytes of small ones. Each can
    /// be switched off; what that costs can be measured. Needs a restart.
    Cache in "cache" {
        /// Names remembered, of missing files too. Beyond it the policy's victim goes. About 200 bytes each.
        names_max: u64 = 10_000, Integer(0, 100_000_000);
        /// Files kept open, a descriptor each. Beyond it the policy's victim is closed.
        files_max: u64 = 2_000, Integer(0, 10_000_000);
        /// Bytes of file contents kept in memory. Beyond it the policy's victims go; the kernel's page cache is not
        /// counted.
        memory_bytes_max: u64 = 64 << 20, Bytes(0, 1 << 50);
        /// Files of up to this size are kept in memory and leave with one `send` together with their head; larger
        /// ones go by `sendfile`.
        memory_file_bytes_max: u64 = 128 << 10, Bytes(0, 1 << 30);
        /// Whether names are cached. Off: every request resolves its path.
        names: bool = true, Flag;
        /// Whether response heads are cached. Off: every response's head is written anew.
        heads: bool = true, Flag;
        /// Whether files are kept open and in memory. Off: every request opens and closes its file.
        files: bool = true, Flag;
        /// Milliseconds for which an entry is used before the file system is asked whether it still holds.
        revalidate_ms: u64 = 1_000, Integer(0, 86_400_000);
        /// Which entry goes when a cache is full.
        policy: Policy = Policy::Lru, Word::<Policy>::new();
    }
}

//! `[cache]`: the caches of names, response heads and open files.

use baton_content::{MEMORY_FILE_BYTES_LIMIT, Policy};

use super::duration::Milliseconds;
use super::kind::{Bytes, Flag, Integer, Or};
use super::setting::settings;
use super::words::{Word, words};

words! {
    for Policy {
        /// the least recently used
        Lru = "lru",
        /// Greedy-Dual-Size: of files used equally often the larger is evicted first; more hits, fewer bytes
        Gds = "gds",
    }
}

settings! {
    /// The caches of one worker process: names, response heads, and open files with the bytes of small ones. Each can
    /// be switched off; what that costs can be measured. Needs a restart.
    Cache in "cache" {
        /// Names cached, also of missing files. Beyond it the least recently used is evicted. About 200 bytes each.
        names_max: u64 = 10_000, Integer(0, 100_000_000);
        /// Files kept open, a descriptor each, and as many again of files in memory. Beyond it the least recently
        /// used is closed. Lower if the process may open too few files (`baton ctl status` says so).
        files_max: u64 = 2_000, Integer(0, 10_000_000);
        /// Bytes of file contents kept in memory, with about a kilobyte of overhead per file. Beyond it `policy`
        /// evicts files. The kernel's page cache is not counted. `auto`: 64 MiB, but at most a quarter of a worker's
        /// share of the memory that the machine, a control group or `ulimit -v` allows. While the server's control group
        /// lacks memory, files give some up, down to an eighth.
        memory_bytes_max: Option<u64> = None, Or("auto", Bytes(0, 1 << 50));
        /// Files of up to this size are kept in memory and leave with one `send` together with their head; larger
        /// ones go by `sendfile`. When memory is full, those beyond 16 KiB are kept once they are requested repeatedly.
        memory_file_bytes_max: u64 = 128 << 10, Bytes(0, MEMORY_FILE_BYTES_LIMIT);
        /// Files of up to this size are also kept in memory once they are requested repeatedly: one `send` can cost
        /// less than `sendfile`. At most an eighth of `memory_bytes_max` per second is loaded for it.
        memory_hot_file_bytes_max: u64 = 2 << 20, Bytes(0, MEMORY_FILE_BYTES_LIMIT);
        /// Whether names are cached. Off: every request resolves its path.
        names: bool = true, Flag;
        /// Whether response heads are cached. Off: each response's head is built again.
        heads: bool = true, Flag;
        /// Whether files are kept open and in memory. Off: every request opens and closes its file.
        files: bool = true, Flag;
        /// Milliseconds for which an entry is valid before it is checked in the file system. In steps of seconds: 0
        /// checks for each request, up to 1000 once per second.
        revalidate_ms: u64 = 1_000, Milliseconds(0, 86_400_000);
        /// Which file's contents go when `memory_bytes_max` is reached.
        policy: Policy = Policy::Lru, Word::<Policy>::new();
    }
}

//! `threads-cache`: `threads`, with an application's own file cache and `write`.
//!
//! The same user-level threads, but every file is read into memory of the server's own, whatever its size, and
//! sent from there: two copies of each cached file, one in the page cache and one here, and a copy for each send.
//! What does not fit is read a piece at a time, for each answer anew. It is what a server without `sendfile` has to do,
//! and shows what `sendfile` is worth.
//!
//! Source: Harji 2010, sections 3.8.1 and 3.10 (`knot-c`).

use std::io;

use baton_response::send_way::SendWay;
use baton_session::send_queue::SendfileMode;

use super::{Architecture, ListenerSharing, threads};
use crate::Tuning;
use crate::process::Process;

pub(super) const ARCHITECTURE: Architecture = Architecture {
    processes: |_, _| 1,
    listeners: ListenerSharing::Shared,
    loops: threads::kernel_threads,
    held_up_by_a_slow_client: None,
    adapt,
    serve,
};

/// What a thread has read stays in the cache, among much that does not: with a heap for each, sixteen held a third more.
fn serve(process: &Process) -> io::Result<()> {
    baton_sys::memory::share_heaps();
    threads::serve(process)
}

/// Files of every size come into memory, and none leaves by `sendfile`.
fn adapt(tuning: &mut Tuning) {
    tuning.way = SendWay::Memory;
    tuning.sendfile = SendfileMode::Never;
    tuning.cache.memory_file_bytes_max =
        tuning.cache.memory_bytes_max / threads::kernel_threads(tuning) as u64;
}

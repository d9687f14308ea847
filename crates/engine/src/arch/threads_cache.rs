//! `threads-cache`: `threads`, with an application's own file cache and `write`.
//!
//! The same user-level threads, but every file is read into memory of the server's own, whatever its size, and
//! sent from there: two copies of each cached file, one in the page cache and one here, and a copy for each send.
//! It is what a server without `sendfile` has to do, and shows what `sendfile` is worth.
//!
//! Source: Harji 2010, sections 3.8.1 and 3.10 (`knot-c`).

use std::io;

use super::threads;
use crate::worker::Process;

/// That files of all sizes are kept in memory is a matter of settings, see [`Process::cache`].
pub(super) fn serve(process: &Process) -> io::Result<()> {
    threads::serve(process)
}

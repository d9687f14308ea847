//! `symped`: symmetric multi-process, event-driven.
//!
//! Several `sped` processes share one listening socket and nothing else: no table, no lock, no memory. When one
//! waits for the disk, the kernel runs another. The price is a cache per process.
//!
//! ```text
//!                    ┌─► process: sped loop, own caches
//!   listening ───────┼─► process: sped loop, own caches
//!   socket           └─► process: sped loop, own caches
//! ```
//!
//! Source: Harji 2010, section 3.8.3.

use std::io;

use super::sped;
use crate::worker::Process;

/// Each process is a `sped` server; that they share a socket is the topology's affair.
pub(super) fn serve(process: &Process) -> io::Result<()> {
    sped::serve(process)
}

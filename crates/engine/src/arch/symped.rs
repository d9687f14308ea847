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

use super::{Architecture, ListenerSharing, sped};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    // Enough that some can run while others wait for the disk (Harji, section 3.10).
    processes: |_, cpus| 4 * cpus,
    listeners: ListenerSharing::Shared,
    loops: |_| 1,
    held_up_by_a_slow_client: None,
    adapt: |_| (),
    serve: sped::serve,
};

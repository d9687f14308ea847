//! `n-copy`: one copy of the server per CPU.
//!
//! Each copy is a process bound to a CPU, with a listening socket of its own (`SO_REUSEPORT`): the kernel spreads
//! connections over the copies, by a hash or, with `send.listener_per_cpu`, so that each goes to the copy on the
//! CPU where its packets arrive. Nothing is shared, so nothing is waited for; nothing is balanced, either.
//!
//! ```text
//!   CPU 0:  listening socket ─► process: sped loop, own caches
//!   CPU 1:  listening socket ─► process: sped loop, own caches
//! ```
//!
//! Source: Harji 2010, sections 2.2.1 (N-copy) and 4.4 (partitioning of processes, interrupts and subnets).

use super::{Architecture, ListenerSharing, sped};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    processes: |_, cpus| cpus,
    listeners: ListenerSharing::PerProcess,
    loops: |_| 1,
    held_up_by_a_slow_client: Some(
        "all others of its copy: one thread does everything, and no other copy has their socket",
    ),
    adapt: |_| (),
    serve: sped::serve,
};

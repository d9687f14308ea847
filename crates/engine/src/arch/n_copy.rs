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

use std::io;

use super::sped;
use crate::worker::Process;

/// Each copy is a `sped` server; pinning and sockets are the topology's affair.
pub(super) fn serve(process: &Process) -> io::Result<()> {
    sped::serve(process)
}

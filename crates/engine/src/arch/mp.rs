//! `mp`: a process per connection.
//!
//! A pool of processes, each with one client at a time, as `mt` has threads. They share a listening socket and nothing
//! else: a client that brings a process down takes no other with it, and each process has caches of its own, which are
//! small because there are many. As many clients as there are processes are served at a time, idle ones included; the
//! others wait in the listener's queue.
//!
//! ```text
//!                    ┌─► process: accept → read → find → send → … → close
//!   listening ───────┼─► process: accept → read → find → send → … → close
//!   socket           └─► process: accept → read → find → send → … → close
//! ```
//!
//! What differs from `symped` is the number of processes and that one client is enough for each.
//!
//! Source: Pai 1999, section 4.2.1 (MP; Flash-MP and Apache had 32 processes); Harji 2010, section 2.2.2.

use super::{Architecture, ListenerSharing, sped};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    // As many as Flash-MP had.
    processes: |_, _| 32,
    listeners: ListenerSharing::Shared,
    loops: |_| 1,
    held_up_by_a_slow_client: None,
    adapt: |_| (),
    serve: |process| sped::serve_at_most(1, process),
};

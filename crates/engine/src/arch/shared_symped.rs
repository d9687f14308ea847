//! `shared-symped`: symmetric event loops with shared tables.
//!
//! Several `sped` loops accept from one listening socket and share descriptors and one table of open files and
//! response heads, so that a file is opened and kept once. The table has two levels of locks: readers of the table
//! do not exclude each other, each entry has a lock of its own, and no lock is held while a file is opened.
//!
//! ```text
//!                    ┌─► thread: sped loop ─┐   ┌───────────────────────────┐
//!   listening ───────┼─► thread: sped loop ─┼──►│ names, heads, open files  │
//!   socket           └─► thread: sped loop ─┘   │ table lock > entry locks  │
//!                                               └───────────────────────────┘
//! ```
//!
//! Source: Harji 2010, sections 3.8.4 (shared-SYMPED), 4.6.1 (two-tier locks) and 5.1 (no lock across `open`). His
//! processes shared a descriptor table and mapped memory; threads share both by nature.

use std::io;

use baton_content::Blocking;
use baton_session::session::Session;

use super::sped::Inline;
use super::{Architecture, ListenerSharing};
use crate::Tuning;
use crate::process::Process;

pub(super) const ARCHITECTURE: Architecture = Architecture {
    processes: |_, _| 1,
    listeners: ListenerSharing::Shared,
    loops,
    held_up_by_a_slow_client: None,
    adapt: |_| (),
    serve,
};

fn serve(process: &Process) -> io::Result<()> {
    let cache = process.cache(1);
    process.on_threads(loops(&process.tuning), |index| {
        let ctx = process.context(cache.clone(), Blocking::Briefly);
        let event_loop =
            process.event_loop::<Box<Session>, _>(&format!("loop-{index}"), ctx, Inline::default(), None)?;
        Ok(Box::new(move || event_loop.run(process.heartbeats.heart(index))))
    })
}

/// Enough that some can run while others wait for the disk.
fn loops(tuning: &Tuning) -> usize {
    let own_choice = || 4 * std::thread::available_parallelism().map_or(1, usize::from);
    tuning.threads.unwrap_or_else(own_choice).max(1)
}

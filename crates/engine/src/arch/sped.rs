//! `sped`: single process, event-driven.
//!
//! One loop on one thread does everything. While the sockets do not block, the disk does: a client whose file is
//! not in memory makes all others wait. It is the yardstick of the event-driven architectures, and as good as any
//! of them for content that stays in memory.
//!
//! ```text
//!   ┌──────────────── one thread ────────────────┐
//!   │ accept → read → find file → send           │   non-blocking sockets,
//!   │   ▲        (may wait for the disk)  │      │   blocking disk
//!   │   └───────────── epoll ◄────────────┘      │
//!   └────────────────────────────────────────────┘
//! ```
//!
//! Source: Pai 1999, section 4.2.3 (the SPED model); Harji 2010, sections 2.2.1 and 3.8.2.

use std::io;
use std::os::fd::BorrowedFd;

use baton_content::Blocking;
use baton_shares::ClientKey;
use serde_json::Value;

use super::{Architecture, ListenerSharing};
use crate::client::Wake;
use crate::clients::Token;
use crate::event_loop::Jobs;
use crate::job::{Job, JobDone};
use crate::process::Process;
use crate::session::Session;

pub(super) const ARCHITECTURE: Architecture = Architecture {
    processes: |_, _| 1,
    listeners: ListenerSharing::Shared,
    loops: |_| 1,
    held_up_by_a_slow_client: Some("all others: one thread does everything"),
    adapt: |_| (),
    serve,
};

pub(super) fn serve(process: &Process) -> io::Result<()> {
    serve_at_most(usize::MAX, process)
}

/// Like [`serve`], with at most so many clients at a time.
pub(super) fn serve_at_most(clients: usize, process: &Process) -> io::Result<()> {
    let mut ctx = process.context(process.cache(1), Blocking::Allowed);
    ctx.connections_admitted = clients;
    process.event_loop::<Box<Session>, _>("loop", ctx, Inline, None)?.run(process.heartbeats.heart(0))
}

/// The loop runs blocking jobs itself, at once.
pub(super) struct Inline;

impl<C> Jobs<C> for Inline {
    fn begin(&mut self, _whose: Token, _client: Option<ClientKey>, job: Job) -> Option<JobDone> {
        Some(job.run())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn take_done(&mut self, _into: &mut Vec<(Token, Wake)>) {}

    fn report(&self) -> Value {
        Value::Null
    }
}

//! `mt`: a kernel thread per connection.
//!
//! A pool of threads, each with one client at a time: it accepts a connection, serves it to its end, waiting as often
//! as necessary, and accepts the next. No thread has two clients to interleave: that is left to the kernel's scheduler.
//! The threads share one table of open files and heads. As many clients as there are threads are served at a time, idle
//! ones included; the others wait in the listener's queue.
//!
//! ```text
//!                    ┌─► thread: accept → read → find → send → … → close ─┐   ┌───────────────────────────┐
//!   listening ───────┼─► thread: accept → read → find → send → … → close ─┼──►│ names, heads, open files  │
//!   socket           └─► thread: accept → read → find → send → … → close ─┘   └───────────────────────────┘
//! ```
//!
//! What differs from `shared-symped` is the number of threads and that one client is enough for each. Even the wait is
//! the same call, on an interest set of one client: so orders, deadlines and applications are heard by a thread that
//! waits.
//!
//! Source: Pai 1999, section 4.2.2 (MT; Flash-MT had 64 threads); Harji 2010, section 2.2.2 (thread per connection,
//! from a static pool).

use std::io;

use baton_content::Blocking;
use baton_session::session::Session;
use rustix::process::{Resource, getrlimit};

use super::sped::Inline;
use super::{Architecture, ListenerSharing};
use crate::Tuning;
use crate::process::Process;

pub(super) const ARCHITECTURE: Architecture = Architecture {
    processes: |_, _| 1,
    listeners: ListenerSharing::Shared,
    loops: threads,
    held_up_by_a_slow_client: None,
    // The table of connections is as long as there are threads, so that one client cannot hold all of them.
    adapt: |tuning| tuning.clients_max = tuning.clients_max.min(threads(tuning)),
    serve,
};

fn serve(process: &Process) -> io::Result<()> {
    let cache = process.cache(1);
    process.on_threads(threads(&process.tuning), |index| {
        let mut ctx = process.context(cache.clone(), Blocking::Briefly);
        ctx.connections_admitted = 1;
        let event_loop = process.event_loop::<Box<Session>, _>(
            &format!("thread-{index}"),
            ctx,
            Inline::default(),
            None,
        )?;
        Ok(Box::new(move || event_loop.run(process.heartbeats.heart(index))))
    })
}

/// As many as Flash-MT had, or as there are descriptors for.
fn threads(tuning: &Tuning) -> usize {
    let descriptors = || getrlimit(Resource::Nofile).maximum.and_then(|limit| usize::try_from(limit).ok());
    let own_choice = || descriptors().map_or(THREADS, |limit| THREADS.min(limit / DESCRIPTORS));
    tuning.threads.unwrap_or_else(own_choice).max(1)
}

const THREADS: usize = 64;

/// Of a thread: an interest set, a copy of it, an event descriptor; of its client: a socket, a file, an application.
const DESCRIPTORS: usize = 8;

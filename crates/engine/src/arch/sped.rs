//! `sped`: single process, event-driven.
//!
//! One loop on one thread does everything. While the sockets do not block, the disk does: a client whose file is
//! not in memory makes all others wait, each time for one read. It is the yardstick of the event-driven architectures, and as good as any
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
use baton_session::job::{Job, JobDone};
use baton_session::session::{Session, Wake};
use baton_shares::ClientKey;
use serde_json::Value;

use super::{Architecture, ListenerSharing};
use crate::clients::Token;
use crate::event_loop::Jobs;
use crate::job_queue::{JobClass, JobQueue};
use crate::process::Process;

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
    let mut ctx = process.context(process.cache(1), Blocking::Briefly);
    ctx.connections_admitted = clients;
    process
        .event_loop::<Box<Session>, _>("loop", ctx, Inline::default(), None)?
        .run(process.heartbeats.heart(0))
}

/// The loop runs blocking jobs itself, one each round: who asks for a hundred lets the others have a turn after each.
#[derive(Debug, Default)]
pub(super) struct Inline(JobQueue<(Token, Job)>);

impl<C> Jobs<C> for Inline {
    fn begin(&mut self, whose: Token, client: Option<ClientKey>, job: Job) {
        self.0.push(JobClass::of(&job), client, (whose, job));
    }

    fn forget(&mut self, whose: Token) {
        self.0.retain(|(other, _)| *other != whose);
    }

    fn has_own(&self) -> bool {
        self.0.len() > 0
    }

    fn do_own(&mut self) -> Option<(Token, JobDone)> {
        let (class, (whose, job)) = self.0.begin(1)?;
        let done = job.run();
        self.0.end(class);
        Some((whose, done))
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn take_done(&mut self, _into: &mut Vec<(Token, Wake)>) {}

    fn report(&self) -> Value {
        Value::Null
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::Arc;

    use baton_buf::{FileSlice, OpenFile};

    use super::*;

    /// Goal: a client with a hundred jobs holds up another's for one of them, and the loop for one in each round.
    #[test]
    fn the_loop_does_one_job_at_a_time_and_clients_take_turns() {
        let file = Arc::new(OpenFile::new(File::open("/dev/null").unwrap().into()));
        let client = |last| Some(ClientKey::of([192, 0, 2, last].into()));
        let mut jobs = Inline::default();
        let jobs: &mut dyn Jobs<Box<Session>> = &mut jobs;
        let mut begin = |whose: u64, last| {
            let slice = FileSlice::new(Arc::clone(&file), 0, 0);
            jobs.begin(Token::from_data(whose), client(last), Job::PageIn { stream: None, slice });
        };
        (1..=100).for_each(|whose| begin(whose, 1));
        begin(200, 2);
        let mut next = || jobs.do_own().map(|(whose, _)| whose.to_data());
        assert_eq!([next(), next(), next()], [Some(1), Some(200), Some(2)]);
        assert!(jobs.has_own());
        assert_eq!(std::iter::from_fn(|| jobs.do_own()).count(), 98);
        assert!(!jobs.has_own());
    }
}

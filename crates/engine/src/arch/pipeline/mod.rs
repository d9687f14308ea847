//! `pipeline`: stages joined by queues.
//!
//! The work on a request is cut into five stages. A client is with one stage at a time and travels from one to the next
//! through a queue, or through the kernel, which holds the interest set. Reading and writing have threads of their own,
//! which never work at the same time ([`cohort`]), so that each kind finds its code and data in the CPU's caches. The
//! event loop of the other architectures accepts and polls in both directions, for which the source has a thread each.
//! It rests while the stages behind it are busy, so that it finds more events at once.
//!
//! ```text
//!   ┌──────── event loop ────────┐
//!   │ 1 accept ──────────────────┼─────────► queue ─► 3 read (1 thread)
//!   │                            │             ▲        │      │
//!   │ 2 read poll ───────────────┼─────────────┤        │   a response
//!   │   ▲   nothing more to read │             │        │      ▼
//!   │   └────────────────────────┼──◄──────────┼────────┘    queue ─► 5 write (k threads)
//!   │                            │        more requests        ▲        │ │
//!   │ 4 write poll ──────────────┼─────────────┼───────────────┘        │ │
//!   │   ▲            socket full │             └────────────────────────┘ │
//!   │   └────────────────────────┼──◄─────────────────────────────────────┘
//!   └────────────────────────────┘
//! ```
//!
//! A writer runs each job that waits for a disk or, with a `sendfile` that blocks, for a client. It leaves its cohort
//! meanwhile, and all others go on. Several processes are copies of the whole, each with a listening socket and a CPU
//! of its own.
//!
//! Source: Harji 2010, sections 2.2.3, 3.8.5 (WatPipe), 4.6.2 (N-copy) and 5.1.1 (its scheduling).

mod client;
mod cohort;
mod queue;
mod stage;

use std::io;
use std::os::fd::BorrowedFd;

use baton_content::Blocking;
use baton_session::job::Job;
use baton_session::session::Wake;
use baton_shares::ClientKey;
use serde_json::{Value, json};

use super::{Architecture, ListenerSharing};
use crate::Tuning;
use crate::clients::Token;
use crate::event_loop::Jobs;
use crate::job_queue::JobClass;
use crate::process::Process;
use client::{PipelineClient, Step};
use cohort::Kind;
use stage::{Stages, Steps};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    processes: |_, _| 1,
    listeners: ListenerSharing::PerProcess,
    loops: |_| 1,
    held_up_by_a_slow_client: None,
    adapt: |_| (),
    serve,
};

fn serve(process: &Process) -> io::Result<()> {
    let (readers, writers) = (readers(&process.tuning), process.tuning.writers.max(1));
    let cache = process.cache(1);
    let stages = Stages::new(readers, writers)?;
    process.on_threads(1 + readers + writers, |index| {
        let mut ctx = process.context(cache.clone(), Blocking::Never);
        let stages = &stages;
        if index > 0 {
            let kind = if index <= readers { Kind::Readers } else { Kind::Writers };
            return Ok(Box::new(move || stages.work(kind, &mut ctx, process.steering.follow())));
        }
        let to_stages = ToStages { stages, steps: Steps::default() };
        let event_loop = process.event_loop::<PipelineClient, _>("pipeline", ctx, to_stages, None)?;
        Ok(Box::new(move || {
            let served = event_loop.run(process.heartbeats.heart(0));
            stages.close();
            served
        }))
    })
}

/// The stages, seen from the loop.
struct ToStages<'a> {
    stages: &'a Stages,
    /// What the loop has found in this round.
    steps: Steps,
}

impl Jobs<PipelineClient> for ToStages<'_> {
    /// Writers run the jobs: this is why there are several.
    fn begin(&mut self, whose: Token, client: Option<ClientKey>, job: Job) {
        self.stages.to_write.put_long(JobClass::of(&job), client, (whose, job));
    }

    fn forget(&mut self, whose: Token) {
        self.stages.to_write.retain_long(|(other, _)| *other != whose);
    }

    fn give_step(&mut self, whose: Token, client: &mut PipelineClient) -> bool {
        let session = client.leave();
        self.steps.add(Step { whose, session });
        true
    }

    fn rest(&mut self) {
        self.stages.give(&mut self.steps);
        self.stages.wait_until_taken();
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.stages.back.descriptor())
    }

    fn take_done(&mut self, into: &mut Vec<(Token, Wake)>) {
        self.stages.back.take(into);
    }

    fn report(&self) -> Value {
        json!({
            "waiting_to_be_read": self.stages.to_read.len(),
            "waiting_to_be_written": self.stages.to_write.len(),
        })
    }
}

fn readers(tuning: &Tuning) -> usize {
    tuning.threads.unwrap_or(1).max(1)
}

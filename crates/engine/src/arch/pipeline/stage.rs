//! The stages that read and write: their queues, and what their threads do.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use baton_session::context::Context;
use baton_session::job::Job;
use baton_session::session::{Need, Session, Stage, Wake};
use baton_sys::mailbox::Mailbox;

use super::client::Step;
use super::cohort::{Cohort, Kind};
use super::queue::{Queue, Work};
use crate::clients::Token;
use crate::steering::{Subscription, WorkerPhase};

/// What the loop and the threads of the stages share.
pub(super) struct Stages {
    pub(super) to_read: Queue<Step, (Token, Job)>,
    pub(super) to_write: Queue<Step, (Token, Job)>,
    /// Results, back to the loop.
    pub(super) back: Mailbox<(Token, Wake)>,
    cohort: Cohort,
}

/// Steps to be taken, by stage. They are handed on together: a thread that is woken finds a batch.
#[derive(Default)]
pub(super) struct Steps {
    read: Vec<Step>,
    write: Vec<Step>,
}

impl Steps {
    pub(super) fn add(&mut self, step: Step) {
        let next = step.session.lock().as_ref().map(Session::stage);
        match next {
            Some(Stage::Write) => self.write.push(step),
            Some(Stage::Read | Stage::Any) => self.read.push(step),
            None => {}
        }
    }
}

impl Stages {
    pub(super) fn new(readers: usize, writers: usize) -> io::Result<Self> {
        let (to_read, to_write) = (Queue::new(readers), Queue::new(writers));
        Ok(Self { to_read, to_write, back: Mailbox::new()?, cohort: Cohort::default() })
    }

    pub(super) fn give(&self, steps: &mut Steps) {
        self.to_read.push(&mut steps.read);
        self.to_write.push(&mut steps.write);
    }

    /// Waits a moment for the stages to take what they were given.
    pub(super) fn wait_until_taken(&self) {
        self.to_read.wait_until_taken(POLL_REST_MAX);
        self.to_write.wait_until_taken(POLL_REST_MAX);
    }

    pub(super) fn close(&self) {
        self.to_read.close();
        self.to_write.close();
    }

    /// A thread of a stage: takes clients' steps, a batch at a time, until the queues close.
    pub(super) fn work(
        &self,
        kind: Kind,
        ctx: &mut Context,
        mut subscription: Subscription,
    ) -> io::Result<()> {
        let (stage, queue) = match kind {
            Kind::Readers => (Stage::Read, &self.to_read),
            Kind::Writers => (Stage::Write, &self.to_write),
        };
        let (mut batch, mut steps, mut back) = (Vec::new(), Steps::default(), Vec::new());
        loop {
            let patience = ctx.log.deadline_ms();
            let patience =
                patience.map(|at| Duration::from_millis(at.saturating_sub(ctx.clock.now_ms()) + 1));
            match queue.take(BATCH_MAX, patience, &mut batch) {
                Work::Closed => break,
                // Outside of all cohorts: one thread waits, for one client.
                Work::Long(class, (whose, job)) => {
                    self.back.send([(whose, Wake::Job(job.run()))]);
                    queue.finish_long(class);
                }
                Work::Batch => {
                    let turn = self.cohort.enter(kind);
                    ctx.clock.tick();
                    for step in batch.drain(..) {
                        // After each step: a request that arrives after an order finds it applied.
                        if let Some(orders) = subscription.poll() {
                            ctx.plan = Arc::clone(&orders.plan);
                            ctx.lingering = orders.phase == WorkerPhase::Lingering;
                            ctx.draining = !ctx.lingering && orders.phase != WorkerPhase::Serving;
                            ctx.departures = orders.departures.clone();
                            if let WorkerPhase::Draining(limits) = orders.phase {
                                ctx.begin_drain(limits.requests_ms);
                            }
                        }
                        let stepped = |session: &mut Session| (session.step(ctx, stage), session.stage());
                        let stepped = step.session.lock().as_mut().map(stepped);
                        let can_write = matches!(&stepped, Some((_, Stage::Write)));
                        match stepped.map(|(need, _)| need) {
                            None => {}
                            Some(Need::Turn) => steps.add(step),
                            // There is something to send; a writer finds out whether the socket is full.
                            Some(Need::Writable) if kind == Kind::Readers && can_write => steps.add(step),
                            Some(need) => back.push((step.whose, Wake::Stepped(need))),
                        }
                    }
                    drop(turn);
                    self.give(&mut steps);
                    self.back.send(back.drain(..));
                }
            }
            ctx.log.handle_time(ctx.clock.now_ms());
            ctx.tally.publish();
            subscription.rest();
        }
        ctx.log.flush();
        Ok(())
    }
}

/// Clients that a stage takes at a time: the longer the batch, the better the caches are used, and the longer the
/// other kind has to wait.
const BATCH_MAX: usize = 64;

/// The longest rest of the loop.
const POLL_REST_MAX: Duration = Duration::from_millis(1);

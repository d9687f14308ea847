//! `pipeline`: stages joined by bounded queues.
//!
//! The work on a request is cut into five stages, each with threads of its own. A client is with one stage at a
//! time and travels from one to the next through a queue, or through the kernel, which holds the interest sets of
//! the two poll stages. Readers and writers never work at the same time ([`cohort`]), so that each kind finds its
//! code and data in the CPU's caches; a poll stage rests while the stage behind it has enough to do, so that it finds
//! more events at once. Whatever waits for a disk or, with a `sendfile` that blocks, for a client is one writer's affair:
//! it leaves its cohort for it, and all others go on.
//!
//! ```text
//!   1 accept ──queue──► 3 read ─────(interest set)────► 4 write poll ──queue──► 5 write (k threads)
//!                         ▲ ▲                                 ▲                    │      │
//!                       queue└─────────── more requests ──────┼────────────────────┼──────┘
//!                         │                                   └─── socket full ────┘
//!                    2 read poll ◄──────────────(interest set)──────── kept alive ─┘
//! ```
//!
//! Requests for applications leave the line between reading and writing ([`applications`]).
//!
//! Several processes are copies of it, each with a listening socket and a CPU of its own.
//!
//! Source: Harji 2010, sections 2.2.3, 3.8.5 (WatPipe), 4.6.2 (N-copy) and 5.1.1 (its scheduling).

mod applications;
mod cohort;
mod parked;
mod queue;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use baton_content::{Blocking, Cache};
use baton_gateway::ClientSocket;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec};
use rustix::net::Shutdown;
use serde_json::json;

use super::{Architecture, ListenerSharing};
use crate::Tuning;
use crate::acceptor::{Acceptor, Arrival, Arrivals};
use crate::context::Context;
use crate::log::{AccessLog, Outcome};
use crate::metrics::Metric;
use crate::session::{Need, Session, Stage};
use crate::steering::{Orders, Phase, Subscription};
use crate::worker::Process;
use applications::{Applications, Errand};
use cohort::{Cohort, Kind};
use parked::{Direction, Parked, Traveller};
use queue::{Queue, Taken};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    processes: |_| 1,
    listeners: ListenerSharing::PerProcess,
    loops: |_| LOOPS,
    held_up_by_a_slow_client: None,
    adapt: |_| (),
    serve,
};

fn serve(process: &Process) -> io::Result<()> {
    let line = Line::new(process)?;
    std::thread::scope(|scope| {
        let line = &line;
        let mut stages = Vec::new();
        for (direction, queue) in [(Direction::Input, &line.to_read), (Direction::Output, &line.to_write)] {
            stages.push(scope.spawn(move || line.poll(direction, queue)));
        }
        stages.push(scope.spawn(|| line.run_applications()));
        for _ in 0..readers(&process.tuning) {
            stages.push(scope.spawn(move || line.work(Kind::Readers, &line.to_read)));
        }
        for _ in 0..writers(&process.tuning) {
            stages.push(scope.spawn(move || line.work(Kind::Writers, &line.to_write)));
        }
        let accepted = line.accept();
        line.close();
        stages.into_iter().fold(accepted, |result, stage| {
            result.and(stage.join().unwrap_or_else(|_| Err(io::Error::other("a stage panicked"))))
        })
    })?;
    line.end_all()
}

/// What the stages share.
struct Line<'p> {
    process: &'p Process,
    cache: Arc<Cache>,
    to_read: Queue<Traveller>,
    to_write: Queue<Traveller>,
    parked: Parked,
    applications: Applications,
    cohort: Cohort,
    /// Clients that writers wait for.
    waited_for: Mutex<Vec<Arc<ClientSocket>>>,
    closing: AtomicBool,
    /// Wakes the poll stages when the line closes.
    closed: OwnedFd,
}

/// What a stage's thread works with.
struct Hands {
    ctx: Context,
    subscription: Subscription,
}

impl Hands {
    /// Looks at the clock, and obeys new orders, if there are any.
    fn refresh(&mut self) -> Option<Orders> {
        self.ctx.clock.tick();
        self.look_for_orders()
    }

    /// Obeys new orders, if there are any: between any two clients, so that a request that arrives after an order finds
    /// it obeyed.
    fn look_for_orders(&mut self) -> Option<Orders> {
        let orders = self.subscription.poll()?;
        self.ctx.plan = Arc::clone(&orders.plan);
        self.ctx.draining = orders.phase != Phase::Serving;
        Some(orders)
    }

    /// Lets others see what was counted and logged.
    fn publish(&mut self) {
        let ctx = &mut self.ctx;
        if let Some(log) = &mut ctx.log {
            log.handle_time(ctx.clock.now_ms());
        }
        ctx.tally.publish();
    }
}

impl<'p> Line<'p> {
    fn new(process: &'p Process) -> io::Result<Self> {
        let closed = rustix::event::eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        let parked = Parked::new()?;
        for direction in [Direction::Input, Direction::Output] {
            epoll::add(parked.set(direction), &closed, EventData::new_u64(CLOSED), EventFlags::IN)?;
        }
        Ok(Self {
            process,
            cache: process.cache(1),
            to_read: Queue::new(QUEUE_CAPACITY, readers(&process.tuning)),
            to_write: Queue::new(QUEUE_CAPACITY, writers(&process.tuning)),
            parked,
            applications: Applications::new()?,
            cohort: Cohort::default(),
            waited_for: Mutex::default(),
            closing: AtomicBool::new(false),
            closed,
        })
    }

    fn hands(&self) -> io::Result<Hands> {
        let ctx = self.process.context(Arc::clone(&self.cache), Blocking::Never);
        Ok(Hands { ctx, subscription: self.process.steering.subscribe()? })
    }

    /// Stage 1, and the line's foreman: lets clients in, and sees to those that wait for too long.
    fn accept(&self) -> io::Result<()> {
        let mut hands = self.hands()?;
        let mut acceptor = Acceptor::new(&self.process.tuning, hands.ctx.remarks);
        let door = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&door, hands.subscription.descriptor(), EventData::new_u64(CLOSED), EventFlags::IN)?;
        let mut drain_until_ms = None;
        let mut next_second_ms = 0;
        let mut events = Vec::with_capacity(16);
        let mut heart = self.process.heartbeats.heart(FOREMAN);
        loop {
            heart.beat();
            if let Some(orders) = hands.refresh() {
                let serving = orders.phase == Phase::Serving;
                if !serving {
                    // The kernel has announced the clients in these queues to this process.
                    for data in acceptor.leave(&door)? {
                        let arrivals = acceptor.begin(data);
                        heart.held(|| self.let_in(&mut acceptor, arrivals, &door, &mut hands.ctx));
                    }
                }
                let listeners = if serving { &orders.listeners[..] } else { &[] };
                for left in acceptor.listen(listeners, &door)? {
                    let arrivals = Acceptor::finish_with(left);
                    heart.held(|| self.let_in(&mut acceptor, arrivals, &door, &mut hands.ctx));
                }
                match orders.phase {
                    Phase::Serving => {}
                    Phase::Stopping => return Ok(()),
                    Phase::Draining { limit_ms } => {
                        drain_until_ms.get_or_insert(hands.ctx.clock.now_ms().saturating_add(limit_ms));
                        // Whoever has asked already is answered; all others are sent home by the readers.
                        for mut traveller in self.parked.take_idle() {
                            traveller.session.handle_readable();
                            self.to_read.put_back(traveller);
                        }
                    }
                }
            }
            let now_ms = hands.ctx.clock.now_ms();
            let clients = self.process.headcount.inside();
            if drain_until_ms.is_some_and(|until| clients == 0 || now_ms >= until) {
                return Ok(());
            }
            if now_ms >= next_second_ms {
                next_second_ms = now_ms + 1000;
                for mut traveller in self.parked.take_overdue(now_ms) {
                    let need = traveller.session.handle_timeout(&mut hands.ctx);
                    self.settle(traveller, need, &mut hands.ctx);
                }
                self.report(&hands.subscription);
            }
            hands.publish();
            let wait =
                if drain_until_ms.is_some() || acceptor.resume_ms().is_some() { SHORT } else { A_SECOND };
            events.clear();
            match epoll::wait(&door, rustix::buffer::spare_capacity(&mut events), Some(&wait)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            hands.ctx.clock.tick();
            for event in &events {
                if Acceptor::owns(event.data.u64()) {
                    let arrivals = acceptor.begin(event.data.u64());
                    heart.held(|| self.let_in(&mut acceptor, arrivals, &door, &mut hands.ctx));
                }
            }
            let has_room = self.process.headcount.room(&hands.ctx) > 0;
            acceptor.handle_time(hands.ctx.clock.now_ms(), has_room, &door);
        }
    }

    fn let_in(&self, acceptor: &mut Acceptor, mut arrivals: Arrivals, door: &OwnedFd, ctx: &mut Context) {
        let headcount = &self.process.headcount;
        while let Some(arrival) = acceptor.next(&mut arrivals, headcount.room(ctx)) {
            match arrival {
                Arrival::Client { socket, peer, listener } => {
                    headcount.enter();
                    let session = Session::new(socket, peer, listener, ctx);
                    self.to_read.push_all([Traveller::new(session)]);
                }
                Arrival::Paused => {
                    ctx.tally.add(Metric::AcceptsPaused, 1);
                    acceptor.pause(ctx.clock.now_ms(), door);
                }
            }
        }
    }

    /// Stages 2 and 4: bring clients whose sockets are ready to the stage behind.
    fn poll(&self, direction: Direction, queue: &Queue<Traveller>) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS_PER_WAKE);
        let mut ready = Vec::new();
        while !self.is_closing() {
            events.clear();
            match epoll::wait(self.parked.set(direction), rustix::buffer::spare_capacity(&mut events), None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            self.parked.take(&events, &mut ready);
            if direction == Direction::Input {
                for traveller in &mut ready {
                    traveller.session.handle_readable();
                }
            }
            queue.push_all(ready.drain(..));
            queue.wait_until_taken(POLL_REST_MAX);
        }
        Ok(())
    }

    /// Stages 3 and 5: do one half of the work for clients, a batch at a time.
    fn work(&self, kind: Kind, queue: &Queue<Traveller>) -> io::Result<()> {
        let stage = match kind {
            Kind::Readers => Stage::Read,
            Kind::Writers => Stage::Write,
        };
        let mut hands = self.hands()?;
        let mut batch = Vec::with_capacity(BATCH_MAX);
        loop {
            let patience = hands.ctx.log.as_ref().and_then(AccessLog::deadline_ms);
            let patience =
                patience.map(|at| Duration::from_millis(at.saturating_sub(hands.ctx.clock.now_ms()) + 1));
            match queue.take(BATCH_MAX, patience, &mut batch) {
                Taken::Closed => break,
                Taken::Long => {
                    batch.drain(..).for_each(|traveller| self.wait_for(traveller, &mut hands));
                    queue.finish_long();
                }
                Taken::Batch => {
                    let turn = self.cohort.enter(kind);
                    hands.refresh();
                    for mut traveller in batch.drain(..) {
                        hands.look_for_orders();
                        let need = traveller.session.step(&mut hands.ctx, stage);
                        self.settle(traveller, need, &mut hands.ctx);
                    }
                    drop(turn);
                }
            }
            hands.publish();
            hands.subscription.rest();
        }
        if let Some(log) = &mut hands.ctx.log {
            log.flush();
        }
        Ok(())
    }

    /// Does what takes long, outside of all cohorts: one thread waits, for one client.
    fn wait_for(&self, mut traveller: Traveller, hands: &mut Hands) {
        let Some(job) = traveller.job.take() else { return };
        let socket = Arc::clone(traveller.session.socket());
        self.clients_waited_for().push(Arc::clone(&socket));
        // Closing the line ends the wait of all that stand in the list.
        let done = if self.is_closing() { None } else { Some(job.run()) };
        self.clients_waited_for().retain(|other| !Arc::ptr_eq(other, &socket));
        hands.refresh();
        match done {
            Some(done) => {
                traveller.session.handle_job(done, &hands.ctx);
                self.settle(traveller, Need::Turn, &mut hands.ctx);
            }
            None => self.send_home(traveller, Outcome::Stopped, &mut hands.ctx),
        }
    }

    fn clients_waited_for(&self) -> MutexGuard<'_, Vec<Arc<ClientSocket>>> {
        self.waited_for.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings a client to where it gets what it needs.
    fn settle(&self, mut traveller: Traveller, need: Need, ctx: &mut Context) {
        match need {
            Need::Readable if ctx.draining && traveller.session.is_idle() => {
                self.send_home(traveller, Outcome::Complete, ctx);
            }
            Need::Readable => self.park(traveller, Direction::Input, ctx),
            Need::Writable => self.park(traveller, Direction::Output, ctx),
            Need::Turn | Need::JobUnderWay => match traveller.session.stage() {
                Stage::Write => self.to_write.put_back(traveller),
                Stage::Read | Stage::Any => self.to_read.put_back(traveller),
            },
            // Writers may wait: that is what there are several for.
            Need::Job(job) => {
                traveller.job = Some(job);
                self.to_write.put_long(traveller);
            }
            Need::Delegate(request) => self.applications.come(Errand::Begin(traveller, request)),
            Need::News | Need::NewsUnderWay => self.applications.come(Errand::Next(traveller)),
            Need::Finished => {
                if let Some(number) = traveller.application {
                    self.applications.come(Errand::Gone(number));
                }
                self.parked.forget(&traveller);
                self.process.headcount.leave();
            }
        }
    }

    fn park(&self, traveller: Traveller, direction: Direction, ctx: &mut Context) {
        if let Err(traveller) = self.parked.park(traveller, direction) {
            self.send_home(traveller, Outcome::Failed, ctx);
        }
    }

    fn send_home(&self, mut traveller: Traveller, outcome: Outcome, ctx: &mut Context) {
        let finished = traveller.session.end(outcome, ctx);
        self.settle(traveller, finished, ctx);
    }

    fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Lets the stages come to an end.
    fn close(&self) {
        self.closing.store(true, Ordering::Release);
        // It can only fail because 2^64 - 1 wake-ups are pending.
        let _ = rustix::io::write(&self.closed, &1_u64.to_ne_bytes());
        self.to_read.close();
        self.to_write.close();
        for client in self.clients_waited_for().iter() {
            // It may be gone already.
            let _ = rustix::net::shutdown(client, Shutdown::Both);
        }
    }

    /// Sends away who is still here.
    fn end_all(&self) -> io::Result<()> {
        let mut hands = self.hands()?;
        let mut left = self.parked.take_all();
        left.extend(self.to_read.drain());
        left.extend(self.to_write.drain());
        for traveller in left {
            self.send_home(traveller, Outcome::Stopped, &mut hands.ctx);
        }
        if let Some(log) = &mut hands.ctx.log {
            log.flush();
        }
        Ok(())
    }

    fn report(&self, subscription: &Subscription) {
        subscription.report(
            "pipeline",
            json!({
                "connections": self.process.headcount.inside(),
                "waiting_to_be_read": self.to_read.len(),
                "waiting_to_be_written": self.to_write.len(),
                "applications": self.applications.report(),
                "cache": crate::report::cache(&self.cache),
            }),
        );
    }
}

/// Of the stages two show that they move. The others wait for disks and for each other, as it should be.
const FOREMAN: usize = 0;
pub(super) const APPLICATIONS: usize = 1;

fn readers(tuning: &Tuning) -> usize {
    tuning.threads.unwrap_or(1).max(1)
}

fn writers(tuning: &Tuning) -> usize {
    tuning.writers.max(1)
}

/// Interest sets: of the listeners, of clients in each direction, of applications.
const LOOPS: usize = 4;

/// Clients that wait for a stage, at the most; who brings more waits with them.
const QUEUE_CAPACITY: usize = 1024;

/// Clients that a stage takes at a time: the longer the batch, the better the caches are used, and the longer the
/// other kind has to wait.
const BATCH_MAX: usize = 64;

/// For how long a poll stage rests at the most.
const POLL_REST_MAX: Duration = Duration::from_millis(1);

/// Events taken from the kernel at a time.
const EVENTS_PER_WAKE: usize = 256;

/// Data of events that are not a client's.
const CLOSED: u64 = 0;

const A_SECOND: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// How soon a drain's end or room for a client is looked for.
const SHORT: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

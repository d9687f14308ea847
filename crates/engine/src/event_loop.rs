//! The loop of every event-driven architecture: wait for events, take each client as far as it goes, wait again.
//!
//! ```text
//!        ┌────────────── epoll ◄─────────────────────────────┐
//!        ▼                                                   │ Readable, Writable
//!   listener ─► accept ► Client::advance ─► Need ────────────┤
//!   client ───────────────────┘ ▲            │ Turn: at the end of the round
//!   jobs done ──────────────────┤◄── Jobs ◄──┤ Job
//!   applications ───────────────┘◄─ Gateway ◄┘ Upstream
//! ```
//!
//! The loop registers a client edge-triggered, once, for both directions, and only when it has to wait for it. If the
//! request has arrived when the connection is accepted, the loop can answer and close it without ever registering it. A
//! socket that an application was given is watched for input only, until the loop has something to write itself.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use baton_cache::Upstreams;
use baton_session::agent_link::FlowEvent;
use baton_session::context::Context;
use baton_session::departures::Departures;
use baton_session::job::{Job, JobDone};
use baton_session::requests;
use baton_session::session::{Need, Session, UpstreamNeed, Wake};
use baton_shares::ClientKey;
use baton_telemetry::log::Outcome;
use baton_telemetry::metrics::Metric;
use baton_telemetry::stopwatch::Stopwatch;
use baton_upstream::Gateway;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use serde_json::{Value, json};

use crate::acceptor::{AcceptRound, Accepted, Acceptor};
use crate::client::Client;
use crate::clients::{Clients, Connection, Entry, Interest, Token};
use crate::connection_count::ConnectionCount;
use crate::eviction::{Among, Eviction};
use crate::heartbeat::Heart;
use crate::listen::Listener;
use crate::returns::Returns;
use crate::steering::{Orders, Subscription, WorkerPhase};
use crate::takeable::Takeable;

/// Runs blocking jobs for a loop: the loop itself, helper threads, or stages, which also run steps of clients.
pub(crate) trait Jobs<C> {
    /// Takes a job of a client, to be done by another thread, or by the loop itself.
    fn begin(&mut self, whose: Token, client: Option<ClientKey>, job: Job);
    /// Drops the jobs of a client that has gone, unless they are begun.
    fn forget(&mut self, whose: Token);
    /// Whether jobs wait for the loop itself.
    fn has_own(&self) -> bool {
        false
    }
    /// Does one of them, which blocks the loop.
    fn do_own(&mut self) -> Option<(Token, JobDone)> {
        None
    }
    /// Gives a runnable client to another thread. False: the loop runs its step itself.
    fn give_step(&mut self, _whose: Token, _client: &mut C) -> bool {
        false
    }
    /// Lets other threads start on what they were given, before the loop waits for events.
    fn rest(&mut self) {}
    /// Readable when there is something to take.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;
    /// Takes what is done, with the tokens of the clients that wait for it.
    fn take_done(&mut self, into: &mut Vec<(Token, Wake)>);
    /// For the status of the worker.
    fn report(&self) -> Value;
}

/// Observes a loop once a second and adjusts it.
pub(crate) trait Tuner<J> {
    /// A second has passed.
    fn tick(&mut self, ctx: &mut Context, jobs: &mut J, load: &Load);

    /// What it changed and why, for the status of the worker.
    fn report(&self) -> Value;
}

/// What a tuner is told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Connections open.
    pub(crate) connections: usize,
    /// Blocking jobs begun since the start.
    pub(crate) jobs: u64,
    /// Time spent outside of the wait for events since the start, in microseconds.
    pub(crate) busy_us: u64,
}

/// One event loop.
pub(crate) struct EventLoop<C, J> {
    epoll: OwnedFd,
    ctx: Takeable<Context>,
    clients: Clients<C>,
    acceptor: Acceptor,
    connection_count: ConnectionCount,
    upstreams: Upstreams,
    subscription: Subscription,
    jobs: J,
    tuner: Option<Box<dyn Tuner<J>>>,
    /// Clients whose next step waits for no event.
    runnable: VecDeque<Token>,
    done: Vec<(Token, Wake)>,
    tokens: Vec<Token>,
    jobs_begun: u64,
    /// Delegated requests of all clients; wraps around.
    requests_given: u32,
    busy: Stopwatch,
    next_second_ms: u64,
    next_publish_ms: u64,
    /// When a drain gives up.
    drain_until: Option<DrainDeadlines>,
    returns: Returns,
    eviction: Eviction,
}

impl<C: Client, J: Jobs<C>> EventLoop<C, J> {
    /// A loop that is not running yet.
    pub(crate) fn new(
        mut ctx: Context,
        acceptor: Acceptor,
        connection_count: ConnectionCount,
        subscription: Subscription,
        jobs: J,
        tuner: Option<Box<dyn Tuner<J>>>,
    ) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        for (descriptor, data) in [(subscription.descriptor(), ORDERS), (jobs.descriptor(), JOBS)] {
            if let Some(descriptor) = descriptor {
                epoll::add(&epoll, descriptor, EventData::new_u64(data), EventFlags::IN)?;
            }
        }
        ctx.is_of_loop = true;
        Ok(Self {
            upstreams: Upstreams::new(&epoll, ctx.shared_cache.clone())?,
            epoll,
            ctx: Takeable::new(ctx),
            clients: Clients::default(),
            acceptor,
            connection_count,
            subscription,
            jobs,
            tuner,
            runnable: VecDeque::new(),
            done: Vec::new(),
            tokens: Vec::new(),
            jobs_begun: 0,
            requests_given: 0,
            busy: Stopwatch::default(),
            next_second_ms: 0,
            next_publish_ms: 0,
            drain_until: None,
            returns: Returns::default(),
            eviction: Eviction::default(),
        })
    }

    /// Runs until it is stopped, or drained.
    pub(crate) fn run(mut self, mut heart: Heart) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS_PER_WAKE);
        self.ctx.clock.tick();
        loop {
            heart.beat();
            self.apply_new_orders()?;
            for event in &events {
                self.handle_event(event);
                heart.beat();
                // After each event: a request that arrives after an order finds it applied.
                self.apply_new_orders()?;
            }
            self.upstreams.handle_time(self.ctx.clock.now_ms());
            self.deliver_responses();
            for _ in 0..self.runnable.len() {
                if let Some(token) = self.runnable.pop_front() {
                    self.advance(token, Wake::Turn);
                }
            }
            // One each round: those who have no part in a disk, or in another's password, wait for one job at most.
            if let Some((token, done)) = self.jobs.do_own() {
                self.advance(token, Wake::Job(done));
            }
            self.handle_time();
            if let Some(agent) = &self.ctx.agent_link {
                agent.handle_time(self.ctx.clock.now_ms());
            }
            if self.ctx.draining && self.is_drained() {
                break;
            }
            events.clear();
            self.jobs.rest();
            let timeout = self.timeout();
            self.busy.stop();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if self.tuner.is_some() {
                self.busy.start();
            }
            self.ctx.clock.tick();
        }
        self.clients.all(&mut self.tokens);
        for token in std::mem::take(&mut self.tokens) {
            self.end(token, Outcome::Stopped);
        }
        if let Some(agent) = &self.ctx.agent_link {
            agent.flush(self.ctx.clock.now_ms());
        }
        self.ctx.log.flush();
        self.ctx.tally.publish();
        Ok(())
    }

    fn handle_event(&mut self, event: &Event) {
        let (data, flags) = (event.data.u64(), event.flags);
        match data {
            ORDERS => {} // Applied by the loop.
            JOBS => {
                self.jobs.take_done(&mut self.done);
                let mut done = std::mem::take(&mut self.done);
                for (token, wake) in done.drain(..) {
                    self.advance(token, wake);
                }
                self.done = done;
            }
            _ if Upstreams::owns(data) => {
                let begun_ns = begin_turn(&mut self.upstreams, &self.ctx);
                self.upstreams.handle_event(data, flags, self.ctx.clock.now_ms());
                // At once: what was just read is still in the CPU's caches, and its memory becomes free for the next.
                self.deliver_responses();
                end_turn(&mut self.upstreams, &self.ctx, begun_ns);
                self.upstreams.gateway.serve_released(self.ctx.clock.now_ms());
            }
            _ if Acceptor::owns(data) => self.accept(data),
            _ => {
                let token = Token::from_data(data);
                let hung_up = flags.intersects(HUNG_UP);
                let wake = if hung_up && self.is_unanswered(token) {
                    self.tell_trails(token);
                    Wake::End(Outcome::ClientGone)
                } else {
                    let (readable, input_ends) = (flags.intersects(INPUT), flags.intersects(INPUT_ENDS));
                    Wake::Ready { readable, input_ends, hung_up }
                };
                self.advance(token, wake);
            }
        }
    }

    /// Whether a client waits for an answer and cannot have received any of it.
    fn is_unanswered(&mut self, token: Token) -> bool {
        let Some(entry) = self.clients.get_mut(token) else { return false };
        entry.requests.names().any(|request| self.upstreams.is_unanswered(request))
    }

    /// Wakes the clients whose requests have events from the gateway.
    fn deliver_responses(&mut self) {
        while let Some(request) = self.upstreams.poll_ready() {
            if let Some((token, stream)) = self.clients.of_request(request) {
                let wake = requests::ready(stream, request, &mut self.upstreams);
                self.advance(token, wake);
            }
        }
        while let Some(event) = self.upstreams.gateway.poll_event() {
            self.ctx.warn(format_args!("{event}"));
        }
    }

    fn accept(&mut self, data: u64) {
        let round = self.acceptor.begin(data);
        self.accept_round(round);
    }

    fn accept_round(&mut self, mut round: AcceptRound) {
        while let Some(accepted) = self.acceptor.next(&mut round, self.room(), &self.epoll) {
            let (session, place) = match accepted {
                Accepted::Client { socket, peer, listener } => {
                    let Some(counted) = self.ctx.admit(peer) else {
                        self.ctx.tally.add(Metric::ConnectionsRefused, 1);
                        continue;
                    };
                    let place = match self.connection_count.admit(peer, &self.ctx) {
                        Ok(place) => place,
                        Err(client) => {
                            self.ctx.tally.add(Metric::ConnectionsOverShare, 1);
                            self.evict(Among::Only(client));
                            continue;
                        }
                    };
                    let mut session = Session::new(socket, peer, listener, &mut self.ctx);
                    session.note_counted(counted);
                    (session, place)
                }
                Accepted::TakenOver { socket, files, passport, listener, is_from_agent } => {
                    let (flow, counted) = (passport.flow, self.ctx.count(passport.peer));
                    let place = self.connection_count.enter(passport.peer, &self.ctx);
                    match Session::arrive(socket, files, *passport, listener, is_from_agent, &mut self.ctx) {
                        Some(mut session) => {
                            session.note_counted(counted);
                            self.ctx.note_flow(flow, FlowEvent::Taken);
                            (session, place)
                        }
                        None if flow.is_some() => {
                            self.lose(flow);
                            continue;
                        }
                        None => {
                            self.ctx.warn(format_args!(
                                "a connection of another process is closed: its listener serves something else here"
                            ));
                            continue;
                        }
                    }
                }
                Accepted::Lost { flow } => {
                    self.lose(Some(flow));
                    continue;
                }
                Accepted::Paused => {
                    if self.admitted() > 0 {
                        self.ctx.tally.add(Metric::AcceptsPaused, 1);
                    }
                    self.acceptor.pause(self.ctx.clock.now_ms(), &self.epoll);
                    self.make_room();
                    return;
                }
            };
            let Some(client) = C::begin(session, &mut self.ctx) else {
                self.ctx.tally.add(Metric::AcceptsPaused, 1);
                self.acceptor.run_out(self.ctx.clock.now_ms(), &self.epoll);
                return;
            };
            let token = self.clients.insert(client, place, self.ctx.clock.now_ms());
            self.advance(token, Wake::Turn);
        }
    }

    /// Ends connections of which little is lost if clients wait for places that there are not. A loop of one client serves it to
    /// its end.
    fn make_room(&mut self) {
        if self.acceptor.resume_ms().is_some() && self.room() == 0 && self.ctx.connections_admitted > 1 {
            self.evict(Among::All { first: self.connection_count.greediest() });
        }
    }

    /// Ends connections of which little is lost.
    fn evict(&mut self, among: Among) {
        let now_ms = self.ctx.clock.now_ms();
        if !self.eviction.take_due(now_ms) {
            return;
        }
        Eviction::choose(&self.clients, among, now_ms, &mut self.tokens);
        for token in std::mem::take(&mut self.tokens) {
            self.ctx.tally.add(Metric::ConnectionsEvicted, 1);
            self.end(token, Outcome::TimedOut);
        }
    }

    /// A connection of another host cannot be served here.
    fn lose(&self, flow: Option<u64>) {
        self.ctx.warn(format_args!(
            "a front-end has handed over a connection to an address where no site listens in clear: `listen` must have its port"
        ));
        self.ctx.note_flow(flow, FlowEvent::Gone);
    }

    /// Advances a client until it has to wait.
    fn advance(&mut self, token: Token, wake: Wake) {
        let Some(entry) = self.clients.get_mut(token) else { return };
        if matches!(wake, Wake::Job(_)) {
            entry.jobs -= 1;
        }
        let mut need = entry.client.advance(wake, &mut self.ctx);
        loop {
            if self.ctx.departures.is_some()
                && matches!(need, Need::Readable | Need::Writable | Need::Turn | Need::ResponseAwaited)
                && let Some(wake) = departure(entry, &mut self.upstreams.gateway, &self.ctx)
            {
                need = entry.client.advance(wake, &mut self.ctx);
            }
            match need {
                Need::Readable | Need::Writable
                    if let Some(wake) = farewell(&entry.client, &mut self.returns, &self.ctx) =>
                {
                    need = entry.client.advance(wake, &mut self.ctx);
                }
                Need::Readable | Need::Writable => {
                    let least = match need {
                        Need::Readable if entry.was_delegated => Interest::Input,
                        _ => Interest::InputAndOutput,
                    };
                    if entry.interest < least && watch(&self.epoll, token, entry, least).is_err() {
                        // No memory, or a limit on watched descriptors: this client cannot be served.
                        need = entry.client.advance(Wake::End(Outcome::Failed), &mut self.ctx);
                        continue;
                    }
                    break;
                }
                Need::Turn => {
                    if !self.jobs.give_step(token, &mut entry.client) {
                        self.runnable.push_back(token);
                    }
                    break;
                }
                Need::Job(job, client) => {
                    self.jobs_begun += 1;
                    entry.jobs += 1;
                    self.jobs.begin(token, client, job);
                    need = entry.client.advance(Wake::Resumed, &mut self.ctx);
                }
                Need::JobUnderWay => break,
                Need::Upstream(asked) => {
                    if let UpstreamNeed::Delegate(_, request) = &asked {
                        entry.was_delegated = true;
                        if entry.interest == Interest::InputAndOutput && request.upstream.pass.is_some() {
                            // A failure only costs needless wake-ups.
                            let _ = watch(&self.epoll, token, entry, Interest::Input);
                        }
                    }
                    let name = || {
                        self.requests_given = self.requests_given.wrapping_add(1);
                        token.name_request(self.requests_given)
                    };
                    let now_ms = self.ctx.clock.now_ms();
                    let begins = matches!(asked, UpstreamNeed::Delegate(..));
                    let begun_ns = begins.then(|| begin_turn(&mut self.upstreams, &self.ctx)).flatten();
                    let wake = entry.requests.handle_need(asked, &mut self.upstreams, name, now_ms);
                    end_turn(&mut self.upstreams, &self.ctx, begun_ns);
                    need = entry.client.advance(wake, &mut self.ctx);
                }
                Need::ResponseAwaited => {
                    // To notice a reset before the answer comes; otherwise sending it shows the reset.
                    if entry.interest == Interest::Nothing {
                        let _ = watch(&self.epoll, token, entry, Interest::Input);
                    }
                    break;
                }
                Need::Finished => {
                    if let Some(entry) = self.clients.remove(token) {
                        if entry.jobs > 0 {
                            self.jobs.forget(token);
                        }
                        if self.admitted() == 1 {
                            self.acceptor.resume(self.ctx.clock.now_ms());
                        }
                        for request in entry.requests.names() {
                            self.upstreams.abandon(request, self.ctx.clock.now_ms());
                        }
                        if entry.interest != Interest::Nothing && entry.client.socket().may_have_copies() {
                            // Where there are copies, closing takes nothing out of the interest set.
                            let _ = epoll::delete(&self.epoll, entry.client.socket());
                        }
                        entry.client.finish();
                    }
                    return;
                }
            }
        }
        self.clients.note_deadline(token, self.ctx.clock.now_ms());
    }

    /// Tells a client whose requests are about to be abandoned how far they have come, for its log lines.
    fn tell_trails(&mut self, token: Token) {
        let Some(entry) = self.clients.get_mut(token) else { return };
        let requests: Vec<_> = entry.requests.all().collect();
        for (stream, request) in requests {
            if let Some(trail) = self.upstreams.trail(request) {
                self.advance(token, Wake::ResponseEvents(stream, [trail].into_iter().collect()));
            }
        }
    }

    fn end(&mut self, token: Token, outcome: Outcome) {
        if self.clients.get_mut(token).is_some() {
            self.tell_trails(token);
            self.advance(token, Wake::End(outcome));
        }
    }

    /// How long the loop may wait for events; `None`: without a limit.
    fn timeout(&mut self) -> Option<rustix::event::Timespec> {
        if !self.runnable.is_empty() || self.jobs.has_own() {
            return Some(rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 });
        }
        let clients = self.clients.len() > 0 || self.tuner.is_some();
        let due = [
            clients.then_some(self.next_second_ms),
            self.ctx.tally.is_dirty().then_some(self.next_publish_ms),
            self.ctx.log.deadline_ms(),
            // A loop at its own limit notices when one of its clients leaves.
            self.acceptor.resume_ms().filter(|_| self.admitted() > 0),
            self.drain_until.map(|until| until.next_ms(self.ctx.clock.now_ms())),
            self.returns.again_ms(),
            self.upstreams.deadline_ms(),
            self.ctx.departures.as_ref().and_then(Departures::again_ms),
            self.ctx.agent_link.as_ref().and_then(|agent| agent.deadline_ms()),
        ];
        let wait_ms = due.into_iter().flatten().min()?.saturating_sub(self.ctx.clock.now_ms());
        rustix::event::Timespec::try_from(Duration::from_millis(wait_ms)).ok()
    }

    fn handle_time(&mut self) {
        let now_ms = self.ctx.clock.now_ms();
        if now_ms >= self.next_publish_ms {
            self.next_publish_ms = now_ms + PUBLISH_MS;
            if self.ctx.tally.is_dirty() {
                self.ctx.tally.publish();
            }
        }
        self.ctx.log.handle_time(now_ms);
        if let Some(departures) = &mut self.ctx.departures
            && departures.again_ms().is_some_and(|again_ms| now_ms >= again_ms)
        {
            departures.try_again();
            self.depart();
        }
        if self.returns.is_due(now_ms) {
            self.clients.returnable(&mut self.tokens);
            self.tokens.truncate(Returns::AT_A_TIME);
            self.see_off();
        }
        self.make_room();
        let has_room = self.room() > 0;
        self.acceptor.handle_time(now_ms, has_room, &self.epoll);
        if now_ms >= self.next_second_ms {
            self.next_second_ms = now_ms + 1000;
            self.handle_second(now_ms);
        }
    }

    fn handle_second(&mut self, now_ms: u64) {
        self.clients.overdue(now_ms, &mut self.tokens);
        let mut tokens = std::mem::take(&mut self.tokens);
        for token in tokens.drain(..) {
            self.advance(token, Wake::TimedOut);
        }
        self.tokens = tokens;
        if let Some(tuner) = &mut self.tuner {
            let (connections, jobs, busy_us) = (self.clients.len(), self.jobs_begun, self.busy.total_us());
            tuner.tick(&mut self.ctx, &mut self.jobs, &Load { connections, jobs, busy_us });
        }
    }

    /// What the status of the worker says of the loop.
    fn report(&self) -> Value {
        json!({
            "connections": self.clients.len(),
            "jobs": self.jobs.report(),
            "cache": crate::cache_status::report(&self.ctx.cache),
            "shared_cache": self.ctx.shared_cache.as_ref().map(|cache| cache.stats().report()),
            "applications": self.upstreams.gateway.report(),
            "ways_of_sending": self.ctx.send_ways.report(),
            "tuning": self.tuner.as_ref().map(|tuner| tuner.report()),
        })
    }

    fn apply_new_orders(&mut self) -> io::Result<()> {
        let Some(orders) = self.subscription.poll() else { return Ok(()) };
        if orders.wants_report {
            // The master adds up the counters when it has the reports, and both shall agree.
            self.ctx.tally.publish();
            self.subscription.report(self.report());
        }
        self.apply(&orders)
    }

    /// Lets another process go on with the clients that are between two requests.
    fn depart(&mut self) {
        self.clients.movable(&mut self.tokens);
        for token in std::mem::take(&mut self.tokens) {
            let entry = self.clients.get_mut(token);
            if let Some(wake) =
                entry.and_then(|entry| departure(entry, &mut self.upstreams.gateway, &self.ctx))
            {
                self.advance(token, wake);
            }
        }
    }

    fn apply(&mut self, orders: &Orders) -> io::Result<()> {
        self.ctx.plan = Arc::clone(&orders.plan);
        if self.ctx.departures.is_none()
            && orders.departures.is_some()
            && orders.phase != WorkerPhase::Serving
        {
            // First it takes what others have sent: the kernel may have announced that to this process alone. Then it gives all
            // away, and takes nothing back.
            self.leave()?;
            self.ctx.departures.clone_from(&orders.departures);
            self.depart();
        }
        let was_giving_back = std::mem::replace(&mut self.ctx.gives_back, orders.gives_back);
        if orders.gives_back && !was_giving_back {
            self.clients.returnable(&mut self.tokens);
            self.see_off();
        }
        match orders.phase {
            WorkerPhase::Serving => {
                orders.plan.peers().for_each(|peers| self.upstreams.gateway.watch(peers));
                for left in self.acceptor.listen(&orders.listeners, &self.epoll)? {
                    self.accept_round(Acceptor::finish_with(left));
                }
            }
            WorkerPhase::Lingering => {
                self.ctx.lingering = true;
                self.leave()?;
            }
            WorkerPhase::Draining(limits) => {
                self.ctx.begin_drain(limits.requests_ms);
                self.leave()?;
                self.upstreams.gateway.drain();
                let now_ms = self.ctx.clock.now_ms();
                self.drain_until.get_or_insert(DrainDeadlines {
                    requests_ms: now_ms.saturating_add(limits.requests_ms),
                    tunnels_ms: now_ms.saturating_add(limits.tunnels_ms),
                });
                self.clients.idle(&mut self.tokens);
                self.see_off();
            }
            WorkerPhase::Stopping => {
                self.ctx.draining = true;
                self.leave()?;
                self.drain_until = Some(DrainDeadlines { requests_ms: 0, tunnels_ms: 0 });
            }
        }
        Ok(())
    }

    /// Answers those of these idle clients that have already sent a request. All others are closed, or go back to their
    /// front-ends.
    fn see_off(&mut self) {
        for token in std::mem::take(&mut self.tokens) {
            self.advance(token, Wake::Ready { readable: true, input_ends: false, hung_up: false });
        }
    }

    /// Accepts the clients that are meant for this process alone, and no more.
    fn leave(&mut self) -> io::Result<()> {
        for round in self.acceptor.leave(&self.epoll)? {
            self.accept_round(round);
        }
        self.acceptor.listen(NONE, &self.epoll)?;
        Ok(())
    }

    /// How many more clients may be accepted.
    fn room(&self) -> usize {
        self.admitted().min(self.connection_count.room(&self.ctx))
    }

    /// How many more clients this loop admits, regardless of the room in the process.
    fn admitted(&self) -> usize {
        self.ctx.connections_admitted.saturating_sub(self.clients.len())
    }

    /// Whether a drain is over: no client is left, or the time of those that are. Ends clients whose time is over.
    fn is_drained(&mut self) -> bool {
        let now_ms = self.ctx.clock.now_ms();
        let Some(until) = self.drain_until.filter(|until| now_ms >= until.requests_ms) else {
            return self.clients.len() == 0;
        };
        if now_ms < until.tunnels_ms {
            self.clients.all(&mut self.tokens);
            for token in std::mem::take(&mut self.tokens) {
                if !self.has_tunnel(token) {
                    self.end(token, Outcome::Stopped);
                }
            }
        }
        now_ms >= until.tunnels_ms || self.clients.len() == 0
    }

    fn has_tunnel(&mut self, token: Token) -> bool {
        let Some(entry) = self.clients.get_mut(token) else { return false };
        entry.requests.names().any(|request| self.upstreams.gateway.is_tunnel(request))
    }
}

/// When a turn for upstreams begins, if it is to be timed: so the cost of relaying is known.
fn begin_turn(upstreams: &mut Upstreams, ctx: &Context) -> Option<u64> {
    upstreams.gateway.begin_turn().then(|| ctx.clock.exact_ns())
}

fn end_turn(upstreams: &mut Upstreams, ctx: &Context, begun_ns: Option<u64>) {
    if let Some(begun_ns) = begun_ns {
        upstreams.gateway.note_turn_took(ctx.clock.exact_ns() - begun_ns);
    }
}

/// When a drain gives up what is left.
#[derive(Clone, Copy, Debug)]
struct DrainDeadlines {
    requests_ms: u64,
    tunnels_ms: u64,
}

impl DrainDeadlines {
    /// The next of the two.
    fn next_ms(self, now_ms: u64) -> u64 {
        if now_ms < self.requests_ms { self.requests_ms } else { self.tunnels_ms }
    }
}

/// Lets a client leave, if another process goes on with it now.
fn departure<C: Connection>(entry: &Entry<C>, gateway: &mut Gateway, ctx: &Context) -> Option<Wake> {
    if !ctx.may_depart(entry.client.passport_version()) {
        return None;
    }
    match entry.requests.names().next() {
        None => Some(Wake::Depart(None)),
        Some(tunnel) => gateway.tunnel_end(tunnel).map(|end| Wake::Depart(Some(Box::new(end)))),
    }
}

/// How an idle client leaves a loop that drains, or whose node is drained; `None`: it stays.
fn farewell(client: &impl Connection, returns: &mut Returns, ctx: &Context) -> Option<Wake> {
    let goes_back = ctx.gives_connections_back() && client.may_go_back();
    if !(ctx.draining || goes_back) || !client.is_idle() || waits_to_depart(ctx, client) {
        return None;
    }
    match goes_back {
        true => returns.takes_one(ctx.clock.now_ms()).then_some(Wake::GoBack),
        false => Some(Wake::End(Outcome::Complete)),
    }
}

/// Whether another process goes on with a client, now or soon.
fn waits_to_depart(ctx: &Context, client: &impl Connection) -> bool {
    ctx.departures.as_ref().is_some_and(|departures| departures.are_possible_with(client.passport_version()))
}

/// Adds a client's socket to the interest set, or changes its events.
fn watch<C: Client>(
    epoll: &OwnedFd,
    token: Token,
    entry: &mut Entry<C>,
    interest: Interest,
) -> rustix::io::Result<()> {
    let data = EventData::new_u64(token.to_data());
    let events = match interest {
        Interest::Nothing => return Ok(()),
        Interest::Input => INPUT | EventFlags::ET,
        Interest::InputAndOutput => INPUT | EventFlags::OUT | EventFlags::ET,
    };
    match entry.interest {
        Interest::Nothing => epoll::add(epoll, entry.client.socket(), data, events)?,
        Interest::Input | Interest::InputAndOutput => {
            epoll::modify(epoll, entry.client.socket(), data, events)?;
        }
    }
    entry.interest = interest;
    Ok(())
}

const NONE: &[Arc<Listener>] = &[];

/// Events taken from the kernel at a time.
const EVENTS_PER_WAKE: usize = 256;

/// How old the shared counters may be while something is counted.
const PUBLISH_MS: u64 = 100;

/// The client will send nothing more.
const INPUT_ENDS: EventFlags = EventFlags::RDHUP.union(EventFlags::HUP).union(EventFlags::ERR);

/// The connection is over in both directions.
const HUNG_UP: EventFlags = EventFlags::HUP.union(EventFlags::ERR);

/// There is something to read, or the input has ended.
const INPUT: EventFlags = EventFlags::IN.union(INPUT_ENDS);

/// Event data of the orders' waker. Tokens of clients begin at 2^32.
const ORDERS: u64 = 0;
/// Event data of the waker for finished jobs.
const JOBS: u64 = 1;

#[cfg(test)]
mod tests;

//! One worker in a box: its sessions, their clients, its jobs, its application and its clock, all of which do what a
//! seed says.
//!
//! ```text
//!   agenda ─► client acts ─► link ─► poll ─► Session::step ─► Need ─┬► wait: its deadline is due when the clock says so
//!         ├─► job done ────────────────────────────▲                ├► job: done later, in any order
//!         ├─► application acts ─► sockets ─► round ─┤ Gateway ◄──────┴ Delegate, ResponseEvent
//!         └─► reload, drain, stop
//! ```
//!
//! The seed decides the order of events and the time between them; the server's code decides what a session does. After
//! every event the world checks that each wait has the right deadline, and that it can end.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use baton_cache::Upstreams;
use baton_content::{Blocking, Cache, CacheSettings};
use baton_response::send_way::{SendWay, SendWays};
use baton_session::context::{Context, Records};
use baton_session::job::Job;
use baton_session::requests::{self, Requests};
use baton_session::send_queue::{SendPolicy, SendfileMode};
use baton_session::session::{Need, Session, Stage, UpstreamNeed, Wake};
use baton_session::transport::Transport;
use baton_site::limits::Limits;
use baton_site::plan::Plan;
use baton_telemetry::log::Outcome;
use baton_telemetry::metrics::{Counters, Metric, Tally};
use baton_upstream::{Protocol, RequestId, TemporaryCounters, TemporaryFiles, TemporarySpace};
use rustix::event::epoll::{self, CreateFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::application::Application;
use super::cached::{REQUESTS_MAX, Shelf};
use super::cached_requests;
use super::choices::Choices;
use super::client::{Client, InputWait, Moment};
use super::clock;
use super::delegated;
use super::http1::Http1Client;
use super::http2::Http2Client;
use super::ledger::Ledger;
use super::link::ClientSocket;
use super::log::{SharedLog, address};
use super::request::{Bounds, Request};
use super::site::Folder;
use super::socket;
use super::tls_link::TlsLink;
use crate::disk;
use crate::memory::{self, Readiness};
use crate::tls_client::server;

/// What simulations have in common.
#[derive(Debug)]
pub(crate) struct Setting {
    folder: Folder,
    counters: Counters,
    log: SharedLog,
    temporary: TemporaryFiles,
}

impl Setting {
    pub(crate) fn create() -> Self {
        let counters = Counters::allocate(1).unwrap().remove(0);
        let [bytes, refused] = [Metric::TemporaryBytes, Metric::TemporaryRefused].map(|it| counters.cell(it));
        let space = TemporarySpace::new(TemporaryCounters { bytes, refused }, Arc::new([bytes]), |_| {});
        let temporary = TemporaryFiles { folder: std::env::temp_dir().into(), space };
        Self { folder: Folder::create(), counters, log: SharedLog::create(counters), temporary }
    }
}

/// One worker and its clients.
pub(crate) struct World<'a> {
    setting: &'a Setting,
    choices: Choices,
    ctx: Context,
    now_ms: u64,
    agenda: BTreeMap<(u64, usize, usize), Event>,
    events: usize,
    seats: Vec<Seat>,
    upstreams: Upstreams,
    /// What is cached, if anything.
    shelf: Option<Shelf>,
    /// What the gateway waits on.
    epoll: OwnedFd,
    application: Application,
    protocol: Protocol,
    /// Requests that were given to the application so far.
    requests_given: u32,
    is_round_due: bool,
    is_application_due: bool,
    /// How long the application may delay its work.
    application_pause_ms: u64,
    /// Plans of the past, which nothing may hold at the end.
    old_plans: Vec<Weak<Plan>>,
    version: u32,
    /// Whether reading and sending are steps of their own.
    in_stages: bool,
    is_disk_cold: bool,
    /// Whether bodies of the application are digested.
    digests: bool,
    /// Parts of its memory that the shared cache may take.
    memory_shares: Choices,
    trace: Option<&'a mut dyn FnMut(String)>,
    /// When sessions move to another process, in a hundred chances.
    moves: (Choices, u8),
    /// What happened, as one number.
    fingerprint: u64,
}

/// A client, and the session that serves it.
struct Seat {
    client: Box<dyn Client>,
    session: Option<Session>,
    accepted_ms: u64,
    is_poll_due: bool,
    /// Its requests that the application has.
    requests: Requests,
    /// Jobs that work for it.
    jobs: usize,
    /// When the application's last event reached it.
    heard_ms: u64,
    /// What the session waits for.
    waits: Waits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    Nothing,
    Input,
    Room,
    Job,
    Application,
}

#[derive(Debug)]
enum Event {
    Connect(Box<dyn Client>, Box<Transport>),
    Act(usize),
    Poll(usize),
    Turn(usize),
    JobDone(usize, Job),
    /// The gateway handles the events of its sockets.
    GatewayRound,
    ApplicationActs,
    Reload,
    Drain,
    Stop,
}

impl<'a> World<'a> {
    pub(crate) fn new(setting: &'a Setting, seed: u64, trace: Option<&'a mut dyn FnMut(String)>) -> Self {
        let mut choices = Choices::new(seed);
        let (disk_seed, cold_percent) = (choices.seed(), choices.one(&[0, 0, 20, 60]));
        disk::set(disk_seed, cold_percent);
        let limits = limits(&mut choices);
        let protocol = choices.one(&[Protocol::FastCgi, Protocol::FastCgi, Protocol::Scgi]);
        // A choice of its own: most seeds keep their scenario.
        let is_proxied = Choices::new(seed.wrapping_mul(PRIME).wrapping_add(1)).chance(40);
        let protocol = if is_proxied { Protocol::Http1 } else { protocol };
        let mut of_moves = Choices::new(seed.wrapping_mul(PRIME).wrapping_add(4));
        let percent = of_moves.one(&[0, 0, 10, 60]);
        let moves = (of_moves, percent);
        clock::set(START_MS);
        // The same here.
        let mut of_cache = Choices::new(seed.wrapping_mul(PRIME).wrapping_add(2));
        let is_cached = protocol != Protocol::Scgi && of_cache.chance(40);
        let is_ample = Choices::new(seed.wrapping_mul(PRIME).wrapping_add(3)).chance(30);
        let shelf = is_cached.then(|| Shelf::open(setting.counters, is_ample, &mut of_cache));
        let digests = Choices::new(seed.wrapping_mul(PRIME).wrapping_add(5)).chance(30);
        let applied = setting.folder.application(&setting.temporary, protocol, &mut choices);
        let plan = Arc::new(setting.folder.plan(limits, 0, &applied, shelf.as_ref(), digests, &mut choices));
        let cache = CacheSettings {
            heads: choices.chance(80),
            names: choices.chance(80),
            files: choices.chance(80),
            memory_file_bytes_max: choices.one(&[0, 1_000, 128 << 10]),
            memory_bytes_max: choices.one(&[20_000, 64 << 20]),
            revalidate_ms: choices.one(&[0, 1_000]),
            ..CacheSettings::default()
        };
        let send = SendPolicy {
            sendfile: choices.one(&[SendfileMode::NonBlocking, SendfileMode::Never]),
            quantum_bytes: choices.one(&[10_000, 1 << 20]) as u64,
            test_residency: choices.chance(50),
            is_resident: disk::is_resident,
            kernel_tls: false,
        };
        let send_ways = SendWays::new(choices.one(&[SendWay::Memory, SendWay::File]));
        let records =
            Records { tally: Tally::new(setting.counters, None), log: setting.log.begin(), warnings: |_| {} };
        let mut ctx =
            Context::new(plan, Arc::new(Cache::new(cache)), Blocking::Allowed, send, send_ways, records);
        ctx.find = disk::find;
        ctx.shared_cache = shelf.as_ref().map(|shelf| Arc::clone(&shelf.shared));
        let epoll = epoll::create(CreateFlags::CLOEXEC).unwrap();
        let ledger = match &shelf {
            Some(shelf) => Rc::clone(&shelf.ledger),
            None => Rc::new(Ledger::new(false)),
        };
        let upstreams = Upstreams::new(&epoll, ctx.shared_cache.clone()).unwrap();
        let mut world = Self {
            upstreams: upstreams.with_precise_clock(clock::now_us),
            shelf,
            epoll,
            application: Application::listen(&setting.folder, ledger, protocol, &mut choices),
            protocol,
            requests_given: 0,
            is_round_due: false,
            is_application_due: false,
            application_pause_ms: choices.one(&[1, 5, 100]) as u64,
            setting,
            ctx,
            now_ms: START_MS,
            agenda: BTreeMap::new(),
            events: 0,
            seats: Vec::new(),
            old_plans: Vec::new(),
            version: 0,
            in_stages: choices.chance(20),
            is_disk_cold: cold_percent > 0,
            digests,
            memory_shares: Choices::new(seed.wrapping_mul(PRIME).wrapping_add(6)),
            trace,
            moves,
            fingerprint: seed,
            choices,
        };
        world.set_time(START_MS);
        // Choices of their own: a seed whose clients all speak HTTP/1 keeps its scenario.
        world.invite(&mut Choices::new(seed.wrapping_mul(PRIME)));
        world
    }

    /// Decides when clients connect, and what happens to the worker.
    fn invite(&mut self, versions: &mut Choices) {
        let limits = &self.ctx.plan.limits;
        // A long body waits in the socket's buffer while the application reads a little at a time.
        let is_read_soon = self.application_pause_ms < 100 || limits.body_bytes_max < 10_000;
        let bounds = Bounds {
            is_http2: false,
            protocol: self.protocol,
            digests: self.digests,
            is_prompt: self.application.is_prompt() && is_read_soon,
            for_application: self.choices.one(&[0, 10, 60, 95]).max(if self.shelf.is_some() { 60 } else { 0 })
                as u8,
            body_bytes_max: limits.body_bytes_max as usize,
            ranges_max: limits.ranges_max,
        };
        let mut at_ms = self.now_ms;
        let shelf = self.shelf.as_ref();
        for number in 0..self.choices.number(1..6) {
            let mut choices = self.choices.fork();
            let bounds = Bounds { is_http2: versions.chance(40), ..bounds };
            let numbers = number * REQUESTS_MAX..number * REQUESTS_MAX + choices.number(0..12);
            let requests = numbers
                .map(|number| choose(&self.setting.folder, shelf, bounds, number, &mut choices))
                .collect();
            let (transport, end) = connection(address(number), bounds.is_http2, &mut choices);
            let client: Box<dyn Client> = match bounds.is_http2 {
                true => Box::new(Http2Client::new(end, requests, self.now_ms, &mut choices)),
                false => Box::new(Http1Client::new(end, requests, self.now_ms, &mut choices)),
            };
            at_ms += self.choices.ms(0..100);
            self.agenda.insert((at_ms, 0, number), Event::Connect(client, transport.into()));
        }
        for _ in 0..self.choices.number(0..3) {
            let after_ms = self.choices.size(10_000) as u64;
            self.later(after_ms, Event::Reload);
        }
        if self.choices.chance(30) {
            let (drain_ms, stop_ms) = (self.choices.size(10_000) as u64, self.choices.size(10_000) as u64);
            self.later(drain_ms, Event::Drain);
            self.later(drain_ms + stop_ms, Event::Stop);
        }
    }

    /// Runs until no event is left, and checks the result. The same seed has the same fingerprint.
    pub(crate) fn run(mut self) -> u64 {
        let before = Totals::of(&self.setting.counters);
        while let Some(at_ms) = self.next_ms() {
            self.events += 1;
            assert!(self.events < EVENTS_MAX, "it does not end");
            self.set_time(at_ms);
            let overdue = self
                .seats
                .iter()
                .position(|seat| seat.session.as_ref().is_some_and(|session| session.deadline_ms() <= at_ms));
            if let Some(who) = overdue {
                self.time_out(who);
            } else if self.upstreams.deadline_ms().is_some_and(|due_ms| due_ms <= at_ms) {
                self.gateway_round();
            } else if let Some((_, event)) = self.agenda.pop_first() {
                self.handle(event);
            }
            self.note_application();
            self.upstreams.check_invariants();
            self.seats.iter().filter_map(|seat| seat.session.as_ref()).for_each(Session::check_invariants);
        }
        self.finish(&before)
    }

    /// When the next thing happens.
    fn next_ms(&self) -> Option<u64> {
        let deadlines = self.seats.iter().filter_map(|seat| seat.session.as_ref()).map(Session::deadline_ms);
        let deadline = deadlines.filter(|&deadline_ms| deadline_ms != u64::MAX).min();
        let event = self.agenda.first_key_value().map(|((at_ms, ..), _)| *at_ms);
        let gateway = self.upstreams.deadline_ms().map(|due_ms| due_ms.max(self.now_ms));
        deadline.into_iter().chain(event).chain(gateway).min()
    }

    fn set_time(&mut self, now_ms: u64) {
        assert!(now_ms >= self.now_ms, "a deadline of {now_ms} was passed over at {}", self.now_ms);
        self.now_ms = now_ms;
        clock::set(now_ms);
        self.ctx.clock.set(now_ms, clock::unix_seconds());
    }

    fn later(&mut self, after_ms: u64, event: Event) {
        let key =
            (self.now_ms + after_ms, self.choices.number(0..1000), self.events * 1000 + self.agenda.len());
        self.agenda.insert(key, event);
    }

    fn note(&mut self, what: impl FnOnce() -> String, number: usize) {
        self.fingerprint =
            self.fingerprint.rotate_left(5) ^ self.now_ms ^ (number as u64).wrapping_mul(PRIME);
        if let Some(trace) = &mut self.trace {
            trace(format!("{:>7} {}", self.now_ms - START_MS, what()));
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Connect(client, transport) => {
                let who = self.seats.len();
                self.note(|| format!("client {who} connects"), who);
                let session = Session::over(*transport, 0, &mut self.ctx);
                self.seats.push(Seat {
                    client,
                    session: Some(session),
                    accepted_ms: self.now_ms,
                    is_poll_due: false,
                    requests: Requests::default(),
                    jobs: 0,
                    heard_ms: 0,
                    waits: Waits::Nothing,
                });
                self.later(0, Event::Act(who));
                let after_ms = self.choices.ms(0..10);
                self.later(after_ms, Event::Turn(who));
            }
            Event::Act(who) => {
                self.note(|| format!("client {who} acts"), who);
                if let Some(after_ms) = self.seats[who].client.act(&mut self.choices) {
                    self.later(after_ms, Event::Act(who));
                }
                self.note_readiness(who);
            }
            Event::Poll(who) => {
                self.seats[who].is_poll_due = false;
                let Some(event) = self.seats[who].client.link_mut().take_readiness() else { return };
                self.note(|| format!("client {who}: {event:?}"), who);
                let Readiness { readable, input_ends, hung_up, .. } = event;
                let is_unanswered = |request| self.upstreams.is_unanswered(request);
                let wake = match hung_up && self.seats[who].requests.names().any(is_unanswered) {
                    true => Wake::End(Outcome::ClientGone),
                    false => Wake::Ready { readable, input_ends, hung_up },
                };
                self.advance(who, wake);
            }
            Event::Turn(who) => self.advance(who, Wake::Turn),
            Event::JobDone(who, job) => {
                self.note(|| format!("job for client {who} is done"), who);
                self.seats[who].jobs -= 1;
                self.advance(who, Wake::Job(job.run()));
            }
            Event::GatewayRound => {
                self.is_round_due = false;
                self.gateway_round();
            }
            Event::ApplicationActs => {
                self.is_application_due = false;
                self.note(|| "the application acts".into(), 0);
                self.application.act(&self.setting.folder, &mut self.choices);
                let moment = self.moment();
                for who in 0..self.seats.len() {
                    // It may have written to them.
                    self.seats[who].client.observe(moment);
                    self.note_readiness(who);
                }
            }
            Event::Reload => {
                self.version += 1;
                self.note(|| "reload".into(), self.version as usize);
                if let Some(shelf) = &self.shelf {
                    // As good a moment as any for memory to become short, or not.
                    shelf.shared.set_memory_share(self.memory_shares.one(&[0, 300, 1_000]), self.now_ms);
                }
                let mut limits = self.ctx.plan.limits.clone();
                limits.pipelined_max = self.choices.one(&[1, 3, 64]);
                let setting = self.setting;
                let applied =
                    setting.folder.application(&setting.temporary, self.protocol, &mut self.choices);
                let plan = setting.folder.plan(
                    limits,
                    self.version,
                    &applied,
                    self.shelf.as_ref(),
                    self.digests,
                    &mut self.choices,
                );
                self.old_plans.push(Arc::downgrade(&self.ctx.plan));
                self.ctx.plan = Arc::new(plan);
            }
            Event::Drain => {
                self.note(|| "drain".into(), 0);
                self.ctx.draining = true;
                self.upstreams.gateway.drain();
                for who in 0..self.seats.len() {
                    if self.seats[who].session.as_ref().is_some_and(Session::is_idle) {
                        self.advance(who, Wake::Ready { readable: true, input_ends: false, hung_up: false });
                    }
                }
            }
            Event::Stop => {
                self.note(|| "stop".into(), 0);
                for who in 0..self.seats.len() {
                    self.advance(who, Wake::End(Outcome::Stopped));
                }
            }
        }
    }

    /// What an edge-triggered poller is told, it tells some time later.
    fn note_readiness(&mut self, who: usize) {
        let seat = &mut self.seats[who];
        if seat.client.link().has_readiness() && seat.session.is_some() && !seat.is_poll_due {
            seat.is_poll_due = true;
            let after_ms = if self.choices.chance(80) { 0 } else { self.choices.ms(0..50) };
            self.later(after_ms, Event::Poll(who));
        }
    }

    /// One round of the loop that the gateway belongs to.
    fn gateway_round(&mut self) {
        self.note(|| "a round of the gateway".into(), 0);
        let mut events: Vec<epoll::Event> = Vec::with_capacity(16);
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&at_once)).unwrap();
        for event in &events {
            self.upstreams.handle_event(event.data.u64(), event.flags, self.now_ms);
            self.deliver_responses();
            self.upstreams.gateway.serve_released(self.now_ms);
        }
        self.upstreams.handle_time(self.now_ms);
        self.deliver_responses();
    }

    fn deliver_responses(&mut self) {
        while let Some(whose) = self.upstreams.poll_ready() {
            let who = whose.number() as u32 as usize;
            let Some(stream) = self.seats[who].requests.stream_of(whose) else { continue };
            let wake = requests::ready(stream, whose, &mut self.upstreams);
            self.advance(who, wake);
        }
    }

    /// Schedules the gateway and the application, if there is something for them to do.
    fn note_application(&mut self) {
        let mut watched = [PollFd::new(&self.epoll, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        if !self.is_round_due && poll(&mut watched, Some(&at_once)).unwrap() > 0 {
            self.is_round_due = true;
            let after_ms = self.choices.ms(0..2);
            self.later(after_ms, Event::GatewayRound);
        }
        if !self.is_application_due && self.application.has_work() {
            self.is_application_due = true;
            let after_ms = self.choices.ms(0..self.application_pause_ms);
            self.later(after_ms, Event::ApplicationActs);
        }
    }

    fn time_out(&mut self, who: usize) {
        self.note(|| format!("the time of client {who} is over"), who);
        let rate = &self.ctx.plan.limits;
        let least = (rate.send_rate_min_bytes_per_s * rate.send_timeout_ms / 1000).max(1) as usize;
        let since_ms = self.now_ms.saturating_sub(rate.send_timeout_ms) + 1;
        let was_sending = self.seats[who].waits == Waits::Room;
        let client = &self.seats[who].client;
        let is_exact = client.link().is_in_memory() && !client.link().is_sealed();
        let is_fast = is_exact && client.taken_since(since_ms) >= least;
        let times = self.seats[who].client.concurrent_max();
        let deadline_ms = |world: &mut Self| {
            world.advance(who, Wake::TimedOut);
            world.seats[who].session.as_ref().map_or(u64::MAX, Session::deadline_ms)
        };
        let is_done = (0..times).any(|_| deadline_ms(self) > self.now_ms);
        assert!(is_done, "client {who}: what was to be done in time is not done");
        let has_ended = self.seats[who].session.is_none();
        assert!(!was_sending || !is_fast || !has_ended, "client {who} takes fast enough");
    }

    fn wake(&mut self, who: usize, wake: Wake) -> Need {
        let Some(session) = &mut self.seats[who].session else { return Need::Finished };
        match session.handle_wake(wake, &mut self.ctx) {
            Some(need) => need,
            None => step(session, &mut self.ctx, self.in_stages),
        }
    }

    /// Lets another process go on with a session, perhaps: all that it keeps is what a message has.
    fn move_at_random(&mut self, who: usize) -> bool {
        let (moves, percent) = &mut self.moves;
        // Tunnels move with what the gateway has of them.
        let may_move = |session: &Session| session.passport_version().is_some() && !session.is_delegated();
        if !moves.chance(*percent) || !self.seats[who].session.as_ref().is_some_and(may_move) {
            return false;
        }
        let moved = self.seats[who].session.take().map(|session| session.moved(&mut self.ctx));
        self.seats[who].session = moved;
        self.note(|| format!("client {who} moves"), who);
        true
    }

    /// Advances a session until it has to wait, like an event loop.
    fn advance(&mut self, who: usize, wake: Wake) {
        if self.seats[who].session.is_none() {
            return;
        }
        let by_itself = !matches!(wake, Wake::TimedOut | Wake::End(_));
        let mut need = self.wake(who, wake);
        let mut ended_by_itself = None;
        loop {
            if matches!(need, Need::Readable | Need::Writable | Need::Turn) && self.move_at_random(who) {
                need = self.wake(who, Wake::Turn);
            }
            let Some(session) = &mut self.seats[who].session else { return };
            match need {
                Need::Readable | Need::Writable if self.ctx.draining && session.is_idle() => {
                    need = session.end(Outcome::Complete, &mut self.ctx);
                }
                Need::Readable | Need::Writable => {
                    let waits = if matches!(need, Need::Readable) { Waits::Input } else { Waits::Room };
                    self.seats[who].waits = waits;
                    break;
                }
                Need::Turn => {
                    self.seats[who].waits = Waits::Nothing;
                    self.later(0, Event::Turn(who));
                    break;
                }
                Need::Job(job, _) => {
                    let has_answers = !matches!(job, Job::PageIn { .. }) && session.stage() == Stage::Write;
                    self.seats[who].waits = Waits::Job;
                    self.seats[who].jobs += 1;
                    let after_ms = self.choices.ms(0..200);
                    self.later(after_ms, Event::JobDone(who, job));
                    need = self.wake(who, Wake::Resumed);
                    let waits = has_answers && matches!(need, Need::JobUnderWay);
                    assert!(!waits, "answers wait for the disk of others");
                }
                Need::JobUnderWay => break,
                Need::Upstream(asked) => {
                    if let UpstreamNeed::ResponseEvents(_) = asked {
                        self.seats[who].heard_ms = self.now_ms;
                    }
                    let name = || {
                        self.requests_given += 1;
                        name_request(who, self.requests_given)
                    };
                    let requests = &mut self.seats[who].requests;
                    let wake = requests.handle_need(asked, &mut self.upstreams, name, self.now_ms);
                    need = self.wake(who, wake);
                }
                Need::ResponseAwaited => {
                    self.seats[who].waits = Waits::Application;
                    break;
                }
                Need::Finished => {
                    self.seats[who].session = None;
                    for request in std::mem::take(&mut self.seats[who].requests).names() {
                        self.upstreams.abandon(request, self.now_ms);
                    }
                    ended_by_itself = Some(by_itself);
                    break;
                }
            }
        }
        let moment = self.moment();
        self.seats[who].client.observe(moment);
        if let Some(by_itself) = ended_by_itself {
            self.seats[who].client.check_end(who, by_itself);
        }
        self.check_wait(who);
        self.note_readiness(who);
        let read = self.seats[who].client.link().bytes_read();
        let answers = self.seats[who].client.answers();
        let waits = self.seats[who].session.as_ref().map(|_| self.seats[who].waits);
        self.note(
            || format!("client {who}: {read} bytes read, {answers} answers, waits for {waits:?}"),
            read,
        );
    }

    fn moment(&self) -> Moment {
        Moment {
            now_ms: self.now_ms,
            unix_seconds: clock::unix_seconds(),
            version: self.version,
            is_draining: self.ctx.draining,
            is_disk_cold: self.is_disk_cold,
            requests_max: self.ctx.plan.limits.requests_per_connection_max as usize,
        }
    }

    /// Checks that a waiting session waits for something that can happen, and not longer than it may.
    fn check_wait(&mut self, who: usize) {
        let seat = &mut self.seats[who];
        let Some(session) = &seat.session else { return };
        let (limits, deadline_ms) = (&self.ctx.plan.limits, session.deadline_ms());
        let link = seat.client.link();
        match seat.waits {
            Waits::Nothing | Waits::Job => {}
            // With HTTP/2, what is to be sent next can wait for a disk while the client is heard.
            Waits::Room if seat.jobs > 0 => {}
            Waits::Application => {
                let has_end = deadline_ms != u64::MAX || self.upstreams.deadline_ms().is_some();
                assert!(has_end, "client {who} waits for an application forever");
                let latest_ms = self.now_ms + limits.body_timeout_ms;
                let is_bounded = deadline_ms == u64::MAX || deadline_ms <= latest_ms;
                assert!(is_bounded, "client {who}: {deadline_ms} to send more of its body");
            }
            Waits::Room => {
                assert!(!link.has_room() || link.has_readiness(), "client {who}: there is room");
                // A handshake has the time of a head.
                let handshake_ms = if link.is_sealed() { limits.head_timeout_ms } else { 0 };
                let latest_ms = self.now_ms + limits.send_timeout_ms.max(handshake_ms);
                assert!(deadline_ms <= latest_ms, "client {who}: {deadline_ms} to take more");
            }
            Waits::Input => {
                seat.client.check_input_wait(&InputWait {
                    who,
                    now_ms: self.now_ms,
                    deadline_ms,
                    accepted_ms: seat.accepted_ms,
                    heard_ms: seat.heard_ms,
                    is_idle: session.is_idle(),
                    has_job: seat.jobs > 0,
                    delegated: &seat.requests,
                    limits,
                });
            }
        }
    }

    /// Checks what is left when no event is left.
    fn finish(mut self, before: &Totals) -> u64 {
        for (who, seat) in self.seats.iter().enumerate() {
            assert!(seat.session.is_none(), "client {who} is held for ever: {:?}", seat.waits);
            assert!(seat.client.link().is_closed_by_server(), "the connection of client {who} is still open");
        }
        for pool in self.upstreams.gateway.report().as_array().into_iter().flatten() {
            for held in ["connections", "busy", "waiting", "body_chunks"] {
                assert_eq!(pool[held], 0, "{held} of an application without requests: {pool}");
            }
        }
        if let Some(shelf) = &self.shelf {
            shelf.ledger.check_fetches();
        }
        assert!(self.upstreams.is_at_rest(), "the cache has requests or fetches that are over");
        let log = std::mem::take(&mut self.ctx.log);
        let lines = self.setting.log.take(log);
        let requests = lines.len();
        for (who, seat) in self.seats.iter().enumerate() {
            let own: Vec<_> = lines.iter().filter(|line| line.client == who).collect();
            if let Some(trace) = &mut self.trace {
                trace(format!("log of client {who}: {own:#?}"));
            }
            seat.client.check_log(who, &own);
        }
        drop(self.ctx);
        assert!(self.old_plans.iter().all(|plan| plan.upgrade().is_none()), "a plan of the past is held");
        let after = Totals::of(&self.setting.counters);
        assert_eq!(after.temporary_bytes, 0, "temporary files are held");
        assert_eq!(after.open, 0, "connections are counted that are not there");
        assert_eq!(after.requests - before.requests, requests as u64, "requests counted, and lines logged");
        self.fingerprint
    }
}

fn step(session: &mut Session, ctx: &mut Context, in_stages: bool) -> Need {
    if !in_stages {
        return session.step(ctx, Stage::Any);
    }
    match session.step(ctx, session.stage()) {
        // The half that sends begins where the one that reads ends.
        Need::Writable => session.step(ctx, Stage::Write),
        need => need,
    }
}

/// A request of any kind.
fn choose(
    folder: &Folder,
    shelf: Option<&Shelf>,
    bounds: Bounds,
    number: usize,
    choices: &mut Choices,
) -> Request {
    let is_for_application = choices.chance(bounds.for_application);
    match shelf.filter(|_| is_for_application && choices.chance(80)) {
        Some(shelf) => cached_requests::request(shelf, bounds, number, choices),
        None if is_for_application => delegated::request(folder, bounds, number, choices),
        None => Request::choose(folder, bounds, number, choices),
    }
}

/// A connection of either kind.
fn connection(peer: SocketAddr, is_http2: bool, choices: &mut Choices) -> (Transport, Box<dyn ClientSocket>) {
    if choices.chance(40) {
        let (server_end, client_end) = socket::connect(choices.one(&[5_000, 100_000]));
        return (Transport::new(server_end, Some(peer), None), Box::new(client_end));
    }
    let room = choices.one(&[0, 100, 10_000, 1_000_000]);
    let (server_end, client_end) = memory::connect(room, choices.chance(70));
    if choices.chance(40) {
        let client_end = TlsLink::new(client_end, choices.one(&[20, 300, 2_000, 1_000_000]), is_http2);
        return (memory::transport(server_end, peer, Some(&server())), Box::new(client_end));
    }
    (memory::transport(server_end, peer, None), Box::new(client_end))
}

fn limits(choices: &mut Choices) -> Limits {
    Limits {
        body_bytes_max: choices.one(&[2_000, 2_000, 2_000, 150_000]) as u64,
        requests_per_connection_max: choices.one(&[1, 3, 1_000, 1_000, 1_000, 1_000]),
        pipelined_max: choices.one(&[1, 3, 64]),
        ranges_max: choices.one(&[1, 3, 16]),
        // All are different, so that a deadline of another wait shows.
        head_timeout_ms: 3_000,
        body_timeout_ms: 4_100,
        idle_timeout_ms: 5_300,
        send_timeout_ms: 2_700,
        linger_timeout_ms: 1_900,
        send_rate_min_bytes_per_s: choices.one(&[0, 100]),
        ..Limits::default()
    }
}

/// The name of a client's request at the application: the `number`th of all.
fn name_request(who: usize, number: u32) -> RequestId {
    RequestId::new(u64::from(number) << 32 | who as u64)
}

/// The counters.
struct Totals {
    open: u64,
    temporary_bytes: u64,
    requests: u64,
}

impl Totals {
    fn of(counters: &Counters) -> Self {
        let is_outcome = |metric: &&Metric| metric.name() == Metric::OutcomeComplete.name();
        let requests = Metric::ALL.iter().filter(is_outcome).map(|&metric| counters.get(metric)).sum();
        let (open, temporary_bytes) =
            (counters.get(Metric::ConnectionsOpen), counters.get(Metric::TemporaryBytes));
        Self { open, temporary_bytes, requests }
    }
}

/// The clock begins somewhere.
const START_MS: u64 = 1_000_000;

/// More events than any seed has reason for: one that uploads half a megabyte in pieces of a few bytes has 100,000.
const EVENTS_MAX: usize = 1_000_000;

const PRIME: u64 = 0x9E37_79B9_7F4A_7C15;

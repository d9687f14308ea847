//! One worker in a box: its sessions, their clients, its jobs and its clock, all of which do what a seed says.
//!
//! ```text
//!   agenda ─► client acts ─► link ─► poll ─► Session::step ─► Need ─┬► wait: its deadline is due when the clock says so
//!      ▲                                                            └► job: done later, in any order
//!      └──────────────────────── reload, drain ◄────────────────────
//! ```
//!
//! The order of events, and the time between them, are the seed's; what a session does with them is the server's. After
//! every event the world looks whether a wait has the right deadline and whether it can end at all.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use baton_content::{Blocking, Cache, CacheSettings};

use super::choices::Choices;
use super::client::{Client, Moment};
use super::disk;
use super::link::{Readiness, connect};
use super::log::{SharedLog, address};
use super::request::{Bounds, Request};
use super::site::Folder;
use crate::client::Wake;
use crate::context::{Context, Records};
use crate::job::Job;
use crate::log::Outcome;
use crate::metrics::{Counters, Metric, Tally};
use crate::outlet::SendPolicy;
use crate::plan::Plan;
use crate::session::{Need, Session, Stage};
use crate::settings::{Limits, SendWay, SendfileMode};
use crate::transport::Transport;
use crate::ways::Ways;

/// What simulations have in common.
#[derive(Debug)]
pub(crate) struct Setting {
    folder: Folder,
    counters: Counters,
    log: SharedLog,
}

impl Setting {
    pub(crate) fn create() -> Self {
        let counters = Counters::allocate(1).unwrap().remove(0);
        Self { folder: Folder::create(), counters, log: SharedLog::create(counters) }
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
    /// Plans of the past, which nothing may hold at the end.
    old_plans: Vec<Weak<Plan>>,
    version: u32,
    /// Whether reading and sending are steps of their own.
    in_stages: bool,
    trace: Option<&'a mut dyn FnMut(String)>,
    /// What happened, as one number.
    fingerprint: u64,
}

/// A client, and the session that serves it.
struct Seat {
    client: Client,
    session: Option<Session>,
    accepted_ms: u64,
    is_poll_due: bool,
    /// What the session waits for.
    waits: Waits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    Nothing,
    Input,
    Room,
    Job,
}

#[derive(Debug)]
enum Event {
    Connect(Box<Client>, Box<Transport>),
    Act(usize),
    Poll(usize),
    Turn(usize),
    JobDone(usize, Job),
    Reload,
    Drain,
    Stop,
}

impl<'a> World<'a> {
    pub(crate) fn new(setting: &'a Setting, seed: u64, trace: Option<&'a mut dyn FnMut(String)>) -> Self {
        let mut choices = Choices::new(seed);
        disk::set(choices.seed(), choices.one(&[0, 0, 20, 60]));
        let limits = limits(&mut choices);
        let plan = Arc::new(setting.folder.plan(limits, 0, &mut choices));
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
        };
        let ways = Ways::new(choices.one(&[SendWay::Memory, SendWay::File]));
        let records =
            Records { tally: Tally::new(setting.counters), log: Some(setting.log.begin()), remarks: |_| {} };
        // Whether an answer needs a job is the word of `disk`, not the kernel's.
        let ctx = Context::new(plan, Arc::new(Cache::new(cache)), Blocking::Allowed, send, ways, records);
        let mut world = Self {
            setting,
            ctx,
            now_ms: START_MS,
            agenda: BTreeMap::new(),
            events: 0,
            seats: Vec::new(),
            old_plans: Vec::new(),
            version: 0,
            in_stages: choices.chance(20),
            trace,
            fingerprint: seed,
            choices,
        };
        world.set_time(START_MS);
        world.invite();
        world
    }

    /// Decides who comes when, and what happens to the worker.
    fn invite(&mut self) {
        let limits = &self.ctx.plan.limits;
        let bounds = Bounds { body_bytes_max: limits.body_bytes_max as usize, ranges_max: limits.ranges_max };
        let mut at_ms = self.now_ms;
        for number in 0..self.choices.number(1..6) {
            let mut choices = self.choices.fork();
            let requests = (0..choices.number(0..12))
                .map(|number| Request::choose(&self.setting.folder, bounds, number, &mut choices))
                .collect();
            let room = choices.one(&[0, 100, 10_000, 1_000_000]);
            let (server_end, client_end) = connect(room, choices.chance(70));
            let client = Client::new(client_end, requests, self.now_ms, &mut choices);
            let transport = Transport::in_memory(server_end, address(number));
            at_ms += self.choices.ms(0..100);
            self.agenda.insert((at_ms, 0, number), Event::Connect(client.into(), transport.into()));
        }
        for _ in 0..self.choices.number(0..3) {
            let after_ms = self.choices.ms(0..20_000);
            self.later(after_ms, Event::Reload);
        }
        if self.choices.chance(30) {
            let (drain_ms, stop_ms) = (self.choices.ms(0..20_000), self.choices.ms(0..20_000));
            self.later(drain_ms, Event::Drain);
            self.later(drain_ms + stop_ms, Event::Stop);
        }
    }

    /// Runs until nothing is left to be done, and looks at what has come of it. The same seed has the same fingerprint.
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
            } else if let Some((_, event)) = self.agenda.pop_first() {
                self.handle(event);
            }
        }
        self.finish(&before)
    }

    /// When the next thing happens.
    fn next_ms(&self) -> Option<u64> {
        let deadlines = self.seats.iter().filter_map(|seat| seat.session.as_ref()).map(Session::deadline_ms);
        let deadline = deadlines.filter(|&deadline_ms| deadline_ms != u64::MAX).min();
        let event = self.agenda.first_key_value().map(|((at_ms, ..), _)| *at_ms);
        deadline.into_iter().chain(event).min()
    }

    fn set_time(&mut self, now_ms: u64) {
        assert!(now_ms >= self.now_ms, "a deadline of {now_ms} was passed over at {}", self.now_ms);
        self.now_ms = now_ms;
        self.ctx.clock.set(now_ms, self.unix_seconds());
    }

    fn unix_seconds(&self) -> u64 {
        START_UNIX_SECONDS + self.now_ms / 1000
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
                    client: *client,
                    session: Some(session),
                    accepted_ms: self.now_ms,
                    is_poll_due: false,
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
                self.note_news(who);
            }
            Event::Poll(who) => {
                self.seats[who].is_poll_due = false;
                let Some(news) = self.seats[who].client.end.take_news() else { return };
                self.note(|| format!("client {who}: {news:?}"), who);
                let Readiness { readable, input_ends, hung_up, .. } = news;
                self.advance(who, Wake::Ready { readable, input_ends, hung_up });
            }
            Event::Turn(who) => self.advance(who, Wake::Turn),
            Event::JobDone(who, job) => {
                self.note(|| format!("job for client {who} is done"), who);
                self.advance(who, Wake::Job(job.run()));
            }
            Event::Reload => {
                self.version += 1;
                self.note(|| "reload".into(), self.version as usize);
                let mut limits = self.ctx.plan.limits.clone();
                limits.pipelined_max = self.choices.one(&[1, 3, 64]);
                let plan = self.setting.folder.plan(limits, self.version, &mut self.choices);
                self.old_plans.push(Arc::downgrade(&self.ctx.plan));
                self.ctx.plan = Arc::new(plan);
            }
            Event::Drain => {
                self.note(|| "drain".into(), 0);
                self.ctx.draining = true;
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
    fn note_news(&mut self, who: usize) {
        let seat = &mut self.seats[who];
        if seat.client.end.has_news() && seat.session.is_some() && !seat.is_poll_due {
            seat.is_poll_due = true;
            let after_ms = if self.choices.chance(80) { 0 } else { self.choices.ms(0..50) };
            self.later(after_ms, Event::Poll(who));
        }
    }

    fn time_out(&mut self, who: usize) {
        self.note(|| format!("the time of client {who} is over"), who);
        let rate = &self.ctx.plan.limits;
        let least = (rate.send_rate_min_bytes_per_s * rate.send_timeout_ms / 1000).max(1) as usize;
        let since_ms = self.now_ms.saturating_sub(rate.send_timeout_ms) + 1;
        let was_sending = self.seats[who].waits == Waits::Room;
        let is_fast = self.seats[who].client.taken_since(since_ms) >= least;
        self.advance(who, Wake::TimedOut);
        let seat = &self.seats[who];
        assert!(!was_sending || !is_fast || seat.session.is_some(), "client {who} takes fast enough");
        let deadline_ms = seat.session.as_ref().map_or(u64::MAX, Session::deadline_ms);
        assert!(deadline_ms > self.now_ms, "client {who}: what was to be done in time is not done");
    }

    /// Takes a session as far as it goes, like an event loop.
    fn advance(&mut self, who: usize, wake: Wake) {
        let Some(session) = &mut self.seats[who].session else { return };
        let by_itself = !matches!(wake, Wake::TimedOut | Wake::End(_));
        let mut need = match session.handle_wake(wake, &mut self.ctx) {
            Some(need) => need,
            None => step(session, &mut self.ctx, self.in_stages),
        };
        loop {
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
                Need::Job(job) => {
                    let is_sending = matches!(job, Job::BringIn(_));
                    assert!(
                        is_sending || session.stage() == Stage::Read,
                        "answers wait for the disk of others"
                    );
                    self.seats[who].waits = Waits::Job;
                    let after_ms = self.choices.ms(0..200);
                    self.later(after_ms, Event::JobDone(who, job));
                    break;
                }
                Need::JobUnderWay => break,
                Need::Delegate(_) | Need::Body(_) | Need::News | Need::NewsUnderWay => {
                    panic!("there are no applications")
                }
                Need::Finished => {
                    self.seats[who].session = None;
                    let lost_output = self.seats[who].client.end.lost_output();
                    assert!(!lost_output || !by_itself, "client {who} may have lost its last answer");
                    break;
                }
            }
        }
        let moment = self.moment();
        self.seats[who].client.observe(moment);
        self.check_wait(who);
        self.note_news(who);
        let read = self.seats[who].client.end.bytes_read();
        let answers = self.seats[who].client.responses.len();
        let waits = self.seats[who].session.as_ref().map(|_| self.seats[who].waits);
        self.note(
            || format!("client {who}: {read} bytes read, {answers} answers, waits for {waits:?}"),
            read,
        );
    }

    fn moment(&self) -> Moment {
        Moment {
            now_ms: self.now_ms,
            unix_seconds: self.unix_seconds(),
            version: self.version,
            is_draining: self.ctx.draining,
            requests_max: self.ctx.plan.limits.requests_per_connection_max as usize,
        }
    }

    /// Whether a session that waits waits for something that can come, and not longer than it may.
    fn check_wait(&self, who: usize) {
        let seat = &self.seats[who];
        let Some(session) = &seat.session else { return };
        let (limits, client) = (&self.ctx.plan.limits, &seat.client);
        let deadline_ms = session.deadline_ms();
        let due = |since_ms: u64, timeout_ms: u64, what: &str| {
            let due_ms = since_ms + timeout_ms;
            assert_eq!(deadline_ms, due_ms, "client {who}: the deadline of its wait {what}");
        };
        match seat.waits {
            Waits::Nothing | Waits::Job => {}
            Waits::Room => {
                assert!(!client.end.has_room() || client.end.has_news(), "client {who}: there is room");
                let latest_ms = self.now_ms + limits.send_timeout_ms;
                assert!(deadline_ms <= latest_ms, "client {who}: {deadline_ms} to take more");
            }
            Waits::Input => {
                assert!(!client.end.has_input() || client.end.has_news(), "client {who}: there is input");
                assert!(!client.awaits_answer(), "client {who}: a request is there and not answered");
                if let Some(since_ms) = client.is_in_head() {
                    due(since_ms.max(client.output_moved_ms()), limits.head_timeout_ms, "for a head");
                } else if !session.is_idle() {
                    let latest_ms = client.moved_ms + limits.body_timeout_ms.max(limits.linger_timeout_ms);
                    assert!(deadline_ms <= latest_ms, "client {who}: {deadline_ms} for a body, or lingering");
                } else if client.responses.is_empty() {
                    due(seat.accepted_ms, limits.head_timeout_ms, "for its first request");
                } else {
                    due(client.moved_ms, limits.idle_timeout_ms, "for its next request");
                }
            }
        }
    }

    /// Looks at what is left when nothing happens any more.
    fn finish(mut self, before: &Totals) -> u64 {
        for (who, seat) in self.seats.iter().enumerate() {
            assert!(seat.session.is_none(), "client {who} is held for ever: {:?}", seat.waits);
            assert!(seat.client.end.is_closed_by_server(), "the connection of client {who} is still open");
        }
        let Some(log) = self.ctx.log.take() else { return 0 };
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

fn limits(choices: &mut Choices) -> Limits {
    Limits {
        body_bytes_max: choices.one(&[2_000, 2_000, 2_000, 150_000]) as u64,
        requests_per_connection_max: choices.one(&[1, 3, 1_000, 1_000, 1_000, 1_000]),
        pipelined_max: choices.one(&[1, 3, 64]),
        ranges_max: choices.one(&[1, 3, 16]),
        // All of them different: a deadline that belongs to another wait shows.
        head_timeout_ms: 3_000,
        body_timeout_ms: 4_100,
        idle_timeout_ms: 5_300,
        send_timeout_ms: 2_700,
        linger_timeout_ms: 1_900,
        send_rate_min_bytes_per_s: choices.one(&[0, 100]),
        ..Limits::default()
    }
}

/// What has been counted.
struct Totals {
    open: u64,
    requests: u64,
}

impl Totals {
    fn of(counters: &Counters) -> Self {
        let is_outcome = |metric: &&Metric| metric.name() == Metric::OutcomeComplete.name();
        let requests = Metric::ALL.iter().filter(is_outcome).map(|&metric| counters.get(metric)).sum();
        Self { open: counters.get(Metric::ConnectionsOpen), requests }
    }
}

/// The clock begins somewhere.
const START_MS: u64 = 1_000_000;

/// The date at which the clock would show 0: behind that of every file.
const START_UNIX_SECONDS: u64 = 2_000_000_000;

/// More events than any seed has reason for.
const EVENTS_MAX: usize = 100_000;

const PRIME: u64 = 0x9E37_79B9_7F4A_7C15;

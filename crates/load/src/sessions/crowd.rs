//! The sessions of one thread: one epoll instance, a slot for each connection, a heap of deadlines and pauses.

use std::cmp::Reverse;
use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::io::Errno;

use super::settings::SessionSettings;
use super::timers::{Alarm, Timers};
use super::unread::UnreadProbe;
use crate::busy::BusyClock;
use crate::exchange::{Exchange, Step};
use crate::poll::Poll;
use crate::report::{Failure, LoadReport};
use crate::script::Script;
use crate::sizes::{SizeCount, Sizes};
use crate::wire::Wire;

/// The sessions of one thread.
#[derive(Debug)]
pub(super) struct Crowd<'a> {
    settings: &'a SessionSettings,
    timeout: Duration,
    script: &'a Script,
    wire: Wire,
    poll: Poll,
    timers: Timers,
    busy: BusyClock,
    probe: Option<UnreadProbe>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    clients: Vec<Client>,
    sizes: Sizes,
    arrivals: Arrivals,
    report: LoadReport,
}

/// A place for a session; its generation tells events of earlier ones.
#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    session: Option<Session>,
}

/// A session under way.
#[derive(Debug)]
struct Session {
    exchange: Exchange,
    /// Of `Crowd::clients`.
    client: usize,
    /// The present request and those after it, as places in the script.
    steps: Range<usize>,
    asked: Instant,
    deadline: Instant,
    phase: SessionPhase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SessionPhase {
    Connecting,
    Asking,
    Thinking,
}

/// A client: its place in the script, and what became of its requests.
#[derive(Debug)]
struct Client {
    /// The session that it begins next.
    next: usize,
    counts: Vec<SizeCount>,
}

/// When sessions begin: at even intervals, by the clients in turn.
#[derive(Debug)]
struct Arrivals {
    interval: Duration,
    next: Instant,
    client: usize,
    /// Those that began before the load did, each at its next request; the last is due first.
    under_way: Vec<Late>,
}

/// A session that is joined in its middle.
#[derive(Debug)]
struct Late {
    due: Instant,
    client: usize,
    steps: Range<usize>,
}

impl<'a> Crowd<'a> {
    /// Thread `thread` of `threads`: every `threads`th client is its.
    pub(super) fn new(
        settings: &'a SessionSettings,
        script: &'a Script,
        thread: usize,
        threads: usize,
    ) -> Result<Self> {
        let targets = script.targets(settings.address);
        let sizes = Sizes::of(&targets);
        let clients: Vec<Client> = (thread..settings.load.clients)
            .step_by(threads)
            .map(|number| Client {
                next: (settings.first + number) % script.session_count(),
                counts: sizes.no_counts(),
            })
            .collect();
        let share = clients.len() as f64 / settings.load.clients as f64;
        let sessions_per_second = settings.load.requests_per_second / script.mean_session() * share;
        let slots = (settings.load.connections as f64 * share).ceil() as usize;
        let alarms = slots + (sessions_per_second * settings.load.timeout_s).min(ALARMS_MAX) as usize;
        Ok(Self {
            settings,
            timeout: Duration::from_secs_f64(settings.load.timeout_s),
            script,
            wire: Wire::new(settings.address, targets, false, false)?,
            poll: Poll::new(settings.sleep),
            timers: Timers::with_room(alarms),
            busy: BusyClock::start(),
            probe: UnreadProbe::open(),
            slots: (0..slots).map(|_| Slot::default()).collect(),
            free: (0..slots as u32).rev().collect(),
            clients,
            sizes,
            arrivals: Arrivals {
                interval: Duration::from_secs_f64(sessions_per_second.recip()),
                next: Instant::now(),
                client: 0,
                under_way: Vec::new(),
            },
            report: LoadReport::default(),
        })
    }

    /// Warms up, and measures. What is under way at the end is not counted: as much was under way at the beginning.
    pub(super) fn run(mut self) -> Result<LoadReport> {
        self.arrivals.next = Instant::now();
        self.arrivals.under_way = self.under_way();
        self.go_on(self.settings.warm_up)?;
        self.forget();
        let start = Instant::now();
        self.go_on(self.settings.duration)?;
        let now = Instant::now();
        self.report.elapsed = now - start;
        self.report.span = self.report.elapsed;
        self.report.client_cpu = self.busy.cpu();
        self.report.client_busy = self.busy.share(now);
        self.report.bytes = self.wire.bytes;
        self.report.connections = self.wire.connections;
        self.report.unanswered = self.slots.iter().filter(|slot| slot.session.is_some()).count() as u64;
        self.report.clients = self.clients.iter().map(|client| self.sizes.named(&client.counts)).collect();
        Ok(self.report)
    }

    /// Counts from now on.
    fn forget(&mut self) {
        self.report = LoadReport::default();
        self.busy = BusyClock::start();
        self.wire.bytes = 0;
        self.wire.connections = 0;
        for client in &mut self.clients {
            client.counts.fill(SizeCount::default());
        }
    }

    fn go_on(&mut self, duration: Duration) -> Result<()> {
        let mut now = Instant::now();
        let end = now + duration;
        while now < end {
            while let Some(late) = self.arrivals.under_way.pop_if(|late| late.due <= now) {
                self.begin(late.client, late.steps, now)?;
            }
            while self.arrivals.next <= now {
                self.arrivals.next += self.arrivals.interval;
                let (client, steps) = self.next_session();
                self.begin(client, steps, now)?;
            }
            while let Some((token, alarm)) = self.timers.take_due(now) {
                self.handle_alarm(token, alarm, now)?;
            }
            let due = self.timers.next().map_or(end, |alarm| alarm.min(end)).min(self.arrivals.next);
            let due = self.arrivals.under_way.last().map_or(due, |late| late.due.min(due));
            now = self.poll.look(&self.wire.epoll, Some(due), &mut self.busy)?;
            for number in 0..self.poll.tokens.len() {
                if let Some(slot) = self.slot_of(self.poll.tokens[number]) {
                    self.advance(slot)?;
                }
            }
        }
        Ok(())
    }

    /// The slot of a token, if its session has not ended.
    fn slot_of(&self, token: u64) -> Option<usize> {
        let (slot, generation) = ((token & u64::from(u32::MAX)) as usize, (token >> 32) as u32);
        (self.slots[slot].generation == generation).then_some(slot)
    }

    fn token_of(&self, slot: usize) -> u64 {
        u64::from(self.slots[slot].generation) << 32 | slot as u64
    }

    /// The next client, and its next session.
    fn next_session(&mut self) -> (usize, Range<usize>) {
        let client = self.arrivals.client;
        self.arrivals.client = (client + 1) % self.clients.len();
        let session = self.clients[client].next;
        self.clients[client].next = (session + self.settings.load.clients) % self.script.session_count();
        (client, self.script.range(session))
    }

    /// Sessions as they would be under way now, had they come forever to a server that answers at once. Without them the load
    /// would grow for as long as users think: a minute.
    fn under_way(&mut self) -> Vec<Late> {
        let now = self.arrivals.next;
        let mut under_way = Vec::new();
        let mut age = self.arrivals.interval;
        while age < UNDER_WAY_MAX {
            let (client, steps) = self.next_session();
            let mut at = Duration::ZERO;
            let next = self.script.steps()[steps.clone()].iter().position(|step| {
                at += step.pause();
                at > age
            });
            under_way.extend(next.map(|next| Late {
                due: now + (at - age),
                client,
                steps: steps.start + next..steps.end,
            }));
            age += self.arrivals.interval;
        }
        under_way.sort_unstable_by_key(|late| Reverse(late.due));
        under_way
    }

    /// A client begins a session, or joins it in its middle.
    fn begin(&mut self, client: usize, steps: Range<usize>, now: Instant) -> Result<()> {
        let Some(slot) = self.free.pop() else {
            self.report.sessions.not_begun += 1;
            return Ok(());
        };
        let slot = slot as usize;
        let token = self.token_of(slot);
        let mut exchange = match Exchange::open(token, &mut self.wire) {
            // Every port of this host is in use or has just been: not the server's fault.
            Err(error) if error.downcast_ref() == Some(&Errno::ADDRNOTAVAIL) => {
                self.free.push(slot as u32);
                self.report.sessions.not_begun += 1;
                return Ok(());
            }
            exchange => exchange?,
        };
        exchange.ask(&mut self.wire, self.script.steps()[steps.start].request as usize);
        let deadline = now + self.timeout;
        self.timers.set(deadline, token, Alarm::Deadline);
        let phase = SessionPhase::Connecting;
        self.slots[slot].session = Some(Session { exchange, client, steps, asked: now, deadline, phase });
        self.advance(slot)
    }

    /// Does for a session all that is possible now.
    fn advance(&mut self, slot: usize) -> Result<()> {
        let token = self.token_of(slot);
        while let Some(session) = &mut self.slots[slot].session {
            let step = session.exchange.advance(&mut self.wire);
            if session.phase == SessionPhase::Connecting && session.exchange.is_connected {
                session.phase = SessionPhase::Asking;
                session.deadline = Instant::now() + self.timeout;
            }
            match step {
                Step::Again | Step::Wait | Step::Ended => return Ok(()),
                Step::Stale => {
                    self.report.reconnects += 1;
                    session.exchange.reopen(&mut self.wire)?;
                    session.exchange.ask_again();
                }
                // As it may: what it has decided is how many clients it serves.
                Step::Failed(Failure::TurnedAway, _) => {
                    self.report.sessions.turned_away += 1;
                    self.report.sessions.requests_lost += session.steps.len() as u64 - 1;
                    self.report.unread += 1;
                    self.end(slot);
                }
                Step::Failed(failure, detail) => {
                    self.report.fail(failure, detail);
                    self.report.sessions.failed += 1;
                    self.end(slot);
                }
                Step::Finished => {
                    let now = Instant::now();
                    self.report.finished(now - session.asked, session.exchange.body_bytes);
                    if self.script.begins_session(session.steps.start) {
                        self.report.started(now - session.asked);
                    }
                    let size = self.sizes.index(session.exchange.target);
                    self.clients[session.client].counts[size].answered += 1;
                    session.steps.start += 1;
                    let Some(next) = self.script.steps()[session.steps.clone()].first() else {
                        self.report.sessions.complete += 1;
                        self.end(slot);
                        continue;
                    };
                    if session.exchange.closes {
                        session.exchange.reopen(&mut self.wire)?;
                    }
                    if next.pause_ms > 0 {
                        session.phase = SessionPhase::Thinking;
                        if !self.settings.load.thinking_counts {
                            session.deadline += next.pause();
                        }
                        self.timers.set(now + next.pause(), token, Alarm::Resume);
                        return Ok(());
                    }
                    session.asked = now;
                    session.exchange.ask(&mut self.wire, next.request as usize);
                }
            }
        }
        Ok(())
    }

    fn handle_alarm(&mut self, token: u64, alarm: Alarm, now: Instant) -> Result<()> {
        let Some(slot) = self.slot_of(token) else { return Ok(()) };
        let Some(session) = &mut self.slots[slot].session else { return Ok(()) };
        match alarm {
            Alarm::Resume => {
                let next = self.script.steps()[session.steps.start];
                session.phase = SessionPhase::Asking;
                session.asked = now;
                session.exchange.ask(&mut self.wire, next.request as usize);
                self.advance(slot)
            }
            // It has gained time since, by connecting or by thinking.
            Alarm::Deadline if session.deadline > now => {
                self.timers.set(session.deadline, token, Alarm::Deadline);
                Ok(())
            }
            Alarm::Deadline => {
                self.expire(slot);
                Ok(())
            }
        }
    }

    /// The session's time is over: the client leaves.
    fn expire(&mut self, slot: usize) {
        let Some(session) = &self.slots[slot].session else { return };
        self.report.sessions.timed_out += 1;
        let mut lost = session.steps.len() as u64;
        if session.phase != SessionPhase::Thinking {
            lost -= 1;
            let is_unread = |probe: &UnreadProbe| {
                session.exchange.is_unanswered()
                    && probe.is_unread(&session.exchange.socket, self.settings.address)
            };
            if session.phase == SessionPhase::Connecting || self.probe.as_ref().is_some_and(is_unread) {
                self.report.unread += 1;
            } else {
                self.report.timeouts += 1;
                let size = self.sizes.index(session.exchange.target);
                self.clients[session.client].counts[size].timeouts += 1;
            }
        }
        self.report.sessions.requests_lost += lost;
        self.end(slot);
    }

    /// Closes the connection. What epoll has still to say of it has an old generation.
    fn end(&mut self, slot: usize) {
        let place = &mut self.slots[slot];
        place.session = None;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(slot as u32);
    }
}

/// Room for alarms that is made before the load: more is made when it is needed.
const ALARMS_MAX: f64 = 1e6;
/// A session that is longer is joined at its beginning only.
const UNDER_WAY_MAX: Duration = Duration::from_secs(180);

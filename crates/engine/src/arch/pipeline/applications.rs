//! The stage beside the line: clients whose requests are with applications.
//!
//! ```text
//!   3 read ──── a request ────► applications ──── some of its answer ───► 5 write
//!                                    ▲                                       │
//!                                    └──────── sent: what comes next? ───────┘
//! ```
//!
//! Its thread owns the gateway. Clients come to it with an errand and leave when there is something to send, or when the
//! kernel tells that they have gone.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use baton_gateway::{Gateway, Request};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec};
use serde_json::Value;

use super::parked::{Direction, Traveller};
use super::{APPLICATIONS, EVENTS_PER_WAKE, Hands, Line};
use crate::log::Outcome;
use crate::session::{Need, Stage};
use crate::steering::Phase;

/// What a client comes for.
pub(super) enum Errand {
    /// To give a request away.
    Begin(Traveller, Box<Request>),
    /// To hear what comes next.
    Next(Traveller),
    /// The client of this number is gone.
    Gone(u64),
}

/// Where clients come in.
pub(super) struct Applications {
    errands: Mutex<Vec<Errand>>,
    waker: OwnedFd,
    /// What the gateway says of itself.
    report: Mutex<Value>,
}

/// What the thread of this stage works with.
struct Office {
    gateway: Gateway,
    waiting: HashMap<u64, Traveller>,
    next_number: u64,
}

impl Applications {
    pub(super) fn new() -> io::Result<Self> {
        let waker = rustix::event::eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { errands: Mutex::default(), waker, report: Mutex::default() })
    }

    /// Brings an errand.
    pub(super) fn come(&self, errand: Errand) {
        self.errands.lock().unwrap_or_else(PoisonError::into_inner).push(errand);
        // It can only fail because 2^64 - 1 wake-ups are pending.
        let _ = rustix::io::write(&self.waker, &1_u64.to_ne_bytes());
    }

    /// What the gateway said of itself last.
    pub(super) fn report(&self) -> Value {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn take(&self) -> Vec<Errand> {
        let _ = rustix::io::read(&self.waker, &mut [0; 8]);
        std::mem::take(&mut *self.errands.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Line<'_> {
    /// Runs the stage until the line closes; then sends away who still waits.
    pub(super) fn run_applications(&self) -> io::Result<()> {
        let mut hands = self.hands()?;
        let epoll = self.parked.set(Direction::End);
        let wakers = [self.applications.waker.as_fd(), self.closed.as_fd(), hands.subscription.descriptor()];
        for waker in wakers {
            epoll::add(epoll, waker, EventData::new_u64(0), EventFlags::IN)?;
        }
        let gateway = Gateway::new(epoll.try_clone()?);
        let mut office = Office { gateway, waiting: HashMap::new(), next_number: FIRST_NUMBER };
        let mut events = Vec::with_capacity(EVENTS_PER_WAKE);
        let mut heart = self.process.heartbeats.heart(APPLICATIONS);
        while !self.is_closing() {
            heart.beat();
            hands.ctx.clock.tick();
            let now_ms = hands.ctx.clock.now_ms();
            let wait_ms = office.gateway.deadline_ms().map_or(1000, |at| at.saturating_sub(now_ms).min(1000));
            let wait = Timespec::try_from(Duration::from_millis(wait_ms)).ok();
            events.clear();
            match epoll::wait(epoll, rustix::buffer::spare_capacity(&mut events), wait.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if hands.refresh().is_some_and(|orders| orders.phase != Phase::Serving) {
                office.gateway.drain();
            }
            let now_ms = hands.ctx.clock.now_ms();
            for event in &events {
                match event.data.u64() {
                    data if Gateway::owns(data) => office.gateway.handle_event(data, event.flags, now_ms),
                    number => self.handle_end(number, &mut office, &mut hands),
                }
            }
            for errand in self.applications.take() {
                self.run_errand(errand, &mut office, &mut hands);
            }
            office.gateway.handle_time(now_ms);
            while let Some(number) = office.gateway.poll_news() {
                if let Some(traveller) = office.waiting.remove(&number) {
                    self.bring_news(number, traveller, &mut office, &mut hands);
                }
            }
            *self.applications.report.lock().unwrap_or_else(PoisonError::into_inner) =
                office.gateway.report();
            hands.publish();
        }
        for errand in self.applications.take() {
            if let Errand::Begin(traveller, _) | Errand::Next(traveller) = errand {
                self.send_home(traveller, Outcome::Stopped, &mut hands.ctx);
            }
        }
        for (_, traveller) in office.waiting.drain() {
            self.send_home(traveller, Outcome::Stopped, &mut hands.ctx);
        }
        Ok(())
    }

    fn run_errand(&self, errand: Errand, office: &mut Office, hands: &mut Hands) {
        let now_ms = hands.ctx.clock.now_ms();
        match errand {
            Errand::Begin(mut traveller, request) => {
                let number = office.next_number;
                office.next_number += 1;
                traveller.application = Some(number);
                office.gateway.begin(number, *request, now_ms);
                self.bring_news(number, traveller, office, hands);
            }
            Errand::Next(traveller) => {
                let Some(number) = traveller.application else { return };
                office.gateway.note_sent(number, now_ms);
                self.bring_news(number, traveller, office, hands);
            }
            Errand::Gone(number) => office.gateway.abandon(number, now_ms),
        }
    }

    /// The client of this number, if it waits here, takes nothing any more.
    fn handle_end(&self, number: u64, office: &mut Office, hands: &mut Hands) {
        let Some(mut traveller) = office.waiting.remove(&number) else { return };
        if office.gateway.is_unanswered(number) {
            self.send_home(traveller, Outcome::ClientGone, &mut hands.ctx);
            return;
        }
        traveller.session.handle_input_end();
        traveller.session.handle_hangup();
        match traveller.session.step(&mut hands.ctx, Stage::Read) {
            Need::News | Need::NewsUnderWay => self.bring_news(number, traveller, office, hands),
            need => self.settle(traveller, need, &mut hands.ctx),
        }
    }

    /// Tells a client all that is new; it goes on to be written to, or waits.
    fn bring_news(&self, number: u64, mut traveller: Traveller, office: &mut Office, hands: &mut Hands) {
        while traveller.session.is_delegated() {
            let news = office.gateway.take(number);
            let is_all = news.is_none();
            traveller.session.handle_news(news, &mut hands.ctx);
            if is_all {
                break;
            }
        }
        if traveller.session.is_delegated() && traveller.session.stage() == Stage::Read {
            if !traveller.session.is_hung_up() {
                // Without it, sending the answer will tell.
                let _ = self.parked.watch(&mut traveller, Direction::End, number);
            }
            office.waiting.insert(number, traveller);
        } else {
            self.settle(traveller, Need::Turn, &mut hands.ctx);
        }
    }
}

/// Numbers of clients; smaller ones mean other things to the interest set.
const FIRST_NUMBER: u64 = 1 << 32;

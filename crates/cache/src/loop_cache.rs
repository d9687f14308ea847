//! The shared cache as an event loop uses it: the requests that it was asked, and what it fetches for them by the loop's gateway.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use baton_segment::rules::CacheStatus;
use baton_sys::mailbox::Mailbox;
use baton_upstream::{Gateway, RequestId, ResponseEvent};
use foldhash::fast::RandomState;
use rustix::event::epoll::{self, EventData, EventFlags};

use crate::answer::add_status;
use crate::exchange::{Exchange, Passing, State};
use crate::file_reads::FileReads;
use crate::fill::{Fill, Home, Mail, ReaderName, Stage};
use crate::parts::PartFetch;
use crate::reading::{Reading, Source};
use crate::template::Template;
use crate::{Ask, CacheWord, SharedCache, interim};

/// The requests of one event loop that the cache answers, and the fetches that the loop makes for it.
///
/// Like a [`Gateway`] it has events for requests, which are [ready](Self::poll_ready), [taken](Self::take) and
/// [sent](Self::note_sent). Its own requests go to the loop's gateway, which the caller lends to each call.
#[derive(Debug)]
pub(crate) struct LoopCache {
    pub(crate) shared: Arc<SharedCache>,
    pub(crate) home: Arc<Home>,
    pub(crate) exchanges: HashMap<RequestId, Exchange, RandomState>,
    /// Fills that this loop fetches.
    pub(crate) fills: HashMap<RequestId, Arc<Fill>, RandomState>,
    /// Parts that this loop fetches.
    pub(crate) parts: HashMap<RequestId, PartFetch, RandomState>,
    /// Of these two, those whose next bytes are read from a file.
    pub(crate) file_reads: FileReads,
    /// Requests of clients, by the names under which the gateway has them.
    pub(crate) passing: HashMap<RequestId, RequestId, RandomState>,
    /// Requests with something to take.
    pub(crate) ready: VecDeque<RequestId>,
    /// Fills that may go on.
    pub(crate) due: VecDeque<RequestId>,
    pub(crate) mail: Vec<Mail>,
    names: u64,
    pub(crate) now_ms: u64,
}

/// A loop's part of the cache at work, with the gateway that fetches for it.
#[derive(Debug)]
pub(crate) struct Caching<'a> {
    pub(crate) cache: &'a mut LoopCache,
    pub(crate) gateway: &'a mut Gateway,
}

impl LoopCache {
    /// The part of a loop, which watches [`MAIL`](Self::MAIL) with its `epoll`.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, `ENOMEM`.
    pub(crate) fn new(epoll: &OwnedFd, shared: Arc<SharedCache>) -> io::Result<Self> {
        let mailbox = Mailbox::new()?;
        let data = EventData::new_u64(Self::MAIL);
        epoll::add(epoll, mailbox.descriptor(), data, EventFlags::IN)?;
        let number = shared.homes.fetch_add(1, Ordering::Relaxed);
        Ok(Self {
            shared,
            home: Arc::new(Home { number, mailbox }),
            exchanges: HashMap::default(),
            fills: HashMap::default(),
            parts: HashMap::default(),
            file_reads: FileReads::default(),
            passing: HashMap::default(),
            ready: VecDeque::new(),
            due: VecDeque::new(),
            mail: Vec::new(),
            names: 0,
            now_ms: 0,
        })
    }

    /// The event data of what other loops have to say.
    pub(crate) const MAIL: u64 = 2;

    /// Whether the gateway has a request with this name from the cache. Clients' names have a lower half below 2^31.
    pub(crate) fn has_asked(name: RequestId) -> bool {
        name.number() & OWN_NAMES != 0
    }

    /// Begins a request, which is to go to the origin as `upstream`: without conditions and ranges, in the form of
    /// [`Ask::forwarded`].
    pub(crate) fn begin(
        &mut self,
        gateway: &mut Gateway,
        name: RequestId,
        ask: Arc<Ask>,
        upstream: baton_upstream::Request,
        now_ms: u64,
    ) {
        self.now_ms = now_ms;
        let exchange = Exchange {
            ask,
            template: Arc::new(Template::of(upstream)),
            events: VecDeque::new(),
            state: State::Over,
            is_announced: false,
            wants_whole: false,
            restarts: 0,
        };
        self.exchanges.insert(name, exchange);
        let mut caching = self.with(gateway);
        caching.open(name);
        caching.pump_due();
    }

    /// Takes note of what other loops have to say.
    pub(crate) fn handle_mail(&mut self, gateway: &mut Gateway, now_ms: u64) {
        self.now_ms = now_ms;
        Arc::clone(&self.home).mailbox.take(&mut self.mail);
        for mail in std::mem::take(&mut self.mail) {
            match mail {
                Mail::Wake(name) => self.announce(name),
                Mail::Pump(fill) => self.due.push_back(fill),
            }
        }
        self.with(gateway).pump_due();
    }

    /// Takes note of the time. Call it once per round.
    pub(crate) fn handle_time(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
    }

    /// The gateway has an event for a request of the [cache](Self::has_asked).
    pub(crate) fn handle_ready(&mut self, name: RequestId) {
        match self.passing.get(&name) {
            Some(client) => self.announce(*client),
            None => self.due.push_back(name),
        }
    }

    /// Whether there is something to do without an event.
    pub(crate) fn has_work(&self) -> bool {
        !self.ready.is_empty() || !self.due.is_empty()
    }

    /// The next request with events to take, each once until something changes again.
    pub(crate) fn poll_ready(&mut self, gateway: &mut Gateway) -> Option<RequestId> {
        self.with(gateway).pump_due();
        let is_announced = |exchange: &mut Exchange| std::mem::take(&mut exchange.is_announced);
        while let Some(name) = self.ready.pop_front() {
            if self.exchanges.get_mut(&name).is_some_and(is_announced) {
                return Some(name);
            }
        }
        None
    }

    /// Takes the next piece of an answer, if there is one now. After the last one the request is forgotten.
    pub(crate) fn take(&mut self, gateway: &mut Gateway, name: RequestId) -> Option<ResponseEvent> {
        self.with(gateway).take(name)
    }

    /// The session has handed everything it took to the kernel and dropped the pieces.
    pub(crate) fn note_sent(&mut self, gateway: &mut Gateway, name: RequestId, now_ms: u64) {
        self.now_ms = now_ms;
        if let Some(inner) = self.passed_as(name) {
            gateway.note_sent(inner, now_ms);
        }
    }

    /// Whether a request is there: its client's socket never leaves the server, so it can be [abandoned](Self::abandon).
    pub(crate) fn is_unanswered(&self, name: RequestId) -> bool {
        self.exchanges.contains_key(&name)
    }

    /// How far a request has come that is about to be abandoned. What the cache has asked for is not this client's alone.
    pub(crate) fn trail(&self, gateway: &Gateway, name: RequestId) -> Option<ResponseEvent> {
        gateway.trail(self.passed_as(name)?)
    }

    /// Forgets a request. Does nothing for an unknown one.
    pub(crate) fn abandon(&mut self, gateway: &mut Gateway, name: RequestId, now_ms: u64) {
        self.now_ms = now_ms;
        let mut caching = self.with(gateway);
        caching.end(name);
        caching.pump_due();
    }

    /// Whether neither this loop nor the shared cache has a request or a fetch, for tests.
    pub(crate) fn is_at_rest(&self) -> bool {
        let has_none = self.exchanges.is_empty() && self.fills.is_empty() && self.parts.is_empty();
        has_none && self.file_reads.is_empty() && self.passing.is_empty() && self.shared.live.is_empty()
    }

    /// Compares what the loop knows of its requests: for simulations, after every event.
    ///
    /// # Panics
    /// It contradicts itself.
    pub(crate) fn check_invariants(&self) {
        let is_passed = |name: &RequestId| {
            self.exchanges.get(name).is_some_and(|exchange| matches!(exchange.state, State::Passing(_)))
        };
        for (name, exchange) in &self.exchanges {
            let is_told = !exchange.is_announced || self.ready.contains(name);
            assert!(is_told, "{name:?} has events that the loop is not told of");
            match &exchange.state {
                State::Passing(Passing { inner, .. }) => {
                    assert_eq!(
                        self.passing.get(inner),
                        Some(name),
                        "{name:?} is passed on for another client"
                    );
                }
                State::Waiting { fill, is_first: true, .. }
                    if matches!(fill.current_stage(), Stage::Asked) =>
                {
                    assert!(
                        self.fills.contains_key(&fill.id),
                        "{name:?} waits for a fetch that was forgotten"
                    );
                }
                _ => {}
            }
        }
        assert!(self.passing.values().all(is_passed), "the gateway has a request that no client waits for");
        let has_two = |name: &RequestId| self.parts.contains_key(name) || self.passing.contains_key(name);
        assert!(!self.fills.keys().any(has_two), "a request of the gateway is for two things");
        let is_fetched = |id: &RequestId| self.fills.contains_key(id) || self.parts.contains_key(id);
        assert!(self.file_reads.ids().all(is_fetched), "a file is read for a fetch that is over");
        for (name, fill) in &self.fills {
            let is_own = fill.id == *name && fill.home.number == self.home.number;
            assert!(is_own, "{name:?} is the fetch of another loop");
        }
    }

    pub(crate) fn with<'a>(&'a mut self, gateway: &'a mut Gateway) -> Caching<'a> {
        Caching { cache: self, gateway }
    }

    /// The name by which the gateway has a client's request, if the cache passes it on.
    fn passed_as(&self, name: RequestId) -> Option<RequestId> {
        match self.exchanges.get(&name)?.state {
            State::Passing(Passing { inner, .. }) => Some(inner),
            _ => None,
        }
    }

    /// A name for the gateway that no client's request has: their lower half is below 2^31.
    pub(crate) fn next_name(&mut self) -> RequestId {
        self.names += 1;
        RequestId::new(self.names >> 31 << 32 | OWN_NAMES | (self.names & (OWN_NAMES - 1)))
    }

    /// Has a request's events taken.
    pub(crate) fn announce(&mut self, name: RequestId) {
        if let Some(exchange) = self.exchanges.get_mut(&name)
            && !std::mem::replace(&mut exchange.is_announced, true)
        {
            self.ready.push_back(name);
        }
    }

    /// Has the events of these requests taken, by their loops.
    pub(crate) fn wake(&mut self, names: Vec<ReaderName>) {
        for name in names {
            if name.home.number == self.home.number {
                self.announce(name.request);
            } else {
                name.home.mailbox.send([Mail::Wake(name.request)]);
            }
        }
    }

    /// Has the loop of a fill look whether it goes on.
    pub(crate) fn tell_fill(&mut self, fill: &Arc<Fill>) {
        self.tell(&fill.home, fill.id);
    }

    /// Has the loop of the fill with this name look whether it goes on.
    pub(crate) fn tell(&mut self, home: &Home, id: RequestId) {
        if home.number == self.home.number {
            self.due.push_back(id);
        } else {
            home.mailbox.send([Mail::Pump(id)]);
        }
    }

    pub(crate) fn leave(&mut self, fill: &Arc<Fill>, name: &ReaderName) {
        if fill.leave(name) {
            self.tell_fill(fill);
        }
    }
}

impl Caching<'_> {
    /// The next piece of an answer.
    pub(crate) fn take(&mut self, name: RequestId) -> Option<ResponseEvent> {
        let cache = &mut *self.cache;
        let exchange = cache.exchanges.get_mut(&name)?;
        if let Some(event) = exchange.events.pop_front() {
            if event.is_last() {
                self.end(name);
            }
            return Some(event);
        }
        match &mut exchange.state {
            State::Over => None,
            State::Waiting { fill, is_first, .. } => {
                let reader = ReaderName { home: Arc::clone(&cache.home), request: name };
                let stage = fill.stage(&reader);
                if !*is_first && let Some(head) = interim::next(fill, &reader, &exchange.ask) {
                    return Some(ResponseEvent::Interim(head));
                }
                if matches!(stage, Stage::Asked) {
                    return None;
                }
                self.settle(name, stage);
                self.pump_due();
                self.take(name)
            }
            State::Reading(_) => self.read(name),
            State::Passing(Passing { inner, forward, requested_s, detail }) => {
                let mut event = self.gateway.take(*inner)?;
                if let ResponseEvent::Head(head, _) = &mut event {
                    cache.shared.note_head(&exchange.ask, head, *requested_s);
                    let status = CacheStatus {
                        cache: &cache.shared.name,
                        forward: Some(*forward),
                        detail: *detail,
                        ..CacheStatus::default()
                    };
                    add_status(head, &status);
                }
                if event.is_last() {
                    cache.passing.remove(inner);
                    cache.exchanges.remove(&name);
                }
                Some(event)
            }
        }
    }

    /// A request is over.
    pub(crate) fn end(&mut self, name: RequestId) {
        let cache = &mut *self.cache;
        let Some(exchange) = cache.exchanges.remove(&name) else { return };
        let reader = ReaderName { home: Arc::clone(&cache.home), request: name };
        match exchange.state {
            State::Over => {}
            State::Waiting { fill, .. } => cache.leave(&fill, &reader),
            State::Reading(Reading { source: Source::Store, .. }) => {}
            State::Reading(Reading { source: Source::Stream(fill), .. }) => cache.leave(&fill, &reader),
            State::Reading(Reading { source: Source::Parts(parts, id), at, .. }) => {
                let effects = parts.leave(id, at);
                self.apply(&parts, effects, None);
            }
            State::Passing(Passing { inner, .. }) => {
                cache.passing.remove(&inner);
                self.gateway.abandon(inner, cache.now_ms);
            }
        }
    }
}

pub(crate) fn note(word: CacheWord) -> ResponseEvent {
    ResponseEvent::CacheNote(word.as_str())
}

/// The bit that tells names of the cache from those of clients.
const OWN_NAMES: u64 = 1 << 31;

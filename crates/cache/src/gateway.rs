//! The gateway of a loop, with the cache in front of it.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use baton_buf::Slice;
use baton_segment::rules::CacheStatus;
use baton_sys::mailbox::Mailbox;
use baton_upstream::{FailureReason, Gateway, PeerNews, Peers, RequestId, ResponseEvent, TunnelEnd};
use foldhash::fast::RandomState;
use rustix::event::epoll::{self, EventData, EventFlags};
use serde_json::Value;

use crate::answer::add_status;
use crate::exchange::{Exchange, Passing, State};
use crate::fill::{Fill, Home, Mail, ReaderName, Stage};
use crate::parts::PartFetch;
use crate::reading::{Reading, Source};
use crate::template::Template;
use crate::{CacheWord, Request, SharedCache, interim};

/// A loop's [`Gateway`], and the requests that the cache was asked. Its methods are those of the gateway.
///
/// A request without an [`Ask`] goes through as if there were no cache.
#[derive(Debug)]
pub struct CachingGateway {
    pub(crate) inner: Gateway,
    pub(crate) cache: Option<CacheOfLoop>,
}

/// What a loop has of the cache.
#[derive(Debug)]
pub(crate) struct CacheOfLoop {
    pub(crate) shared: Arc<SharedCache>,
    pub(crate) home: Arc<Home>,
    pub(crate) exchanges: HashMap<RequestId, Exchange, RandomState>,
    /// Fills that this loop fetches.
    pub(crate) fills: HashMap<RequestId, Arc<Fill>, RandomState>,
    /// Parts that this loop fetches.
    pub(crate) parts: HashMap<RequestId, PartFetch, RandomState>,
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

impl CachingGateway {
    /// A gateway without a cache: see [`Gateway::new`].
    pub fn new(epoll: OwnedFd) -> Self {
        Self { inner: Gateway::new(epoll), cache: None }
    }

    /// The gateway of a loop, which watches [`MAIL`](Self::MAIL) with its `epoll`.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, `ENOMEM`.
    pub fn with_cache(epoll: OwnedFd, shared: Arc<SharedCache>) -> io::Result<Self> {
        let mailbox = Mailbox::new()?;
        let data = EventData::new_u64(Self::MAIL);
        epoll::add(&epoll, mailbox.descriptor(), data, EventFlags::IN)?;
        let number = shared.homes.fetch_add(1, Ordering::Relaxed);
        let cache = CacheOfLoop {
            shared,
            home: Arc::new(Home { number, mailbox }),
            exchanges: HashMap::default(),
            fills: HashMap::default(),
            parts: HashMap::default(),
            passing: HashMap::default(),
            ready: VecDeque::new(),
            due: VecDeque::new(),
            mail: Vec::new(),
            names: 0,
            now_ms: 0,
        };
        Ok(Self { inner: Gateway::new(epoll), cache: Some(cache) })
    }

    /// The gateway with a clock for simulations: see [`Gateway::with_precise_clock`].
    #[must_use]
    pub fn with_precise_clock(self, precise_us: fn() -> u64) -> Self {
        Self { inner: self.inner.with_precise_clock(precise_us), ..self }
    }

    /// The event data of what other loops have to say.
    pub const MAIL: u64 = 2;

    /// Whether an event with this data is for [`handle_event`](Self::handle_event).
    pub fn owns(data: u64) -> bool {
        data == Self::MAIL || Gateway::owns(data)
    }

    /// See [`Gateway::begin`].
    pub fn begin(&mut self, name: RequestId, request: Request, now_ms: u64) {
        let Request { upstream, ask } = request;
        let (Some(cache), Some(ask)) = (&mut self.cache, ask) else {
            return self.inner.begin(name, *upstream, now_ms);
        };
        cache.now_ms = now_ms;
        let exchange = Exchange {
            ask,
            template: Arc::new(Template::of(*upstream)),
            events: VecDeque::new(),
            state: State::Over,
            is_announced: false,
            wants_whole: false,
            restarts: 0,
        };
        cache.exchanges.insert(name, exchange);
        self.open(name);
        self.pump_due();
    }

    /// See [`Gateway::handle_event`].
    pub fn handle_event(&mut self, data: u64, flags: EventFlags, now_ms: u64) {
        self.note_time(now_ms);
        if data != Self::MAIL {
            return self.inner.handle_event(data, flags, now_ms);
        }
        let Some(cache) = &mut self.cache else { return };
        let home = Arc::clone(&cache.home);
        home.mailbox.take(&mut cache.mail);
        for mail in std::mem::take(&mut cache.mail) {
            match mail {
                Mail::Wake(name) => cache.announce(name),
                Mail::Pump(fill) => cache.due.push_back(fill),
            }
        }
        self.pump_due();
    }

    /// See [`Gateway::handle_time`].
    pub fn handle_time(&mut self, now_ms: u64) {
        self.note_time(now_ms);
        self.inner.handle_time(now_ms);
    }

    /// See [`Gateway::serve_released`].
    pub fn serve_released(&mut self, now_ms: u64) {
        self.inner.serve_released(now_ms);
    }

    /// See [`Gateway::deadline_ms`].
    pub fn deadline_ms(&self) -> Option<u64> {
        let has_work = |cache: &CacheOfLoop| !cache.ready.is_empty() || !cache.due.is_empty();
        if self.cache.as_ref().is_some_and(has_work) { Some(0) } else { self.inner.deadline_ms() }
    }

    /// See [`Gateway::poll_ready`].
    pub fn poll_ready(&mut self) -> Option<RequestId> {
        loop {
            self.pump_due();
            let Some(cache) = &mut self.cache else { return self.inner.poll_ready() };
            while let Some(name) = cache.ready.pop_front() {
                if cache.exchanges.get_mut(&name).is_some_and(|own| std::mem::take(&mut own.is_announced)) {
                    return Some(name);
                }
            }
            let name = self.inner.poll_ready()?;
            if cache.fills.contains_key(&name) || cache.parts.contains_key(&name) {
                cache.due.push_back(name);
                continue;
            }
            return Some(cache.passing.get(&name).copied().unwrap_or(name));
        }
    }

    /// See [`Gateway::poll_news`].
    pub fn poll_news(&mut self) -> Option<PeerNews> {
        self.inner.poll_news()
    }

    /// See [`Gateway::take`].
    pub fn take(&mut self, name: RequestId) -> Option<ResponseEvent> {
        let Some(cache) = &mut self.cache else { return self.inner.take(name) };
        let Some(exchange) = cache.exchanges.get_mut(&name) else { return self.inner.take(name) };
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
                let mut event = self.inner.take(*inner)?;
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

    /// See [`Gateway::note_sent`].
    pub fn note_sent(&mut self, name: RequestId, now_ms: u64) {
        self.note_time(now_ms);
        match self.cache.as_ref().and_then(|cache| cache.exchanges.get(&name)) {
            None => self.inner.note_sent(name, now_ms),
            Some(exchange) => {
                if let State::Passing(Passing { inner, .. }) = exchange.state {
                    self.inner.note_sent(inner, now_ms);
                }
            }
        }
    }

    /// See [`Gateway::is_unanswered`].
    pub fn is_unanswered(&mut self, name: RequestId) -> bool {
        let is_ours = self.cache.as_ref().is_some_and(|cache| cache.exchanges.contains_key(&name));
        is_ours || self.inner.is_unanswered(name)
    }

    /// See [`Gateway::trail`]. What the cache has asked for is not this client's alone.
    pub fn trail(&self, name: RequestId) -> Option<ResponseEvent> {
        self.inner.trail(self.inner_name(name))
    }

    /// See [`Gateway::is_tunnel`].
    pub fn is_tunnel(&mut self, name: RequestId) -> bool {
        self.inner.is_tunnel(self.inner_name(name))
    }

    /// See [`Gateway::tunnel_end`].
    pub fn tunnel_end(&mut self, name: RequestId) -> Option<TunnelEnd> {
        self.inner.tunnel_end(self.inner_name(name))
    }

    /// See [`Gateway::resume_tunnel`]. The cache has nothing to do with what another process has switched.
    pub fn resume_tunnel(&mut self, name: RequestId, end: TunnelEnd, now_ms: u64) {
        self.inner.resume_tunnel(name, end, now_ms);
    }

    /// The name by which the gateway has a client's request.
    fn inner_name(&self, name: RequestId) -> RequestId {
        let exchange = self.cache.as_ref().and_then(|cache| cache.exchanges.get(&name));
        match exchange.map(|exchange| &exchange.state) {
            Some(State::Passing(Passing { inner, .. })) => *inner,
            _ => name,
        }
    }

    /// See [`Gateway::abandon`].
    pub fn abandon(&mut self, name: RequestId, now_ms: u64) {
        self.note_time(now_ms);
        let is_ours = self.cache.as_ref().is_some_and(|cache| cache.exchanges.contains_key(&name));
        if is_ours {
            self.end(name);
            self.pump_due();
        } else {
            self.inner.abandon(name, now_ms);
        }
    }

    /// See [`Gateway::wants_body`].
    pub fn wants_body(&mut self, name: RequestId) -> bool {
        self.inner.wants_body(name)
    }

    /// See [`Gateway::push_body`].
    pub fn push_body(&mut self, name: RequestId, part: Slice, is_last: bool, now_ms: u64) {
        self.inner.push_body(name, part, is_last, now_ms);
    }

    /// See [`Gateway::fail_body`].
    pub fn fail_body(&mut self, name: RequestId, why: FailureReason, now_ms: u64) {
        self.inner.fail_body(name, why, now_ms);
    }

    /// See [`Gateway::drain`].
    pub fn drain(&mut self) {
        self.inner.drain();
    }

    /// See [`Gateway::report`].
    pub fn report(&self) -> Value {
        self.inner.report()
    }

    /// Whether neither this loop nor the shared cache has a request or a fetch, for tests.
    pub fn is_at_rest(&self) -> bool {
        self.cache.as_ref().is_none_or(|cache| {
            let has_none = cache.exchanges.is_empty() && cache.fills.is_empty() && cache.parts.is_empty();
            has_none && cache.passing.is_empty() && cache.shared.live.is_empty()
        })
    }

    /// Compares what the cache and the gateway have of this loop's requests: for simulations, after every event.
    ///
    /// # Panics
    /// They differ.
    pub fn check_invariants(&self) {
        self.inner.check_invariants();
        if let Some(cache) = &self.cache {
            cache.check_invariants();
        }
    }

    /// See [`Gateway::watch`].
    pub fn watch(&mut self, peers: &Arc<Peers>) {
        self.inner.watch(peers);
    }

    /// A request is over.
    pub(crate) fn end(&mut self, name: RequestId) {
        let Some(cache) = &mut self.cache else { return };
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
                self.inner.abandon(inner, cache.now_ms);
            }
        }
    }

    fn note_time(&mut self, now_ms: u64) {
        if let Some(cache) = &mut self.cache {
            cache.now_ms = now_ms;
        }
    }
}

impl CacheOfLoop {
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

    fn check_invariants(&self) {
        let is_passed = |name: &RequestId| {
            self.exchanges.get(name).is_some_and(|exchange| matches!(exchange.state, State::Passing(_)))
        };
        for (name, exchange) in &self.exchanges {
            let is_told = !exchange.is_announced || self.ready.contains(name);
            assert!(is_told, "{name:?} has events that the loop is not told of");
            if let State::Passing(Passing { inner, .. }) = exchange.state {
                assert_eq!(self.passing.get(&inner), Some(name), "{name:?} is passed on for another client");
            }
        }
        assert!(self.passing.values().all(is_passed), "the gateway has a request that no client waits for");
    }
}

pub(crate) fn note(word: CacheWord) -> ResponseEvent {
    ResponseEvent::CacheNote(word.as_str())
}

/// The bit that tells names of the cache from those of clients.
const OWN_NAMES: u64 = 1 << 31;

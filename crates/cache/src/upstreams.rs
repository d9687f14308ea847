//! What answers the requests of a loop elsewhere: the gateway, or the shared cache, which fetches by the gateway.
//!
//! A request has one of the two from its beginning to its end, and its name says which.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use baton_upstream::{Gateway, RequestId, ResponseEvent, ResponseEvents};
use rustix::event::epoll::EventFlags;

use crate::loop_cache::LoopCache;
use crate::request::SourceRequest;
use crate::shared::SharedCache;

/// The gateway of a loop, and its part of the shared cache.
#[derive(Debug)]
pub struct Upstreams {
    /// It has all requests that the cache does not, and whatever has a body or becomes a tunnel.
    pub gateway: Gateway,
    cache: Option<LoopCache>,
}

impl Upstreams {
    /// Watches its descriptors with the loop's `epoll`, with event data that [`owns`](Self::owns) recognizes.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, `ENOMEM`.
    pub fn new(epoll: &OwnedFd, cache: Option<Arc<SharedCache>>) -> io::Result<Self> {
        let cache = cache.map(|cache| LoopCache::new(epoll, cache)).transpose()?;
        Ok(Self { gateway: Gateway::new(epoll.try_clone()?), cache })
    }

    /// Whether an event with this data is for [`handle_event`](Self::handle_event).
    pub fn owns(data: u64) -> bool {
        data == LoopCache::MAIL || Gateway::owns(data)
    }

    /// Begins a request, and returns its name: the one that is `given`, with its source.
    pub fn begin(&mut self, given: RequestId, request: SourceRequest, now_ms: u64) -> RequestId {
        let SourceRequest { upstream, ask } = request;
        match (&mut self.cache, ask) {
            (Some(cache), Some(ask)) => {
                let name = RequestId::new(given.number() | OF_CACHE);
                cache.begin(&mut self.gateway, name, ask, *upstream, now_ms);
                name
            }
            _ => {
                self.gateway.begin(given, *upstream, now_ms);
                given
            }
        }
    }

    /// Takes note of an event of a descriptor.
    pub fn handle_event(&mut self, data: u64, flags: EventFlags, now_ms: u64) {
        match &mut self.cache {
            Some(cache) if data == LoopCache::MAIL => cache.handle_mail(&mut self.gateway, now_ms),
            _ => self.gateway.handle_event(data, flags, now_ms),
        }
    }

    /// Handles deadlines, as [`Gateway::handle_time`] does.
    pub fn handle_time(&mut self, now_ms: u64) {
        if let Some(cache) = &mut self.cache {
            cache.handle_time(now_ms);
        }
        self.gateway.handle_time(now_ms);
    }

    /// When to call [`handle_time`](Self::handle_time) next; it may be in the past.
    pub fn deadline_ms(&self) -> Option<u64> {
        match &self.cache {
            Some(cache) if cache.has_work() => Some(0),
            _ => self.gateway.deadline_ms(),
        }
    }

    /// The next request with events to take, each once until something changes again.
    pub fn poll_ready(&mut self) -> Option<RequestId> {
        loop {
            if let Some(cache) = &mut self.cache
                && let Some(name) = cache.poll_ready(&mut self.gateway)
            {
                return Some(name);
            }
            let name = self.gateway.poll_ready()?;
            match &mut self.cache {
                Some(cache) if LoopCache::has_asked(name) => cache.handle_ready(name),
                _ => return Some(name),
            }
        }
    }

    /// Takes the next pieces of an answer; none: there is nothing now. After the last one the request is forgotten.
    pub fn take(&mut self, name: RequestId) -> ResponseEvents {
        match self.cache_of(name) {
            // It would read all of an object before the client has taken any of it.
            Some((cache, gateway)) => cache.take(gateway, name).into_iter().collect(),
            None => self.gateway.take_all(name),
        }
    }

    /// The session has handed everything it took to the kernel and dropped the pieces: there is room for more.
    pub fn note_sent(&mut self, name: RequestId, now_ms: u64) {
        match self.cache_of(name) {
            Some((cache, gateway)) => cache.note_sent(gateway, name, now_ms),
            None => self.gateway.note_sent(name, now_ms),
        }
    }

    /// Whether a running request can be [abandoned](Self::abandon) once its client is gone.
    pub fn is_unanswered(&mut self, name: RequestId) -> bool {
        match self.cache_of(name) {
            Some((cache, _)) => cache.is_unanswered(name),
            None => self.gateway.is_unanswered(name),
        }
    }

    /// How far a request to an origin has come that is about to be abandoned, if the log does not know it.
    pub fn trail(&mut self, name: RequestId) -> Option<ResponseEvent> {
        match self.cache_of(name) {
            Some((cache, gateway)) => cache.trail(gateway, name),
            None => self.gateway.trail(name),
        }
    }

    /// Cancels a request. Does nothing for an unknown or answered one.
    pub fn abandon(&mut self, name: RequestId, now_ms: u64) {
        match self.cache_of(name) {
            Some((cache, gateway)) => cache.abandon(gateway, name, now_ms),
            None => self.gateway.abandon(name, now_ms),
        }
    }

    /// The cache, and the gateway that it fetches by, if a request was given to it.
    fn cache_of(&mut self, name: RequestId) -> Option<(&mut LoopCache, &mut Gateway)> {
        let cache = self.cache.as_mut().filter(|_| name.number() & OF_CACHE != 0)?;
        Some((cache, &mut self.gateway))
    }
}

impl Upstreams {
    /// Replaces the kernel's clock for the gateway, see [`Gateway::with_precise_clock`].
    pub fn with_precise_clock(self, precise_us: fn() -> u64) -> Self {
        Self { gateway: self.gateway.with_precise_clock(precise_us), ..self }
    }

    /// Compares what is known of the requests, after every event of a simulation.
    pub fn check_invariants(&self) {
        self.gateway.check_invariants();
        self.cache.iter().for_each(LoopCache::check_invariants);
    }

    /// Whether the cache has neither a request nor a fetch.
    pub fn is_at_rest(&self) -> bool {
        self.cache.as_ref().is_none_or(LoopCache::is_at_rest)
    }
}

/// The bit that says that a request was given to the cache.
const OF_CACHE: u64 = 1 << 63;

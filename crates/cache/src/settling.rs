//! How a request comes to its answer: what the cache decides, what a fetch has brought, what goes to the origin.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use baton_fcgi::cgi::Instruction;
use baton_http::Status;
use baton_segment::rules::{CacheRequest, CacheStatus, Conditional, Forward, Hit};
use baton_upstream::{FailureReason, RequestId, ResponseEvent};

use crate::CacheWord;
use crate::answer::Reply;
use crate::exchange::{Passing, State, failed};
use crate::fill::{Fill, ReaderName, Settled, Stage};
use crate::held::Held;
use crate::live::Live;
use crate::loop_cache::{Caching, LoopCache, note};
use crate::object::Object;
use crate::opened::{Asker, Opened};
use crate::part_pump::range_field;
use crate::reading::{Reading, Source};
use crate::visit::Visit;

impl Caching<'_> {
    /// Decides about a request.
    pub(crate) fn open(&mut self, name: RequestId) {
        let cache = &mut *self.cache;
        let fill = cache.next_name();
        let Some(exchange) = cache.exchanges.get(&name) else { return };
        let ask = Arc::clone(&exchange.ask);
        let reader = ReaderName { home: Arc::clone(&cache.home), request: name };
        let now_s = (cache.shared.unix_s)();
        let (template, wants_whole) = (&exchange.template, exchange.wants_whole);
        let asker = Asker { ask: &ask, name: reader, fill, template, wants_whole, now_s };
        let opened = cache.shared.decide(&asker);
        match opened {
            Opened::Serve(object, refresh) => {
                self.serve_hit(name, &object, now_s);
                if let Some(fill) = refresh {
                    self.fetch(&fill);
                }
            }
            Opened::Join(fill, forward) => cache.wait(name, fill, forward, false),
            Opened::Fetch(fill) => {
                cache.wait(name, Arc::clone(&fill), fill.forward, true);
                self.fetch(&fill);
            }
            Opened::Pass(forward) => self.pass(name, forward),
            // Only what was here when the request was looked up, and has been evicted since then.
            Opened::NotCached => cache.answer(name, [ResponseEvent::Failed(failed(FailureReason::Evicted))]),
        }
    }

    /// Answers with a stored response, parts of which may be missing.
    fn serve_hit(&mut self, name: RequestId, object: &Arc<Object>, now_s: u64) {
        let cache = &mut *self.cache;
        let Some(exchange) = cache.exchanges.get(&name) else { return };
        let ask = Arc::clone(&exchange.ask);
        let head = ask.head.get();
        let Ok(asked) = CacheRequest::of(&ask.route.rules, &head) else { return };
        let ttl_s = object.stored.freshness().ttl_s(now_s);
        let hit = Hit::of(&asked, &object.stored, now_s, ttl_s <= 0);
        let mut status =
            CacheStatus { cache: &cache.shared.name, ttl_s: Some(hit.ttl_s), ..CacheStatus::default() };
        let reply = Reply::of(object, &hit, &head, &status);
        let content = &object.content;
        let visit = Visit::new(content, exchange.template.client());
        let live = cache.shared.live.of(content.key);
        let is_here = cache.shared.blocks.contains_all(content.key, &reply.bytes);
        if is_here || !object.is_combinable() || matches!(live, Some(Live::Stream(_))) {
            return self.serve(name, object, reply, CacheWord::of_hit(&hit), visit, Forward::Partial);
        }
        if asked.directives.only_if_cached {
            return cache.answer(name, [ResponseEvent::Failed(failed(FailureReason::Evicted))]);
        }
        (status.forward, status.is_collapsed) = (Some(Forward::Partial), live.is_some());
        let reply = Reply::of(object, &hit, &head, &status);
        let word = CacheWord::Forward(Forward::Partial);
        self.serve(name, object, reply, word, visit, Forward::Partial);
    }

    /// Sends the request of a fill.
    pub(crate) fn fetch(&mut self, fill: &Arc<Fill>) {
        let cache = &mut *self.cache;
        cache.fills.insert(fill.id, Arc::clone(fill));
        cache.shared.fills.fetch_add(1, Ordering::Relaxed);
        let conditional =
            fill.validates.as_ref().map(|object| Conditional::of(&object.stored)).unwrap_or_default();
        let fields = [
            ("If-None-Match", conditional.if_none_match.as_deref()),
            ("If-Modified-Since", conditional.if_modified_since.as_deref()),
        ];
        let fields = fields.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let range = fill.range.as_ref().map(range_field);
        let range = range.iter().map(|value| ("Range", value.as_bytes()));
        let request = fill.template.request(fields.chain(range));
        self.gateway.begin(fill.id, request, cache.now_ms);
    }

    /// Gives a request to the gateway, for its own client only.
    pub(crate) fn pass(&mut self, name: RequestId, forward: Forward) {
        let cache = &mut *self.cache;
        let inner = cache.next_name();
        let Some(exchange) = cache.exchanges.get_mut(&name) else { return };
        let conditions: Vec<_> = exchange.ask.own_conditions().collect();
        let fields = conditions.iter().map(|(name, value)| (name.as_str(), &value[..]));
        let request = exchange.template.request(fields);
        exchange.events.push_back(note(CacheWord::Forward(forward)));
        let requested_s = (cache.shared.unix_s)();
        exchange.state = State::Passing(Passing { inner, forward, requested_s, detail: None });
        cache.passing.insert(inner, name);
        cache.announce(name);
        self.gateway.begin(inner, request, cache.now_ms);
    }

    /// The head that a request waits for has come, or will not.
    pub(crate) fn settle(&mut self, name: RequestId, stage: Stage) {
        let cache = &mut *self.cache;
        let Some(exchange) = cache.exchanges.get_mut(&name) else { return };
        let State::Waiting { fill, forward, is_first } = &exchange.state else { return };
        let (fill, forward, is_first) = (Arc::clone(fill), *forward, *is_first);
        let (ask, client) = (Arc::clone(&exchange.ask), exchange.template.client());
        let head = ask.head.get();
        let now_s = (cache.shared.unix_s)();
        let reader = ReaderName { home: Arc::clone(&cache.home), request: name };
        let asked = CacheRequest::of(&ask.route.rules, &head);
        let (object, forward_status, is_live) = match stage {
            Stage::Asked => return,
            Stage::Live(object) => (object, None, true),
            Stage::Settled(Settled::Use { first, status, .. }) if is_first => (first, Some(status), false),
            Stage::Settled(Settled::Use { others: Some(object), status, .. }) => {
                (object, Some(status), false)
            }
            Stage::Settled(Settled::Stale(object, forward_status)) => {
                cache.leave(&fill, &reader);
                if let Ok(asked) = asked {
                    let hit = Hit::of(&asked, &object.stored, now_s, true);
                    let status = CacheStatus {
                        cache: &cache.shared.name,
                        forward: Some(forward),
                        forward_status,
                        ttl_s: Some(hit.ttl_s),
                        detail: Some("origin-failed"),
                        ..CacheStatus::default()
                    };
                    let reply = Reply::of(&object, &hit, &head, &status);
                    let visit = Visit::new(&object.content, client);
                    self.serve(name, &object, reply, CacheWord::Stale, visit, forward);
                }
                return;
            }
            Stage::Settled(Settled::Alone | Settled::Use { others: None, .. }) => {
                cache.leave(&fill, &reader);
                return self.pass(name, forward);
            }
            Stage::Settled(Settled::Again) => {
                cache.leave(&fill, &reader);
                return self.open(name);
            }
            Stage::Settled(Settled::Whole) => {
                exchange.wants_whole = true;
                cache.leave(&fill, &reader);
                return self.open(name);
            }
            Stage::Settled(Settled::Failed(failure)) => {
                cache.leave(&fill, &reader);
                let word = note(CacheWord::Forward(forward));
                return cache.answer(name, [word, ResponseEvent::Failed(failure)]);
            }
        };
        // A tag of it was purged: only the head says that it has it. The client may have come after that.
        if !is_first && !cache.shared.is_current(object.generation(), &ask.key, &object.labels) {
            cache.leave(&fill, &reader);
            return self.open(name);
        }
        // What a client gets that did not ask for it is for it, too, and is not older than it wants.
        let is_for_it = is_first
            || object.stored.variant().matches(&head)
                && (forward_status.is_some() || object.stored.freshness().is_fresh(now_s));
        let Some(asked) = asked.ok().filter(|_| is_for_it) else {
            cache.leave(&fill, &reader);
            if object.stored.variant().matches(&head) {
                return self.pass(name, forward);
            }
            return self.open(name);
        };
        let hit = Hit::of(&asked, &object.stored, now_s, false);
        let status = CacheStatus {
            cache: &cache.shared.name,
            forward: Some(forward),
            forward_status,
            ttl_s: Some(hit.ttl_s),
            is_stored: is_first && is_live,
            is_collapsed: !is_first,
            detail: None,
        };
        let mut reply = Reply::of(&object, &hit, &head, &status);
        if is_first && is_live && hit.age_s == 0 {
            // As the origin sent it: it is a fresh response, not one from a store.
            reply.head.retain(|name, _| !name.eq_ignore_ascii_case(b"Age"));
        }
        let begun = if is_first && is_live { fill.take_visit() } else { None };
        let visit = begun.unwrap_or_else(|| Visit::new(&object.content, client));
        self.serve(name, &object, reply, CacheWord::Forward(forward), visit, forward);
        let cache = &mut *self.cache;
        let reads_it = cache.exchanges.get(&name).is_some_and(|exchange| match &exchange.state {
            State::Reading(Reading { source: Source::Stream(own), .. }) => Arc::ptr_eq(own, &fill),
            _ => false,
        });
        if !reads_it {
            cache.leave(&fill, &reader);
        }
    }

    /// Answers from a content.
    fn serve(
        &mut self,
        name: RequestId,
        object: &Arc<Object>,
        Reply { head, bytes }: Reply,
        word: CacheWord,
        visit: Visit,
        forward: Forward,
    ) {
        let cache = &mut *self.cache;
        let content = &object.content;
        let live = cache.shared.live.of(content.key);
        let Some(exchange) = cache.exchanges.get_mut(&name) else { return };
        let length = content.length();
        let is_whole = bytes.start == 0 && (bytes.end == u64::MAX || length == Some(bytes.end));
        let is_part_of_parts = object.is_combinable() && !bytes.is_empty();
        let (source, waits) = match &live {
            // A fill may have ended in between; then the store has it all.
            Some(Live::Stream(fill)) if !bytes.is_empty() || is_whole => {
                let reader = ReaderName { home: Arc::clone(&cache.home), request: name };
                let is_at_hand = fill.join(&reader, bytes.start);
                (Source::Stream(Arc::clone(fill)), !is_at_hand)
            }
            // A block may be gone, or turn out to be damaged: then the request goes on otherwise.
            _ => (Source::Store, !bytes.is_empty()),
        };
        let mut events = vec![note(word), ResponseEvent::Head(head, Instruction::None)];
        if !waits {
            exchange.events.extend(events.drain(..));
        }
        exchange.state = State::Reading(Reading {
            object: Arc::clone(object),
            source,
            held: Held::default(),
            at: bytes.start,
            end: bytes.end,
            is_whole,
            visit,
            is_at_start: true,
            head: events,
            forward,
        });
        cache.announce(name);
        if is_part_of_parts && matches!(live, Some(Live::Parts(_))) {
            self.read_parts(name);
        }
        if object.stored.head().status() == Status::OK {
            self.prefetch_behind(name);
        }
    }
}

impl LoopCache {
    fn wait(&mut self, name: RequestId, fill: Arc<Fill>, forward: Forward, is_first: bool) {
        if let Some(exchange) = self.exchanges.get_mut(&name) {
            exchange.state = State::Waiting { fill, forward, is_first };
        }
        // It may be settled already.
        self.announce(name);
    }

    fn answer(&mut self, name: RequestId, events: impl IntoIterator<Item = ResponseEvent>) {
        if let Some(exchange) = self.exchanges.get_mut(&name) {
            exchange.state = State::Over;
            exchange.events.extend(events);
        }
        self.announce(name);
    }
}

#[cfg(test)]
mod tests;

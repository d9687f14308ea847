//! What comes of fetches, on its way into the store and to those who wait.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use baton_buf::{Aggregate, Slice};
use baton_http::Status;
use baton_http::origin::ResponseHead;
use baton_segment::rules::CacheRequest;
use baton_upstream::{Failure, FailureReason, RequestId, ResponseEvent};

use crate::exchange::failed;
use crate::fetched_bytes::in_memory;
use crate::fill::{Fill, Purpose, Settled, Stage};
use crate::loop_cache::{Caching, LoopCache};
use crate::object::Object;
use crate::{Ask, CacheCounters};

/// What a fetch goes on with.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The next event.
    More,
    /// Nothing: the gateway has forgotten it, or another request has it now.
    Over,
}

impl Caching<'_> {
    /// Has all fetches go on that may.
    pub(crate) fn pump_due(&mut self) {
        while let Some(id) = self.cache.due.pop_front() {
            if let Some(fill) = self.cache.fills.get(&id).cloned() {
                self.pump(&fill);
            } else if let Some(part) = self.cache.parts.get(&id).cloned() {
                self.pump_part(id, &part);
            }
        }
    }

    fn pump(&mut self, fill: &Arc<Fill>) {
        let window = self.cache.window();
        let (mut has_taken, mut has_news) = (false, false);
        loop {
            if fill.is_deserted() {
                return self.give_up(fill, FailureReason::ClientGone);
            }
            if !fill.wants_more(window) {
                break;
            }
            let Some(event) = self.take_of_fetch(fill.id) else {
                if !std::mem::take(&mut has_taken) {
                    break;
                }
                self.gateway.note_sent(fill.id, self.cache.now_ms);
                continue;
            };
            (has_taken, has_news) = (true, true);
            if self.handle_event_of(fill, event) == Step::Over {
                return;
            }
        }
        // Readers that are woken for nothing ask whether the fetch goes on, and so on without end: while it waits for the
        // slowest, the others have all that has come.
        if has_news {
            self.cache.wake(fill.woken_if_live());
        }
        self.note_taken(fill.id, has_taken);
    }

    /// A fetch pauses. What was taken makes room: without a word the gateway would never read on.
    pub(crate) fn note_taken(&mut self, id: RequestId, has_taken: bool) {
        if has_taken {
            self.gateway.note_sent(id, self.cache.now_ms);
        }
    }

    fn handle_event_of(&mut self, fill: &Arc<Fill>, event: ResponseEvent) -> Step {
        let cache = &mut *self.cache;
        match event {
            ResponseEvent::Head(head, instruction) => return self.handle_head(fill, head, instruction),
            ResponseEvent::Body(bytes) => cache.store(fill, &bytes),
            ResponseEvent::Trailers(trailers) => fill.set_trailers(trailers),
            ResponseEvent::End { .. } => {
                cache.finish(fill, Ok(()));
                return Step::Over;
            }
            ResponseEvent::Failed(failure) => {
                cache.fail(fill, failure);
                return Step::Over;
            }
            ResponseEvent::Interim(head) => cache.inform(fill, head),
            // For the log: of the request that began it.
            ResponseEvent::Answering(_)
            | ResponseEvent::Stderr(_)
            | ResponseEvent::Trail(..)
            | ResponseEvent::Travelled(_) => {
                cache.tell_first(fill, event);
            }
            // Nothing was offered that these could answer.
            ResponseEvent::CacheNote(_)
            | ResponseEvent::Switch(_)
            | ResponseEvent::HalfEnd
            | ResponseEvent::Rest(_)
            | ResponseEvent::Chosen(_)
            | ResponseEvent::Answered(_) => {
                self.give_up(fill, FailureReason::Ended);
                return Step::Over;
            }
        }
        Step::More
    }

    /// The fetch ends here.
    fn give_up(&mut self, fill: &Arc<Fill>, why: FailureReason) {
        self.cache.fail(fill, failed(why));
        self.drop_fill(fill);
    }

    pub(crate) fn drop_fill(&mut self, fill: &Arc<Fill>) {
        if self.cache.fills.remove(&fill.id).is_some() {
            self.cache.shared.fills.fetch_sub(1, Ordering::Relaxed);
        }
        _ = self.cache.file_reads.remove(fill.id);
        self.gateway.abandon(fill.id, self.cache.now_ms);
    }
}

impl LoopCache {
    /// Bytes that are read ahead of the fastest client.
    fn window(&self) -> u64 {
        WINDOW_BLOCKS * self.shared.blocks.layout().block_bytes()
    }

    pub(crate) fn remove(&self, fill: &Arc<Fill>, object: &Arc<Object>) {
        self.remove_object(&fill.ask, object);
    }

    /// New requests do not find an object any more.
    pub(crate) fn remove_object(&self, ask: &Ask, object: &Arc<Object>) {
        self.shared.directory.with(ask, |entry| {
            entry.variants.retain(|other| !Arc::ptr_eq(&other.content, &object.content));
        });
    }

    /// Nothing of the response is stored: those who wait go on so.
    pub(crate) fn settle(&mut self, fill: &Arc<Fill>, settled: Settled) {
        self.forget_asking(fill);
        let waiting = fill.set_stage(Stage::Settled(settled));
        self.wake(waiting);
    }

    fn forget_asking(&self, fill: &Arc<Fill>) {
        self.shared.directory.with(&fill.ask, |entry| {
            entry.asking.retain(|other| !Arc::ptr_eq(other, fill));
        });
    }

    /// Takes bytes of the body, which are in memory.
    fn store(&mut self, fill: &Arc<Fill>, bytes: &Aggregate) {
        let Stage::Live(object) = fill.current_stage() else { return };
        let block_bytes = self.shared.blocks.layout().block_bytes();
        for slice in in_memory(bytes) {
            let mut slice = slice.clone();
            while !slice.is_empty() {
                let room = block_bytes - fill.received() % block_bytes;
                let rest = slice.split_off((room as usize).min(slice.len()));
                fill.push(std::mem::replace(&mut slice, rest));
                self.store_blocks(fill, &object, false);
            }
        }
    }

    fn store_blocks(&mut self, fill: &Arc<Fill>, object: &Arc<Object>, is_end: bool) {
        let (block_bytes, window) = (self.shared.blocks.layout().block_bytes(), self.window());
        while let Some((number, block)) = fill.next_block(block_bytes, is_end) {
            let (stored, evicted) = self.shared.blocks.put(object.content.key, number, &block, self.now_ms);
            self.shared.forget(evicted);
            if stored.is_err() {
                // Who comes from now on would not find this block.
                self.remove(fill, object);
            }
            let stays = self.shared.blocks.outlasts_readers(object.content.length());
            fill.note_block(block, stored.is_ok() && stays, window);
        }
    }

    /// The response has come, as far as it will.
    fn finish(&mut self, fill: &Arc<Fill>, end: Result<(), Failure>) {
        if let Stage::Live(object) = fill.current_stage() {
            if end.is_ok() {
                self.store_blocks(fill, &object, true);
                if object.content.length().is_none() {
                    object.content.set_length(fill.received());
                    self.shared.note_changed(&fill.ask, &object);
                }
                if fill.received() == 0 {
                    let (_, evicted) = self.shared.blocks.put(object.content.key, 0, &NOTHING(), self.now_ms);
                    self.shared.forget(evicted);
                }
            }
            let evicted = self.shared.blocks.end(object.content.key, object.content.length());
            self.shared.forget(evicted);
            self.shared.live.remove(object.content.key);
            let is_whole = object.content.length() == Some(fill.received());
            if end.is_ok() && is_whole && self.shared.blocks.is_complete(object.content.key) {
                CacheCounters::add(self.shared.counters.stored, 1);
            } else {
                self.remove(fill, &object);
            }
        }
        if self.fills.remove(&fill.id).is_some() {
            self.shared.fills.fetch_sub(1, Ordering::Relaxed);
        }
        let waiting = fill.finish(end);
        self.wake(waiting);
    }

    /// The response will not come, or not as a whole.
    fn fail(&mut self, fill: &Arc<Fill>, failure: Failure) {
        if matches!(fill.current_stage(), Stage::Asked) {
            let settled = match self.stale_instead(fill) {
                Some(object) => Settled::Stale(object, None),
                None => Settled::Failed(failure),
            };
            self.settle(fill, settled);
        }
        self.finish(fill, Err(failure));
    }

    /// The stored response that stands in for an origin that cannot be reached.
    fn stale_instead(&self, fill: &Fill) -> Option<Arc<Object>> {
        let object = fill.validates.as_ref()?;
        let head = fill.ask.head.get();
        let asked = CacheRequest::of(&fill.ask.route.rules, &head).ok()?;
        let now_s = (self.shared.unix_s)();
        asked.takes_instead_of_error(&object.stored, None, now_s).then(|| Arc::clone(object))
    }

    /// An interim response of a fetch has come.
    fn inform(&mut self, fill: &Arc<Fill>, head: ResponseHead) {
        // It is about the body of a request, and a fetch has none.
        if head.status() == Status::CONTINUE {
            return;
        }
        if head.field("Set-Cookie").is_none() {
            let waiting = fill.push_interim(head.clone());
            self.wake(waiting);
        }
        self.tell_first(fill, ResponseEvent::Interim(head));
    }

    /// Gives an event to the request that has begun a fetch, if it is still there.
    fn tell_first(&mut self, fill: &Arc<Fill>, event: ResponseEvent) {
        if let Some(name) = self.first_of(fill) {
            self.tell_client(name, event);
        }
    }

    /// Gives an event to a request, if it is still there.
    pub(crate) fn tell_client(&mut self, name: RequestId, event: ResponseEvent) {
        if let Some(exchange) = self.exchanges.get_mut(&name) {
            exchange.events.push_back(event);
            self.announce(name);
        }
    }

    /// The request that has begun a fetch, if it is still there.
    pub(crate) fn first_of(&self, fill: &Arc<Fill>) -> Option<RequestId> {
        let Purpose::Client(name) = fill.purpose else { return None };
        // It may be over, or go on otherwise, and its name may be another's by now.
        self.exchanges.get(&name).filter(|exchange| exchange.began(fill)).map(|_| name)
    }
}

/// The block of a response without a body.
const NOTHING: fn() -> Slice = || Slice::from(Vec::new());

/// Blocks that are read ahead of the fastest client: a second of a film, and not much of what is never looked at.
const WINDOW_BLOCKS: u64 = 4;

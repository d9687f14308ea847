//! What comes of fetches, on its way into the store and to those who wait.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use baton_buf::{Aggregate, Piece, Slice};
use baton_fcgi::cgi::Instruction;
use baton_http::origin::ResponseHead;
use baton_http::{ContentRange, Status};
use baton_segment::rules::{Asked, Fetched, NotStored, Stored, Times, Validation};
use baton_upstream::{Failure, FailureReason, RequestId, ResponseEvent};

use crate::exchange::{Passing, State, failed};
use crate::fill::{Fill, Purpose, Settled, Stage};
use crate::gateway::{CacheOfLoop, CachingGateway};
use crate::live::Live;
use crate::object::Object;
use crate::parts::{PartFetch, Parts};
use crate::prefetch::is_segment;
use crate::visit::Visit;
use crate::{Ask, CacheCounters, CacheWord};

/// What a fetch goes on with.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The next event.
    More,
    /// Nothing: the gateway has forgotten it, or another request has it now.
    Over,
}

impl CachingGateway {
    /// Has all fetches go on that may.
    pub(crate) fn pump_due(&mut self) {
        while let Some(id) = self.cache.as_mut().and_then(|cache| cache.due.pop_front()) {
            let Some(cache) = &self.cache else { return };
            if let Some(fill) = cache.fills.get(&id).cloned() {
                self.pump(&fill);
            } else if let Some(part) = cache.parts.get(&id).cloned() {
                self.pump_part(id, &part);
            }
        }
    }

    fn pump(&mut self, fill: &Arc<Fill>) {
        let window = self.cache.as_ref().map_or(0, CacheOfLoop::window);
        let (mut has_taken, mut has_news) = (false, false);
        loop {
            if fill.is_deserted() {
                return self.give_up(fill, FailureReason::ClientGone);
            }
            if !fill.wants_more(window) {
                break;
            }
            let Some(event) = self.inner.take(fill.id) else {
                let Some(cache) = self.cache.as_ref().filter(|_| has_taken) else { break };
                self.inner.note_sent(fill.id, cache.now_ms);
                has_taken = false;
                continue;
            };
            (has_taken, has_news) = (true, true);
            if self.handle_event_of(fill, event) == Step::Over {
                return;
            }
        }
        // Readers that are woken for nothing ask whether the fetch goes on, and so on without end: while it waits for the
        // slowest, the others have all that has come.
        if let Some(cache) = self.cache.as_mut().filter(|_| has_news) {
            cache.wake(fill.woken_if_live());
        }
        self.note_taken(fill.id, has_taken);
    }

    /// A fetch pauses. What was taken makes room: without a word the gateway would never read on.
    pub(crate) fn note_taken(&mut self, id: RequestId, has_taken: bool) {
        if let Some(cache) = self.cache.as_ref().filter(|_| has_taken) {
            self.inner.note_sent(id, cache.now_ms);
        }
    }

    fn handle_event_of(&mut self, fill: &Arc<Fill>, event: ResponseEvent) -> Step {
        let Some(cache) = &mut self.cache else { return Step::Over };
        match event {
            ResponseEvent::Head(head, instruction) => return self.handle_head(fill, head, instruction),
            ResponseEvent::Body(bytes) => match cache.store(fill, bytes) {
                Ok(()) => {}
                Err(why) => {
                    self.give_up(fill, why);
                    return Step::Over;
                }
            },
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
            ResponseEvent::Stderr(_) | ResponseEvent::Trail(..) => cache.tell_first(fill, event),
            // Nothing was offered that these could answer.
            ResponseEvent::CacheNote(_)
            | ResponseEvent::Switch(_)
            | ResponseEvent::HalfEnd
            | ResponseEvent::Rest(_)
            | ResponseEvent::Answered(_) => {
                self.give_up(fill, FailureReason::Ended);
                return Step::Over;
            }
        }
        Step::More
    }

    fn handle_head(&mut self, fill: &Arc<Fill>, head: ResponseHead, instruction: Instruction) -> Step {
        let Some(cache) = &mut self.cache else { return Step::Over };
        let ask = Arc::clone(&fill.ask);
        let request = ask.head.get();
        let received_s = (cache.shared.unix_s)();
        let times = Times { requested_s: fill.requested_s, received_s };
        let status = head.status();
        if let (Some(object), Ok(asked)) = (&fill.validates, Asked::of(&ask.route.rules, &request)) {
            match Validation::of(&asked, &object.stored, &head, received_s) {
                Validation::Current => {
                    let fetched = Fetched { request: &request, head, times };
                    let freshened = object.stored.freshen(&ask.route.rules, fetched);
                    cache.freshen(fill, object, freshened, status);
                    return Step::More;
                }
                Validation::UseStale => {
                    cache.settle(fill, Settled::Stale(Arc::clone(object), Some(status.code())));
                    self.drop_fill(fill);
                    return Step::Over;
                }
                Validation::OtherVersion => {
                    cache.remove(fill, object);
                    cache.settle(fill, Settled::Again);
                    return Step::More;
                }
                Validation::PassOn => return self.pass_on(fill, head, instruction, "error"),
                // No HEAD begins a fetch.
                Validation::Changed | Validation::Described => {}
            }
        }
        let block_bytes = cache.shared.blocks.layout().block_bytes();
        let part = match (&fill.range, status) {
            (Some(range), Status::PARTIAL_CONTENT) => match usable_part(&head, range, block_bytes) {
                Some(part) => Some(part),
                None => return self.ask_for_the_whole(fill),
            },
            _ => None,
        };
        let is_plain =
            matches!(instruction, Instruction::None) && (status != Status::PARTIAL_CONTENT || part.is_some());
        let fetched = Fetched { request: &request, head: head.clone(), times };
        let is_unasked = fill.purpose == Purpose::Prefetch;
        let judged = match is_plain && (!is_unasked || is_segment(&head, &instruction)) {
            true => Stored::of(&ask.route.rules, fetched),
            false => Err(NotStored::Status),
        };
        match judged {
            Ok(stored) => self.begin_object(fill, stored, part),
            Err(NotStored::WeakPart | NotStored::ContentRange) if part.is_some() => {
                self.ask_for_the_whole(fill)
            }
            // A client that waits for it already asks for itself.
            Err(_) if is_unasked => {
                cache.settle(fill, Settled::Again);
                self.drop_fill(fill);
                Step::Over
            }
            Err(reason) => {
                cache.note_not_stored(fill, reason, received_s);
                if part.is_some() {
                    // It is not the part that the client has asked for.
                    cache.settle(fill, Settled::Alone);
                    self.drop_fill(fill);
                    return Step::Over;
                }
                self.pass_on(fill, head, instruction, reason.label())
            }
        }
    }

    /// The response is stored as it comes, and answers those who wait.
    fn begin_object(&mut self, fill: &Arc<Fill>, stored: Stored, part: Option<ContentRange>) -> Step {
        let Some(cache) = &mut self.cache else { return Step::Over };
        let from = part.map_or(0, |part| part.range.first);
        let (object, begun) = cache.shared.new_object(fill, stored, from, cache.now_ms);
        if begun.is_err() && part.is_some() {
            cache.settle(fill, Settled::Alone);
            self.drop_fill(fill);
            return Step::Over;
        }
        if fill.purpose == Purpose::Prefetch {
            CacheCounters::add(cache.shared.counters.prefetched, 1);
        }
        let layout = cache.shared.blocks.layout();
        fill.set_visit(Visit::begun(&object.content, layout.block_of(from)));
        let length = object.content.length().filter(|_| begun.is_ok() && object.is_combinable());
        let length = length.filter(|length| part.is_some() || *length > layout.block_bytes());
        let parts = length.map(|length| {
            let blocks = layout.block_of(from)..match part {
                Some(part) if part.range.last + 1 < length => layout.block_of(part.range.last + 1),
                _ => layout.blocks_in(length),
            };
            // One block at least: those who wait are about to say what they want.
            let finish_to = if fill.is_background() { blocks.end } else { blocks.start + 1 };
            let (ask, template) = (&fill.ask, &fill.template);
            let ignores_ranges = fill.range.is_some() && part.is_none();
            let owner = (&cache.home, fill.id);
            let object = Arc::clone(&object);
            let (parts, number) =
                Parts::begun(object, length, (ask, template), blocks, ignores_ranges, finish_to, owner);
            PartFetch { parts: Arc::new(parts), fill: number, client: cache.first_of(fill) }
        });
        let live = match &parts {
            Some(part) => Live::Parts(Arc::clone(&part.parts)),
            None => Live::Stream(Arc::clone(fill)),
        };
        cache.shared.live.insert(object.content.key, live);
        cache.shared.directory.with(&fill.ask, |entry| {
            entry.asking.retain(|other| !Arc::ptr_eq(other, fill));
            (entry.passes_until_s, entry.prefetched_s) = (0, 0);
            if begun.is_ok() {
                entry.insert(Arc::clone(&object));
            }
        });
        let stage = Stage::Live(object);
        let waiting = fill.set_stage(stage.clone());
        cache.wake(waiting);
        let Some(part) = parts else { return Step::More };
        CacheCounters::add(cache.shared.counters.stored, 1);
        cache.fills.remove(&fill.id);
        cache.parts.insert(fill.id, part);
        cache.due.push_back(fill.id);
        // Before more is read: without a reader it would end here.
        for reader in fill.readers_of(&Arc::clone(&cache.home)) {
            self.settle(reader, stage.clone());
        }
        Step::Over
    }

    /// The parts of this origin are of no use.
    fn ask_for_the_whole(&mut self, fill: &Arc<Fill>) -> Step {
        if let Some(cache) = &mut self.cache {
            cache.settle(fill, Settled::Whole);
        }
        self.drop_fill(fill);
        Step::Over
    }

    /// The response is for the client that has asked for it, and for no other.
    fn pass_on(
        &mut self,
        fill: &Arc<Fill>,
        head: ResponseHead,
        instruction: Instruction,
        why: &'static str,
    ) -> Step {
        let Some(cache) = &mut self.cache else { return Step::Over };
        cache.settle(fill, Settled::Alone);
        let first = cache.exchanges.iter_mut().find(|(_, exchange)| exchange.began(fill));
        let Some((name, exchange)) = first else {
            self.drop_fill(fill);
            return Step::Over;
        };
        let name = *name;
        let mut head = head;
        let status = baton_segment::rules::CacheStatus {
            cache: &cache.shared.name,
            forward: Some(fill.forward),
            detail: Some(why),
            ..Default::default()
        };
        crate::answer::add_status(&mut head, &status);
        exchange.events.push_back(ResponseEvent::CacheNote(CacheWord::Forward(fill.forward).as_str()));
        exchange.events.push_back(ResponseEvent::Head(head, instruction));
        exchange.state = State::Passing(Passing {
            inner: fill.id,
            forward: fill.forward,
            requested_s: fill.requested_s,
            detail: Some(why),
        });
        cache.fills.remove(&fill.id);
        cache.shared.fills.fetch_sub(1, Ordering::Relaxed);
        cache.passing.insert(fill.id, name);
        cache.announce(name);
        Step::Over
    }

    /// The fetch ends here.
    fn give_up(&mut self, fill: &Arc<Fill>, why: FailureReason) {
        if let Some(cache) = &mut self.cache {
            cache.fail(fill, failed(why));
        }
        self.drop_fill(fill);
    }

    fn drop_fill(&mut self, fill: &Arc<Fill>) {
        if let Some(cache) = &mut self.cache {
            if cache.fills.remove(&fill.id).is_some() {
                cache.shared.fills.fetch_sub(1, Ordering::Relaxed);
            }
            self.inner.abandon(fill.id, cache.now_ms);
        }
    }
}

impl CacheOfLoop {
    /// Bytes that are read ahead of the fastest client.
    fn window(&self) -> u64 {
        WINDOW_BLOCKS * self.shared.blocks.layout().block_bytes()
    }

    /// A stored response was confirmed.
    fn freshen(
        &mut self,
        fill: &Arc<Fill>,
        object: &Arc<Object>,
        freshened: Result<Stored, NotStored>,
        status: Status,
    ) {
        let new = match freshened {
            Ok(stored) => {
                let content = Arc::clone(&object.content);
                let new = Object::new(stored, content, object.labels.clone(), object.generation());
                let new = Arc::new(new);
                self.shared.note_changed(&fill.ask, &new);
                self.shared.directory.with(&fill.ask, |entry| entry.replace(object, Arc::clone(&new)));
                new
            }
            Err(reason) => {
                if !reason.is_of_the_request() {
                    self.remove(fill, object);
                }
                Arc::clone(object)
            }
        };
        self.settle(fill, Settled::Use(new, status.code()));
    }

    /// Remembers that responses of this kind are not shared, so that no client waits for the next one.
    fn note_not_stored(&mut self, fill: &Arc<Fill>, reason: NotStored, now_s: u64) {
        if let Some(object) = fill.validates.as_ref().filter(|_| !reason.is_of_the_request()) {
            self.remove(fill, object);
        }
        if !reason.is_of_the_request() {
            self.shared.directory.with(&fill.ask, |entry| entry.passes_until_s = now_s + PASSES_S);
        }
    }

    fn remove(&self, fill: &Arc<Fill>, object: &Arc<Object>) {
        self.remove_object(&fill.ask, object);
    }

    /// New requests do not find an object any more.
    pub(crate) fn remove_object(&self, ask: &Ask, object: &Arc<Object>) {
        self.shared.directory.with(ask, |entry| {
            entry.variants.retain(|other| !Arc::ptr_eq(&other.content, &object.content));
        });
    }

    /// Nothing of the response is stored: those who wait go on so.
    fn settle(&mut self, fill: &Arc<Fill>, settled: Settled) {
        self.forget_asking(fill);
        let waiting = fill.set_stage(Stage::Settled(settled));
        self.wake(waiting);
    }

    fn forget_asking(&self, fill: &Arc<Fill>) {
        self.shared.directory.with(&fill.ask, |entry| {
            entry.asking.retain(|other| !Arc::ptr_eq(other, fill));
        });
    }

    /// Takes bytes of the body.
    fn store(&mut self, fill: &Arc<Fill>, bytes: Aggregate) -> Result<(), FailureReason> {
        let Stage::Live(object) = fill.current_stage() else { return Ok(()) };
        let block_bytes = self.shared.blocks.layout().block_bytes();
        for piece in bytes.pieces() {
            let mut slice = in_memory(piece)?;
            while !slice.is_empty() {
                let room = block_bytes - fill.received() % block_bytes;
                let rest = slice.split_off((room as usize).min(slice.len()));
                fill.push(std::mem::replace(&mut slice, rest));
                self.store_blocks(fill, &object, false);
            }
        }
        Ok(())
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
        let asked = Asked::of(&fill.ask.route.rules, &head).ok()?;
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
    fn first_of(&self, fill: &Arc<Fill>) -> Option<RequestId> {
        self.exchanges.iter().find(|(_, exchange)| exchange.began(fill)).map(|(name, _)| *name)
    }
}

/// Which part a 206 brings, if that can be stored: it begins where it was asked for, has a whole block at least, tells the
/// length of the whole, and has no coding.
fn usable_part(head: &ResponseHead, asked: &Range<u64>, block_bytes: u64) -> Option<ContentRange> {
    let part = head.field("Content-Range").and_then(ContentRange::parse)?;
    let length = part.length?;
    let end = part.range.last + 1;
    let is_long_enough = end >= asked.start + block_bytes || end == length;
    // It was asked for without one.
    let is_plain =
        head.field("Content-Encoding").is_none_or(|coding| coding.eq_ignore_ascii_case(b"identity"));
    (part.range.first == asked.start && is_long_enough && is_plain).then_some(part)
}

/// A piece as bytes of this process. Those of other processes change, and those of files have no place in memory.
pub(crate) fn in_memory(piece: &Piece) -> Result<Slice, FailureReason> {
    match piece {
        Piece::Memory(slice) => Ok(slice.clone()),
        Piece::Shared(slice) => {
            let mut bytes = Vec::with_capacity(slice.len());
            slice.copy_prefix_to(slice.len(), &mut bytes);
            Ok(Slice::from(bytes))
        }
        Piece::File(slice) => {
            let mut bytes = vec![0; slice.len() as usize];
            let read = rustix::io::pread(slice.file(), &mut bytes, slice.offset());
            match read {
                Ok(count) if count == bytes.len() => Ok(Slice::from(bytes)),
                _ => Err(FailureReason::Ended),
            }
        }
        // What the cache asks for does not come through pipes: see `Request::takes_pipes`.
        Piece::Piped(_) => Err(FailureReason::Ended),
    }
}

/// The block of a response without a body.
const NOTHING: fn() -> Slice = || Slice::from(Vec::new());

/// Blocks that are read ahead of the fastest client: a second of a film, and not much of what is never looked at.
const WINDOW_BLOCKS: u64 = 4;

/// How long nothing waits for responses that have proved not to be for others.
const PASSES_S: u64 = 120;

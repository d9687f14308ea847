//! What the head of a fetch's response leads to: it is stored as it comes, confirms what is stored, or is for one client alone.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use baton_fcgi::cgi::Instruction;
use baton_http::origin::ResponseHead;
use baton_http::{ContentRange, Status};
use baton_segment::rules::{CacheRequest, Fetched, NotStored, Stored, Times, Validation};
use baton_upstream::ResponseEvent;

use crate::exchange::{Passing, State};
use crate::fill::{Fill, Purpose, Settled, Stage};
use crate::live::Live;
use crate::loop_cache::{Caching, LoopCache};
use crate::object::Object;
use crate::parts::{PartFetch, Parts};
use crate::prefetch::is_segment;
use crate::pump::Step;
use crate::visit::Visit;
use crate::{CacheCounters, CacheWord};

impl Caching<'_> {
    /// The head of a fetch has come.
    pub(crate) fn handle_head(
        &mut self,
        fill: &Arc<Fill>,
        head: ResponseHead,
        instruction: Instruction,
    ) -> Step {
        let cache = &mut *self.cache;
        let ask = Arc::clone(&fill.ask);
        let request = ask.head.get();
        let received_s = (cache.shared.unix_s)();
        let times = Times { requested_s: fill.requested_s, received_s };
        let status = head.status();
        if let (Some(object), Ok(asked)) = (&fill.validates, CacheRequest::of(&ask.route.rules, &request)) {
            match Validation::of(&asked, &object.stored, &head, received_s) {
                Validation::Current => {
                    let fetched = Fetched { request: &request, head, times };
                    cache.freshen(fill, object, &fetched, status);
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
        // Its readers say how much is fetched, and when.
        self.gateway.hold_in_memory(fill.id);
        let cache = &mut *self.cache;
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
        fill.set_visit(Visit::begun(&object.content, fill.template.client(), layout.block_of(from)));
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
            PartFetch { parts: Arc::new(parts), fill: number, client: cache.first_of(fill), if_range: false }
        });
        let live = match &parts {
            Some(part) => Live::Parts(Arc::clone(&part.parts)),
            None => Live::Stream(Arc::clone(fill)),
        };
        cache.shared.live.insert(object.content.key, live);
        cache.shared.directory.with(&fill.ask, |entry| {
            entry.asking.retain(|other| !Arc::ptr_eq(other, fill));
            (entry.passes_until_s, entry.prefetched_s) = (0, 0);
            // One that was purged on its way takes no newer one's place.
            let generation = object.generation();
            if begun.is_ok() && cache.shared.is_current(generation, &entry.key, &object.labels) {
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
        self.cache.settle(fill, Settled::Whole);
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
        let cache = &mut *self.cache;
        cache.settle(fill, Settled::Alone);
        let first = cache.first_of(fill);
        let Some((name, exchange)) = first.and_then(|name| Some((name, cache.exchanges.get_mut(&name)?)))
        else {
            self.drop_fill(fill);
            return Step::Over;
        };
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
}

impl LoopCache {
    /// A stored response was confirmed.
    fn freshen(&mut self, fill: &Arc<Fill>, object: &Arc<Object>, fetched: &Fetched<'_>, status: Status) {
        let rules = &fill.ask.route.rules;
        let with = |stored| {
            let (content, labels) = (Arc::clone(&object.content), object.labels.clone());
            Arc::new(Object::new(stored, content, labels, object.generation()))
        };
        let (first, others) = match object.stored.freshen(rules, fetched) {
            Ok(stored) => {
                let new = with(stored);
                self.shared.note_changed(&fill.ask, &new);
                self.shared.directory.with(&fill.ask, |entry| entry.replace(object, Arc::clone(&new)));
                (Arc::clone(&new), Some(new))
            }
            Err(reason) => {
                self.note_not_stored(fill, reason, fetched.times.received_s);
                let others = reason.is_of_the_request().then(|| Arc::clone(object));
                (with(object.stored.freshened_once(rules, fetched)), others)
            }
        };
        self.settle(fill, Settled::Use { first, others, status: status.code() });
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

/// How long nothing waits for responses that have proved not to be for others.
const PASSES_S: u64 = 120;

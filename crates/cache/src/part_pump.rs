//! Requests for parts, and what comes of them.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use baton_buf::Aggregate;
use baton_fcgi::cgi::Instruction;
use baton_http::Status;
use baton_http::origin::ResponseHead;
use baton_segment::fill::Answer;
use baton_segment::rules::{Fetched, NotJoined, Stored, Times, Validators};
use baton_upstream::{RequestId, ResponseEvent};

use crate::fetched_bytes::in_memory;
use crate::loop_cache::{Caching, LoopCache};
use crate::mp4::index_behind;
use crate::object::Object;
use crate::parts::{Effects, Flow, PartFetch, PartRequest, Parts};

impl Caching<'_> {
    /// Does what the machine of an object has decided. `client`: the request that it was asked for.
    pub(crate) fn apply(&mut self, parts: &Arc<Parts>, effects: Effects, client: Option<RequestId>) {
        let Effects { requests, tell, wake, has_changed, is_over } = effects;
        let cache = &mut *self.cache;
        if has_changed {
            cache.remove_object(&parts.ask, &parts.object);
        }
        if is_over {
            cache.end_parts(parts);
        }
        for (home, id) in tell {
            cache.tell(&home, id);
        }
        cache.wake(wake);
        for request in requests {
            self.ask_for_part(parts, &request, client);
        }
    }

    fn ask_for_part(&mut self, parts: &Arc<Parts>, request: &PartRequest, client: Option<RequestId>) {
        let cache = &mut *self.cache;
        let name = cache.next_name();
        if !parts.bind(request.fill, &cache.home, name) {
            return;
        }
        let range = range_field(&request.bytes);
        let is_all = request.bytes == (0..u64::MAX);
        let validators = parts.object.stored.validators();
        let if_range = validators.strong_field().filter(|_| !is_all);
        let fields = [("Range", Some(range.as_bytes())), ("If-Range", if_range)];
        let fields = fields.into_iter().filter(|_| !is_all);
        let fields = fields.filter_map(|(name, value)| Some((name, value?)));
        let if_range = if_range.is_some();
        let fetch = PartFetch { parts: Arc::clone(parts), fill: request.fill, client, if_range };
        cache.parts.insert(name, fetch);
        cache.shared.fills.fetch_add(1, Ordering::Relaxed);
        self.gateway.begin(name, parts.template.request(fields), cache.now_ms);
    }

    /// Has a fetch go on as far as it may.
    pub(crate) fn pump_part(&mut self, id: RequestId, part: &PartFetch) {
        let mut has_taken = false;
        loop {
            match part.parts.flow(part.fill) {
                Flow::Closed => return self.drop_part(id),
                Flow::Pauses => break,
                Flow::Reads => {}
            }
            let Some(event) = self.take_of_fetch(id) else {
                if !std::mem::take(&mut has_taken) {
                    break;
                }
                self.gateway.note_sent(id, self.cache.now_ms);
                continue;
            };
            has_taken = true;
            if matches!(event, ResponseEvent::Head(..)) {
                self.gateway.hold_in_memory(id);
            }
            self.handle_part_event(part, event);
        }
        self.cache.wake(part.parts.woken());
        self.note_taken(id, has_taken);
    }

    fn handle_part_event(&mut self, part: &PartFetch, event: ResponseEvent) {
        let PartFetch { parts, fill, client, .. } = part;
        let effects = match event {
            ResponseEvent::Head(head, instruction) => {
                let answer = self.judge_part(part, head, &instruction);
                parts.handle_answer(*fill, answer)
            }
            ResponseEvent::Body(bytes) => return self.store_part(part, &bytes),
            ResponseEvent::End { .. } => parts.handle_end(*fill, false),
            ResponseEvent::Failed(_) => parts.handle_end(*fill, true),
            ResponseEvent::Answering(_)
            | ResponseEvent::Stderr(_)
            | ResponseEvent::Trail(..)
            | ResponseEvent::Travelled(_) => {
                if let Some(client) = client {
                    self.cache.tell_client(*client, event);
                }
                return;
            }
            // Clients of a part may have their head already. Fields behind a part are not of the whole.
            ResponseEvent::Interim(_) | ResponseEvent::Trailers(_) => return,
            // Nothing was offered that these could answer.
            ResponseEvent::CacheNote(_)
            | ResponseEvent::Switch(_)
            | ResponseEvent::HalfEnd
            | ResponseEvent::Rest(_)
            | ResponseEvent::Chosen(_)
            | ResponseEvent::Answered(_) => parts.handle_end(*fill, true),
        };
        self.apply(parts, effects, *client);
    }

    /// What the head of a response to a request for a part means.
    fn judge_part(&mut self, part: &PartFetch, head: ResponseHead, instruction: &Instruction) -> Answer {
        let cache = &mut *self.cache;
        let PartFetch { parts, if_range, .. } = part;
        let (ask, object) = (&parts.ask, &parts.object);
        if !matches!(instruction, Instruction::None) {
            return Answer::Failed;
        }
        let is_coded_alike = head.field("Content-Encoding") == object.stored.head().field("Content-Encoding");
        match head.status() {
            Status::PARTIAL_CONTENT => {
                let received_s = (cache.shared.unix_s)();
                let times = Times { requested_s: received_s, received_s };
                let request = ask.head.get();
                let fetched = Fetched { request: &request, head, times };
                match object.stored.join(&ask.route.rules, fetched, *if_range) {
                    Ok((joined, part)) if is_coded_alike => {
                        // The newest fields count, and it is fresh as a whole.
                        let (labels, generation) = (object.labels.clone(), object.generation());
                        let new = Object::new(joined, Arc::clone(&object.content), labels, generation);
                        cache.shared.directory.with(ask, |entry| entry.replace(object, Arc::new(new)));
                        let bytes = part.range.first..part.range.last + 1;
                        Answer::Partial { bytes, version: parts.version() }
                    }
                    Err(NotJoined::ContentRange) | Ok(_) => Answer::Broken,
                    Err(NotJoined::OtherVersion | NotJoined::OtherLength) => Answer::NotSatisfiable,
                    Err(NotJoined::NotStored(reason)) => {
                        if !reason.is_of_the_request() {
                            cache.remove_object(ask, object);
                        }
                        Answer::NotStored
                    }
                }
            }
            Status::OK if is_coded_alike && is_same_version(&object.stored, &head) => {
                Answer::Whole(parts.version())
            }
            // Another version, or none any more. Who asks anew gets it.
            Status::OK | Status::NOT_FOUND | Status::GONE | Status::RANGE_NOT_SATISFIABLE => {
                Answer::NotSatisfiable
            }
            _ => Answer::Failed,
        }
    }

    /// Takes bytes of a part.
    fn store_part(&mut self, part: &PartFetch, bytes: &Aggregate) {
        let PartFetch { parts, fill, client, .. } = part;
        for slice in in_memory(bytes) {
            let mut slice = slice.clone();
            while !slice.is_empty() {
                let Some((number, block)) = parts.push(*fill, &mut slice) else { continue };
                let cache = &mut *self.cache;
                // What is refused goes to those who wait for it all the same.
                let key = parts.object.content.key;
                let (_, evicted) = cache.shared.blocks.put(key, number, &block, cache.now_ms);
                cache.shared.forget(evicted);
                let index = (number == 0 && is_film(parts.object.stored.head()))
                    .then(|| index_behind(block.as_ref()))
                    .flatten();
                let effects = parts.note_block(*fill, block);
                self.apply(parts, effects, *client);
                if let Some(index) = index {
                    let effects = parts.prefetch_end(index);
                    self.apply(parts, effects, None);
                }
            }
        }
    }

    fn drop_part(&mut self, id: RequestId) {
        if self.cache.parts.remove(&id).is_some() {
            self.cache.shared.fills.fetch_sub(1, Ordering::Relaxed);
        }
        _ = self.cache.file_reads.remove(id);
        self.gateway.abandon(id, self.cache.now_ms);
    }
}

impl LoopCache {
    /// An object has neither reader nor fetch any more.
    fn end_parts(&mut self, parts: &Arc<Parts>) {
        self.shared.live.remove_parts(parts);
        if !parts.is_open {
            return;
        }
        let content = &parts.object.content;
        let evicted = self.shared.blocks.end(content.key, content.length());
        self.shared.forget(evicted);
    }
}

/// The value of Range for these bytes, up to `u64::MAX` for all from their beginning on.
pub(crate) fn range_field(bytes: &Range<u64>) -> String {
    match bytes.end {
        u64::MAX => format!("bytes={}-", bytes.start),
        end => format!("bytes={}-{}", bytes.start, end - 1),
    }
}

/// Whether an object may have the boxes of MP4.
fn is_film(head: &ResponseHead) -> bool {
    let media = head.field("Content-Type").unwrap_or_default();
    let media = media.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    FILMS.iter().any(|name| media.eq_ignore_ascii_case(name.as_bytes()))
}

fn is_same_version(stored: &Stored, head: &ResponseHead) -> bool {
    let same_length = head.content_length() == stored.head().content_length();
    same_length && stored.validators().promise_same_bytes(&Validators::of(head))
}

const FILMS: [&str; 4] = ["video/mp4", "audio/mp4", "video/quicktime", "video/x-m4v"];

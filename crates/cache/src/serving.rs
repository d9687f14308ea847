//! Gives clients the bytes of a content, from where they are.

use std::sync::Arc;

use baton_segment::fill::CutReason;
use baton_upstream::{FailureReason, RequestId, ResponseEvent};

use crate::blocks::Evicted;
use crate::exchange::{State, failed};
use crate::fill::{Read, ReaderName};
use crate::live::Live;
use crate::loop_cache::Caching;
use crate::parts::{PartRead, Parts, Verdict};
use crate::reading::{Next, Source};
use crate::visit::Supply;

impl Caching<'_> {
    /// The next event of a content that is read.
    pub(crate) fn read(&mut self, name: RequestId) -> Option<ResponseEvent> {
        let (next, from) = loop {
            let next = self.next_of(name)?;
            let exchange = self.cache.exchanges.get_mut(&name)?;
            let State::Reading(reading) = &mut exchange.state else { return None };
            let from = reading.at;
            match next {
                Next::Missing
                    if reading.object.is_combinable() && matches!(reading.source, Source::Store) =>
                {
                    self.read_parts(name);
                }
                Next::Missing if reading.is_at_start && !reading.head.is_empty() => {
                    return self.read_otherwise(name, Verdict::Again);
                }
                Next::Missing => break (Next::Failed(failed(FailureReason::Evicted)), from),
                Next::Over(verdict) if reading.is_at_start && !reading.head.is_empty() => {
                    return self.read_otherwise(name, verdict);
                }
                Next::Over(Verdict::Again | Verdict::Cut(CutReason::Changed)) => {
                    break (Next::Failed(failed(FailureReason::Changed)), from);
                }
                Next::Over(_) => break (Next::Failed(failed(FailureReason::Ended)), from),
                next => break (next, from),
            }
        };
        let cache = &mut *self.cache;
        let exchange = cache.exchanges.get_mut(&name)?;
        let State::Reading(reading) = &mut exchange.state else { return None };
        // Trail, and what the application has said, are in front of what follows.
        match next {
            Next::Wait => return None,
            Next::Bytes(bytes) => {
                reading.at += bytes.len();
                let is_start = std::mem::take(&mut reading.is_at_start);
                reading.visit.note_read(&(from..reading.at), cache.now_ms);
                if reading.visit.supply() == Supply::Cache {
                    cache.shared.note_saved(&reading.object, bytes.len(), is_start, cache.now_ms);
                }
                exchange.events.extend(reading.head.drain(..));
                exchange.events.push_back(ResponseEvent::Body(bytes));
            }
            Next::End(trailers) => {
                exchange.events.extend(reading.head.drain(..));
                exchange.events.extend(trailers.map(ResponseEvent::Trailers));
                exchange.events.push_back(ResponseEvent::End { app_status: 0 });
            }
            Next::Failed(failure) => {
                // Without its head: the client gets an error.
                exchange.events.extend(reading.head.drain(..).filter(|event| !is_head(event)));
                exchange.events.push_back(ResponseEvent::Failed(failure));
            }
            Next::Over(_) | Next::Missing => return None,
        }
        let event = exchange.events.pop_front();
        if event.as_ref().is_some_and(ResponseEvent::is_last) {
            self.end(name);
        }
        event
    }

    fn next_of(&mut self, name: RequestId) -> Option<Next> {
        let cache = &mut *self.cache;
        let exchange = cache.exchanges.get_mut(&name)?;
        let State::Reading(reading) = &mut exchange.state else { return None };
        let reader = ReaderName { home: Arc::clone(&cache.home), request: name };
        if reading.at >= reading.end {
            let (next, stalled) = reading.ending(&reader);
            if let Some(fill) = stalled {
                cache.tell_fill(&fill);
            }
            return Some(next);
        }
        match &reading.source {
            Source::Store => Some(reading.stored(&cache.shared, &reader, reading.wanted().end)),
            Source::Stream(fill) => {
                let fill = Arc::clone(fill);
                let (read, was_stalled) = fill.read(&reader, reading.at, reading.end);
                let next = match read {
                    Read::Stored(until) => reading.stored(&cache.shared, &reader, until),
                    Read::Bytes(bytes) => Next::Bytes(bytes),
                    Read::Wait => Next::Wait,
                    Read::End(trailers) => Next::End(trailers.filter(|_| reading.is_whole)),
                    Read::Failed(failure) => Next::Failed(failure),
                };
                if was_stalled {
                    cache.tell_fill(&fill);
                }
                Some(next)
            }
            Source::Parts(parts, id) => {
                let parts = Arc::clone(parts);
                let (read, effects) = parts.read(*id, &reading.wanted());
                self.apply(&parts, effects, Some(name));
                Some(match read {
                    PartRead::Bytes(bytes) => Next::Bytes(bytes),
                    PartRead::Wait => Next::Wait,
                    PartRead::Over(verdict) => Next::Over(verdict),
                })
            }
        }
    }

    /// Has a request read its object as parts, and those that are not here fetched.
    pub(crate) fn read_parts(&mut self, name: RequestId) {
        loop {
            let cache = &mut *self.cache;
            let Some(exchange) = cache.exchanges.get_mut(&name) else { return };
            let State::Reading(reading) = &mut exchange.state else { return };
            let reader = ReaderName { home: Arc::clone(&cache.home), request: name };
            let object = &reading.object;
            let (key, length) = (object.content.key, object.content.length().unwrap_or_default());
            let mut evicted = Evicted::default();
            let live = cache.shared.live.of_or_parts(key, || {
                let is_open;
                (is_open, evicted) = cache.shared.blocks.open_again(key, cache.now_ms);
                let (ask, template) = (&exchange.ask, &exchange.template);
                Arc::new(Parts::new(Arc::clone(object), length, ask, template, is_open))
            });
            cache.shared.forget(evicted);
            match live {
                Live::Stream(fill) => {
                    fill.join(&reader, reading.at);
                    reading.source = Source::Stream(fill);
                    return;
                }
                Live::Parts(parts) => match parts.join(&reader, &reading.wanted()) {
                    Some((id, effects)) => {
                        reading.source = Source::Parts(Arc::clone(&parts), id);
                        return self.apply(&parts, effects, Some(name));
                    }
                    None => cache.shared.live.remove_parts(&parts),
                },
            }
        }
    }

    /// A request that has got nothing goes on otherwise.
    fn read_otherwise(&mut self, name: RequestId, verdict: Verdict) -> Option<ResponseEvent> {
        let cache = &mut *self.cache;
        let exchange = cache.exchanges.get_mut(&name)?;
        let State::Reading(reading) = &exchange.state else { return None };
        let forward = reading.forward;
        if let Source::Stream(fill) = &reading.source {
            let (fill, home) = (Arc::clone(fill), Arc::clone(&cache.home));
            cache.leave(&fill, &ReaderName { home, request: name });
        }
        let exchange = cache.exchanges.get_mut(&name)?;
        exchange.restarts += u32::from(verdict == Verdict::Again);
        if verdict == Verdict::Again && exchange.restarts <= RESTARTS_MAX {
            self.open(name);
        } else {
            self.pass(name, forward);
        }
        self.take(name)
    }
}

fn is_head(event: &ResponseEvent) -> bool {
    matches!(event, ResponseEvent::Head(..))
}

/// An origin that has another version each time is asked by the client's own request in the end.
const RESTARTS_MAX: u32 = 3;

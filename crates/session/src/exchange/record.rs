//! What the access log and the metrics will say of a request.

use std::net::SocketAddr;
use std::sync::Arc;

use baton_dcws::CountedRequest;
use baton_http::Status;
use baton_response::Ready;
use baton_site::mark::Mark;
use baton_telemetry::clock::Clock;
use baton_telemetry::figures::Row;
use baton_telemetry::log::{AccessLogs, Ending, NotedRequest, OriginPart, Outcome};
use baton_telemetry::metrics::{Metric, Tally};
use baton_upstream::{AnswerTransport, Application, Request, Trail};

use super::guarded::Identity;
use crate::context::Context;
use crate::protocol::Written;

/// The record of a request. It counts the response's bytes that enter and leave the send queue: the response is complete
/// when the kernel has taken the last one.
#[derive(Debug)]
pub(crate) struct Record {
    /// Who asks, if that is not just the other end of the connection.
    pub(super) identity: Option<Arc<Identity>>,
    pub(super) text: Option<NotedRequest>,
    /// Its id, and the trace that it belongs to.
    pub(super) mark: Option<Arc<Mark>>,
    /// `usize::MAX`: none.
    pub(super) site: usize,
    pub(super) started_us: u64,
    /// When the first byte of the response had left, if more was to follow.
    pub(super) first_byte_us: Option<u64>,
    /// Where it is counted.
    pub(super) row: Option<Row>,
    /// It is in flight by its row. One that has begun in another process is not.
    is_in_flight: bool,
    /// Since when an application or an origin has the request.
    asked_us: Option<u64>,
    /// The application or origin that was asked by this server itself, and where that is counted.
    pub(super) asked: Option<(Arc<Application>, Option<Row>)>,
    /// For how long one had it.
    pub(super) upstream_us: Option<u64>,
    /// `None`: no response has begun.
    pub(super) status: Option<Status>,
    pub(super) outcome: Outcome,
    /// Bytes in the send queue.
    pub(super) queued: u64,
    /// Of these, bytes of the head.
    pub(super) head_queued: u64,
    pub(super) body_sent: u64,
    pub(super) has_begun_to_leave: bool,
    /// The response is in the send queue, as far as it will come.
    pub(super) is_closed: bool,
    /// What tells the client that this is all has not left.
    pub(super) is_end_queued: bool,
    /// What the shared cache did, in a word.
    pub(super) cache: Option<&'static str>,
    /// How the answer of an application has travelled.
    pub(super) transport: Option<AnswerTransport>,
    /// The document that it gets, if documents of the site migrate.
    pub(super) counted: Option<CountedRequest>,
    /// Who has answered elsewhere, by HTTP.
    pub(super) origin: Option<Box<OriginRecord>>,
}

/// What the log says of an origin.
#[derive(Debug)]
pub(super) struct OriginRecord {
    origin: Arc<Application>,
    trail: Trail,
    failure: Option<&'static str>,
}

impl Record {
    pub(super) fn new(started_us: u64) -> Self {
        Self {
            text: None,
            identity: None,
            mark: None,
            site: usize::MAX,
            started_us,
            first_byte_us: None,
            row: None,
            is_in_flight: false,
            asked_us: None,
            asked: None,
            upstream_us: None,
            status: None,
            outcome: Outcome::Complete,
            queued: 0,
            head_queued: 0,
            body_sent: 0,
            has_begun_to_leave: false,
            is_closed: false,
            is_end_queued: false,
            cache: None,
            transport: None,
            counted: None,
            origin: None,
        }
    }

    /// What the shared cache has done.
    pub(super) fn note_cache(&mut self, word: &'static str) {
        self.cache = Some(word);
    }

    /// An application has answered.
    pub(super) fn note_transport(&mut self, transport: AnswerTransport) {
        self.transport = Some(transport);
    }

    /// An origin has answered, or failed to.
    pub(crate) fn note_trail(&mut self, origin: Arc<Application>, trail: Trail) {
        self.origin = Some(Box::new(OriginRecord { origin, trail, failure: None }));
    }

    /// The name of the origin that had the request last.
    pub(super) fn origin_name(&self) -> Option<&str> {
        self.origin.as_ref().map(|record| record.origin.name())
    }

    /// Why the origin has failed, in a word.
    pub(super) fn note_failure(&mut self, why: &'static str) {
        if let Some(origin) = &mut self.origin {
            origin.failure = Some(why);
        }
    }

    /// Counts the request in this row, unless it was counted before a redirect.
    pub(super) fn count(&mut self, row: Option<Row>, tally: &mut Tally) {
        if let (None, Some(row)) = (self.row, row) {
            (self.row, self.is_in_flight) = (Some(row), true);
            tally.begin_request(row);
        }
    }

    /// The request is in flight in another process from now on, which counts it when it ends.
    pub(crate) fn leave(&self, tally: &mut Tally) {
        let begun = self.asked.as_ref().and_then(|(_, row)| *row);
        for row in self.row.filter(|_| self.is_in_flight).into_iter().chain(begun) {
            tally.end_request(row, 0, 0, 0);
        }
    }

    /// An application or an origin gets the request.
    pub(super) fn note_asked(&mut self, asked: &Request, ctx: &mut Context) {
        self.asked_us = Some(ctx.clock.now_us());
        if self.asked.is_none() {
            // Which of several origins is asked is not known yet.
            let is_known = asked.peers.is_none();
            let row = is_known.then(|| row_of(&asked.application)).flatten();
            row.into_iter().for_each(|row| ctx.tally.begin_request(row));
            self.asked = Some((Arc::clone(&asked.application), row));
        }
    }

    /// The shared cache gets the request, and may need no origin.
    pub(super) fn note_cache_asked(&mut self, clock: &Clock) {
        self.asked_us = Some(clock.now_us());
    }

    /// It has answered, or will not.
    pub(super) fn note_answered(&mut self, clock: &Clock) {
        if let Some(asked_us) = self.asked_us.take() {
            let more_us = clock.now_us().saturating_sub(asked_us);
            self.upstream_us = Some(self.upstream_us.unwrap_or(0) + more_us);
        }
    }

    /// Notes the request for the log, unless it was noted before a redirect.
    pub(super) fn identify(&mut self, site: usize, text: impl FnOnce() -> Option<NotedRequest>) {
        self.site = site;
        if self.text.is_none() {
            self.text = text();
        }
    }

    /// A response begins.
    pub(super) fn begin(&mut self, ready: &Ready) {
        self.status = Some(ready.status);
        self.outcome = ready.outcome;
    }

    /// The head that was finished last is that of this request's response.
    pub(super) fn note_head(&mut self, log: &mut AccessLogs) {
        if let Some(text) = &mut self.text {
            log.note_response(text);
        }
    }

    /// Nothing more is put into the send queue.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
    }

    /// The response is not complete, for this reason.
    pub(super) fn fail(&mut self, outcome: Outcome) {
        self.outcome = outcome;
    }

    /// The status that a request without a response is logged with.
    pub(super) fn give_up(&mut self, status: Status) {
        self.status.get_or_insert(status);
    }

    /// An application has sent some of the body itself.
    pub(super) fn handle_sent_elsewhere(&mut self, bytes: u64) {
        self.has_begun_to_leave = true;
        self.body_sent = self.body_sent.saturating_add(bytes);
    }

    /// A turn of the exchange has put this into the send queue.
    pub(crate) fn handle_queued(&mut self, written: &Written) {
        debug_assert!(written.head_bytes <= written.bytes, "heads are a part of the response");
        self.queued += written.bytes;
        self.head_queued += written.head_bytes;
        self.is_end_queued |= written.ends;
    }

    /// The frame that tells the client that the response is complete has left.
    pub(crate) fn handle_end_sent(&mut self) {
        self.is_end_queued = false;
    }

    /// Bytes have left the send queue. Returns those that belong to the next response.
    pub(crate) fn handle_sent(&mut self, bytes: u64, clock: &Clock) -> u64 {
        debug_assert!(self.head_queued <= self.queued, "heads are a part of the response");
        let own = bytes.min(self.queued);
        let of_head = own.min(self.head_queued);
        self.queued -= own;
        self.head_queued -= of_head;
        self.body_sent = self.body_sent.saturating_add(own - of_head);
        if own > 0 && !self.has_begun_to_leave {
            self.has_begun_to_leave = true;
            // A short response ends with its first byte: one look at the clock does.
            self.first_byte_us = (!self.is_complete()).then(|| clock.exact_us());
        }
        bytes - own
    }

    /// Bytes of the response that are in the send queue.
    pub(crate) fn queued(&self) -> u64 {
        self.queued
    }

    /// Whether all that was put into the send queue so far has left it.
    pub(crate) fn is_all_sent(&self) -> bool {
        self.queued == 0
    }

    /// Whether all of the response has left the send queue.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_closed && self.queued == 0 && !self.is_end_queued
    }

    /// Counts and logs the request. `cut`: how it ends if its response is not complete.
    pub(crate) fn end(mut self, cut: Outcome, peer: Option<SocketAddr>, ctx: &mut Context) {
        let outcome = if self.is_complete() { self.outcome } else { cut };
        // The node that has the request knows its status.
        let is_elsewhere = self.status.is_none() && outcome == Outcome::HandedOff;
        let status = match is_elsewhere {
            true => 0,
            false => self.status.unwrap_or_else(|| unanswered_status(outcome)).code(),
        };
        ctx.tally.add(outcome.metric(), 1);
        if !is_elsewhere {
            ctx.tally.add(Metric::of_status(status), 1);
        }
        if let Some(metric) = self.cache.and_then(Metric::of_cache_word) {
            ctx.tally.add(metric, 1);
        }
        if let Some(transport) = self.transport {
            ctx.tally.add(Metric::of_transport(transport), 1);
        }
        let real = self.identity.as_ref().and_then(|identity| identity.address);
        self.note_answered(&ctx.clock);
        let ended_us = ctx.clock.exact_us();
        // Another thread, whose clock is a little ahead, may have begun it (`pipeline`).
        let after = |at_us: u64| at_us.saturating_sub(self.started_us);
        let duration_us = after(ended_us);
        if let Some(row) = self.row {
            if !self.is_in_flight {
                ctx.tally.begin_request(row);
            }
            ctx.tally.end_request(row, status, duration_us, self.body_sent);
        }
        self.count_upstream(status, ctx);
        if let Some(counted) = self.counted.take() {
            counted.end(self.body_sent);
        }
        let Some(text) = self.text else { return };
        let ending = Ending {
            peer: real.or(peer),
            user: self.identity.as_ref().and_then(|identity| identity.user.as_deref()),
            site: ctx.plan.sites().get(self.site).map_or("", |site| &site.name),
            status,
            body_bytes: self.body_sent,
            duration_us,
            first_byte_us: self.has_begun_to_leave.then(|| after(self.first_byte_us.unwrap_or(ended_us))),
            upstream_us: self.upstream_us,
            ended_unix_ms: ctx.clock.unix_ms_at(ended_us),
            request_id: self.mark.as_ref().and_then(|mark| mark.request_id()),
            trace_id: self.mark.as_ref().and_then(|mark| mark.trace_id()),
            outcome,
            cache: self.cache,
            transport: self.transport,
            origin: self.origin.as_ref().map(|record| OriginPart {
                name: record.origin.name(),
                node: record.origin.settings().node.as_deref(),
                trail: record.trail,
                failure: record.failure,
            }),
        };
        ctx.log.end(text, &ending, ctx.clock.now_ms(), ctx.clock.stamp());
    }
}

impl Record {
    /// Counts the request for the application or origin that had it last.
    fn count_upstream(&self, status: u16, ctx: &mut Context) {
        let Some(us) = self.upstream_us else { return };
        let begun = self.asked.as_ref().and_then(|(_, row)| *row);
        let asked = self.asked.as_ref().map(|(application, _)| application);
        let last = self.origin.as_ref().map(|record| &record.origin).or(asked);
        if let Some(row) = begun.or_else(|| row_of(last?)) {
            if begun.is_none() {
                ctx.tally.begin_request(row);
            }
            ctx.tally.end_request(row, status, us, self.body_sent);
        }
    }
}

/// Where the requests to an application or an origin are counted.
fn row_of(application: &Application) -> Option<Row> {
    application.settings().figures.map(Row::new)
}

/// The status that would have refused a request which was never answered.
fn unanswered_status(outcome: Outcome) -> Status {
    match outcome {
        Outcome::ClientGone => Status::BAD_REQUEST,
        Outcome::TimedOut => Status::REQUEST_TIMEOUT,
        _ => Status::SERVICE_UNAVAILABLE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that leave belong to the first response until it has them all; heads are no part of the body.
    #[test]
    fn what_leaves_is_shared_out_in_order() {
        let clock = Clock::default();
        let mut first = Record::new(0);
        let written = |bytes, head_bytes| Written { bytes, head_bytes, ..Written::default() };
        first.handle_queued(&written(25, 25));
        first.handle_queued(&written(110, 10));
        assert_eq!(first.handle_sent(30, &clock), 0);
        assert_eq!((first.body_sent, first.is_complete()), (0, false));
        assert_eq!(first.handle_sent(105, &clock), 0);
        assert_eq!((first.body_sent, first.is_complete()), (100, false), "more may come");
        first.handle_queued(&written(7, 0));
        first.close();
        assert_eq!(first.handle_sent(50, &clock), 43);
        assert_eq!((first.body_sent, first.is_complete()), (107, true));
    }
}

//! What the access log and the metrics will say of a request.

use std::net::SocketAddr;
use std::sync::Arc;

use baton_http::Status;
use baton_upstream::{Application, Trail};

use super::env::Ready;
use super::guarded::Visitor;
use crate::context::Context;
use crate::log::{Ending, OriginPart, Outcome, RequestText};
use crate::metrics::Metric;

/// The record of a request. It counts the response's bytes that enter and leave the outlet: the response is complete
/// when the kernel has taken the last one.
#[derive(Debug)]
pub(crate) struct Record {
    pub(super) text: Option<RequestText>,
    /// Who asks, if that is not just the other end of the connection.
    pub(super) visitor: Option<Arc<Visitor>>,
    /// `usize::MAX`: none.
    pub(super) site: usize,
    pub(super) started_ms: u64,
    /// `None`: no response has begun.
    pub(super) status: Option<Status>,
    pub(super) outcome: Outcome,
    /// Bytes in the outlet.
    pub(super) queued: u64,
    /// Of these, bytes of the head.
    pub(super) head_queued: u64,
    pub(super) body_sent: u64,
    /// The response is in the outlet, as far as it will come.
    pub(super) is_closed: bool,
    /// What tells the client that this is all has not left.
    pub(super) is_end_queued: bool,
    /// What the shared cache did, in a word.
    pub(super) cache: Option<&'static str>,
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
    pub(super) fn new(started_ms: u64) -> Self {
        Self {
            text: None,
            visitor: None,
            site: usize::MAX,
            started_ms,
            status: None,
            outcome: Outcome::Complete,
            queued: 0,
            head_queued: 0,
            body_sent: 0,
            is_closed: false,
            is_end_queued: false,
            cache: None,
            origin: None,
        }
    }

    /// What the shared cache has done.
    pub(super) fn note_cache(&mut self, word: &'static str) {
        self.cache = Some(word);
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

    /// Notes the request for the log, unless it was noted before a redirect.
    pub(super) fn identify(&mut self, site: usize, text: impl FnOnce() -> Option<RequestText>) {
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

    /// Nothing more is put into the outlet.
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
        self.body_sent = self.body_sent.saturating_add(bytes);
    }

    /// Bytes of the response were put into the outlet, `of_heads` of them before its body.
    pub(crate) fn handle_queued(&mut self, bytes: u64, of_heads: u64) {
        self.queued += bytes;
        self.head_queued += of_heads;
    }

    /// A frame is to tell the client that the response is complete.
    pub(crate) fn handle_end_queued(&mut self) {
        self.is_end_queued = true;
    }

    /// That frame has left.
    pub(crate) fn handle_end_sent(&mut self) {
        self.is_end_queued = false;
    }

    /// Bytes have left the outlet. Returns those that belong to the next response.
    pub(crate) fn handle_sent(&mut self, bytes: u64) -> u64 {
        let own = bytes.min(self.queued);
        let of_head = own.min(self.head_queued);
        self.queued -= own;
        self.head_queued -= of_head;
        self.body_sent = self.body_sent.saturating_add(own - of_head);
        bytes - own
    }

    /// Whether all that was put into the outlet so far has left it.
    pub(crate) fn is_all_sent(&self) -> bool {
        self.queued == 0
    }

    /// Whether all of the response has left the outlet.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_closed && self.queued == 0 && !self.is_end_queued
    }

    /// Counts and logs the request. `cut`: how it ends if its response is not complete.
    pub(crate) fn end(self, cut: Outcome, peer: Option<SocketAddr>, ctx: &mut Context) {
        let outcome = if self.is_complete() { self.outcome } else { cut };
        // The node that has the request knows its status.
        let is_elsewhere = self.status.is_none() && outcome == Outcome::HandedOver;
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
        let (Some(log), Some(text)) = (&mut ctx.log, self.text) else { return };
        let real = self.visitor.as_ref().and_then(|visitor| visitor.address);
        let ending = Ending {
            peer: real.or(peer),
            user: self.visitor.as_ref().and_then(|visitor| visitor.user.as_deref()),
            site: ctx.plan.sites().get(self.site).map_or("", |site| &site.name),
            status,
            body_bytes: self.body_sent,
            // Another thread, whose clock is a little ahead, may have begun it (`pipeline`).
            duration_ms: ctx.clock.now_ms().saturating_sub(self.started_ms),
            outcome,
            cache: self.cache,
            origin: self.origin.as_ref().map(|record| OriginPart {
                name: record.origin.name(),
                node: record.origin.settings().node.as_deref(),
                trail: record.trail,
                failure: record.failure,
            }),
        };
        log.end(text, &ending, ctx.clock.now_ms(), ctx.clock.stamp());
    }
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
        let mut first = Record::new(0);
        first.handle_queued(25, 25);
        first.handle_queued(110, 10);
        assert_eq!(first.handle_sent(30), 0);
        assert_eq!((first.body_sent, first.is_complete()), (0, false));
        assert_eq!(first.handle_sent(105), 0);
        assert_eq!((first.body_sent, first.is_complete()), (100, false), "more may come");
        first.handle_queued(7, 0);
        first.close();
        assert_eq!(first.handle_sent(50), 43);
        assert_eq!((first.body_sent, first.is_complete()), (107, true));
    }
}

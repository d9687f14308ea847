//! Responses between the moment in which they are put into the outlet and their line in the log.

use baton_http::Status;

use super::{Session, State};
use crate::context::Context;
use crate::exchange::Ready;
use crate::log::{Ending, Outcome, RequestText};
use crate::metrics::Metric;

/// A response on its way.
#[derive(Debug)]
pub(super) struct UnderWay {
    /// Where it ends in the stream of bytes sent.
    end: u64,
    /// Where its body begins.
    body_start: u64,
    /// Bytes of its body that somebody else has sent.
    sent_elsewhere: u64,
    status: u16,
    outcome: Outcome,
    started_ms: u64,
    site: usize,
    text: Option<RequestText>,
}

/// A request whose response is not in our outlet.
#[derive(Debug)]
pub(super) struct Elsewhere {
    pub(super) text: Option<RequestText>,
    pub(super) site: usize,
    pub(super) started_ms: u64,
}

impl Session {
    /// Takes note of a response that has been put into the outlet, where it began.
    pub(super) fn begin_response(
        &mut self,
        ready: &Ready,
        start: u64,
        text: Option<RequestText>,
        ctx: &Context,
    ) {
        self.under_way.push_back(UnderWay {
            end: self.outlet.end(),
            body_start: start + ready.head_bytes,
            sent_elsewhere: 0,
            status: ready.status,
            outcome: ready.outcome,
            started_ms: ctx.clock.now_ms(),
            site: ready.site,
            text,
        });
    }

    /// The last response that was begun will be longer, nobody knows how long.
    pub(super) fn open_response(&mut self) {
        if let Some(response) = self.under_way.back_mut() {
            response.end = u64::MAX;
        }
    }

    /// The request of the last response that was begun is as old as this.
    pub(super) fn date_back_response(&mut self, started_ms: u64) {
        if let Some(response) = self.under_way.back_mut() {
            response.started_ms = started_ms;
        }
    }

    /// Some of the body of the last response that was begun is with the client already.
    pub(super) fn note_sent_elsewhere(&mut self, bytes: u64) {
        if let Some(response) = self.under_way.back_mut() {
            response.sent_elsewhere = response.sent_elsewhere.saturating_add(bytes);
        }
    }

    /// The last response that was begun is in the outlet as a whole.
    pub(super) fn close_response(&mut self) {
        let end = self.outlet.end();
        if let Some(response) = self.under_way.back_mut() {
            response.end = end;
        }
    }

    /// The last response that was begun ends where the outlet does, and has failed.
    pub(super) fn fail_response(&mut self, outcome: Outcome) {
        self.close_response();
        if let Some(response) = self.under_way.back_mut() {
            response.outcome = outcome;
        }
    }

    /// Logs the responses that have been handed over completely.
    pub(super) fn log_sent(&mut self, ctx: &mut Context) {
        while self.under_way.front().is_some_and(|response| response.end <= self.outlet.sent()) {
            let Some(response) = self.under_way.pop_front() else { return };
            let outcome = response.outcome;
            self.log(response, outcome, ctx);
        }
    }

    /// Logs whatever is not logged yet: the session ends.
    pub(super) fn log_all(&mut self, outcome: Outcome, ctx: &mut Context) {
        self.log_sent(ctx);
        while let Some(response) = self.under_way.pop_front() {
            self.log(response, outcome, ctx);
        }
        self.log_unanswered(outcome, ctx);
    }

    /// Logs the request that was begun and got no answer: cut off in its head or body, or overtaken by the end of the
    /// server while it waited for a disk.
    fn log_unanswered(&mut self, outcome: Outcome, ctx: &mut Context) {
        if let State::Delegated(delegated) = &mut self.state {
            if let Some(elsewhere) = delegated.take_unanswered() {
                self.log_elsewhere(elsewhere, unanswered_status(outcome).code(), 0, outcome, ctx);
            }
            return;
        }
        if let State::Naming(naming) = &mut self.state {
            if let Some(elsewhere) = naming.delegated.take_unanswered() {
                self.log_elsewhere(elsewhere, unanswered_status(outcome).code(), 0, outcome, ctx);
            }
            return;
        }
        let begun = self.inbox.trim_ascii_start();
        if begun.is_empty() || !matches!(self.state, State::Open | State::Finding | State::Found(_)) {
            return;
        }
        let text = match self.redirected.take() {
            Some(redirected) => redirected.text,
            None => ctx.log.as_mut().map(|log| log.note_unreadable(begun)),
        };
        let nothing = Elsewhere { text, site: usize::MAX, started_ms: ctx.clock.now_ms() };
        self.log_elsewhere(nothing, unanswered_status(outcome).code(), 0, outcome, ctx);
    }

    fn log(&self, response: UnderWay, outcome: Outcome, ctx: &mut Context) {
        let sent = self.outlet.sent().min(response.end).saturating_sub(response.body_start);
        let UnderWay { status, started_ms, site, text, sent_elsewhere, .. } = response;
        self.log_elsewhere(
            Elsewhere { text, site, started_ms },
            status,
            sent.saturating_add(sent_elsewhere),
            outcome,
            ctx,
        );
    }

    /// Counts and logs a request that has ended, with so many bytes of body.
    pub(super) fn log_elsewhere(
        &self,
        request: Elsewhere,
        status: u16,
        body_bytes: u64,
        outcome: Outcome,
        ctx: &mut Context,
    ) {
        ctx.tally.add(outcome.metric(), 1);
        ctx.tally.add(Metric::of_status(status), 1);
        let (Some(log), Some(text)) = (&mut ctx.log, request.text) else { return };
        let ending = Ending {
            peer: self.transport.peer(),
            site: ctx.plan.sites().get(request.site).map_or("", |site| &site.name),
            status,
            body_bytes,
            // Another thread, whose clock is a little ahead, may have begun it (`pipeline`).
            duration_ms: ctx.clock.now_ms().saturating_sub(request.started_ms),
            outcome,
        };
        log.end(text, &ending, ctx.clock.now_ms(), ctx.clock.stamp());
    }
}

/// What a request that was never answered would have been refused with.
fn unanswered_status(outcome: Outcome) -> Status {
    match outcome {
        Outcome::ClientGone => Status::BAD_REQUEST,
        Outcome::TimedOut => Status::REQUEST_TIMEOUT,
        _ => Status::SERVICE_UNAVAILABLE,
    }
}

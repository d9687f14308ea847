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
    status: u16,
    outcome: Outcome,
    started_ms: u64,
    site: usize,
    text: Option<RequestText>,
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
            status: ready.status,
            outcome: ready.outcome,
            started_ms: ctx.clock.now_ms(),
            site: ready.site,
            text,
        });
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
    fn log_unanswered(&self, outcome: Outcome, ctx: &mut Context) {
        let begun = self.inbox.trim_ascii_start();
        if begun.is_empty() || !matches!(self.state, State::Open | State::Finding | State::Found(_)) {
            return;
        }
        let status = match outcome {
            Outcome::ClientGone => Status::BAD_REQUEST,
            Outcome::TimedOut => Status::REQUEST_TIMEOUT,
            _ => Status::SERVICE_UNAVAILABLE,
        };
        let end = self.outlet.end();
        let nothing = UnderWay {
            end,
            body_start: end,
            status: status.code(),
            outcome,
            started_ms: ctx.clock.now_ms(),
            site: usize::MAX,
            text: ctx.log.as_mut().map(|log| log.note_unreadable(begun)),
        };
        self.log(nothing, outcome, ctx);
    }

    fn log(&self, response: UnderWay, outcome: Outcome, ctx: &mut Context) {
        ctx.tally.add(outcome.metric(), 1);
        ctx.tally.add(Metric::of_status(response.status), 1);
        let (Some(log), Some(text)) = (&mut ctx.log, response.text) else { return };
        let ending = Ending {
            peer: self.peer,
            site: ctx.plan.sites().get(response.site).map_or("", |site| &site.name),
            status: response.status,
            body_bytes: self.outlet.sent().min(response.end).saturating_sub(response.body_start),
            duration_ms: ctx.clock.now_ms() - response.started_ms,
            outcome,
        };
        log.end(text, &ending, ctx.clock.now_ms(), ctx.clock.stamp());
    }
}

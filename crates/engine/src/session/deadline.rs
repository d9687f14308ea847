//! What a session waits for, and for how long at the most.

use baton_http::Status;

use super::{Need, Session, Stage};
use crate::context::Context;
use crate::log::Outcome;

/// What the deadline is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    FirstRequest,
    NextRequest,
    Head,
    Body,
    Send,
    Linger,
    Job,
    Application,
}

impl Session {
    /// The deadline has passed: the session ends, or goes on if the client turns out to have made progress.
    pub(crate) fn handle_timeout(&mut self, ctx: &mut Context) -> Need {
        match self.waiting {
            Waiting::Job => Need::JobUnderWay,
            Waiting::Application => Need::NewsUnderWay,
            Waiting::Send if self.client_takes_enough(ctx) => {
                self.wait_for(Waiting::Send, ctx);
                Need::Writable
            }
            Waiting::Head | Waiting::Body if self.outlet.is_empty() => {
                let inbox = std::mem::take(&mut self.inbox);
                self.refuse(
                    &inbox,
                    Status::REQUEST_TIMEOUT,
                    "The request took too long to arrive.",
                    Outcome::TimedOut,
                    ctx,
                );
                self.step(ctx, Stage::Any)
            }
            Waiting::FirstRequest | Waiting::NextRequest | Waiting::Linger => {
                self.end(Outcome::ClientGone, ctx)
            }
            // Closed in order, what it has not taken would stay with the kernel for minutes.
            Waiting::Send => self.reset(Outcome::TimedOut, ctx),
            Waiting::Head | Waiting::Body => self.end(Outcome::TimedOut, ctx),
        }
    }

    /// All is sent: it is the client's turn, who may have begun already.
    pub(super) fn wait_for_input(&mut self, ctx: &Context) {
        let waiting = match () {
            () if self.is_delegated() => Waiting::Application,
            () if self.connection.is_in_body() => Waiting::Body,
            () if !self.inbox.is_empty() => Waiting::Head,
            () if self.requests == 0 => Waiting::FirstRequest,
            () => Waiting::NextRequest,
        };
        self.wait_for(waiting, ctx);
    }

    pub(super) fn wait_for(&mut self, waiting: Waiting, ctx: &Context) {
        let limits = &ctx.plan.limits;
        let timeout_ms = match waiting {
            Waiting::FirstRequest | Waiting::Head => limits.head_timeout_ms,
            Waiting::NextRequest => limits.idle_timeout_ms,
            Waiting::Body => limits.body_timeout_ms,
            Waiting::Send => limits.send_timeout_ms,
            Waiting::Linger => limits.linger_timeout_ms,
            // The gateway looks after applications.
            Waiting::Job | Waiting::Application => u64::MAX,
        };
        self.waiting = waiting;
        self.deadline_ms = ctx.clock.now_ms().saturating_add(timeout_ms);
        self.sent_at_deadline_start = self.outlet.sent();
    }

    pub(super) fn client_takes_enough(&self, ctx: &Context) -> bool {
        let limits = &ctx.plan.limits;
        let taken = self.outlet.sent() - self.sent_at_deadline_start;
        taken >= (limits.send_rate_min_bytes_per_s * limits.send_timeout_ms / 1000).max(1)
    }
}

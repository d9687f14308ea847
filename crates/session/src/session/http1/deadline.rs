//! What a session waits for, and for how long at the most.

use baton_telemetry::log::Outcome;

use super::waiting::Waiting;
use super::{ClientConnection, ConnectionState, Driver, Http1Driver, Need, Stage};
use crate::context::Context;
use crate::exchange::Exchange;
use crate::session::need::UpstreamNeed;

impl Http1Driver {
    /// The deadline has passed.
    pub(super) fn time_out(&mut self, connection: &mut ClientConnection, ctx: &mut Context) -> Need {
        match self.waiting {
            Waiting::Job => Need::JobUnderWay,
            Waiting::Application => Need::ResponseAwaited,
            Waiting::Send if connection.client_takes_enough(ctx) => {
                self.wait_for(Waiting::Send, connection, ctx);
                Need::Writable
            }
            Waiting::Head | Waiting::Body => match self.exchanges.last() {
                Some(at) if self.protocol.is_lent() => self.time_out_lent_body(at),
                _ if !connection.send_queue.is_empty() => self.end(Outcome::TimedOut, connection, ctx),
                at => {
                    match at {
                        Some(at) => self.refuse_late(at, connection, ctx),
                        None => self.refuse_late_head(connection, ctx),
                    }
                    self.step(connection, ctx, Stage::Any)
                }
            },
            Waiting::FirstRequest | Waiting::NextRequest | Waiting::Unwanted | Waiting::Linger => {
                self.end(Outcome::ClientGone, connection, ctx)
            }
            // After an orderly close the kernel would keep the unsent rest for minutes.
            Waiting::Send => self.reset(Outcome::TimedOut, connection, ctx),
        }
    }

    /// Gives a session that is about to wait for `need` the deadline of that wait. A wait that goes on keeps its own:
    /// more bytes buy no more time, unless the step that took them has begun the wait anew.
    ///
    /// Every step ends here, so that no way through the machine leaves the deadline of an earlier wait behind.
    pub(super) fn await_need(&mut self, need: &Need, connection: &mut ClientConnection, ctx: &Context) {
        let waiting = match need {
            Need::Readable => self.awaited_input(connection),
            Need::Writable => Waiting::Send,
            Need::Job(..) | Need::JobUnderWay => Waiting::Job,
            Need::Upstream(UpstreamNeed::ResponseEvents(_)) | Need::ResponseAwaited if self.awaits_body() => {
                Waiting::Body
            }
            Need::Upstream(UpstreamNeed::Abandon(_)) | Need::Turn | Need::Finished => return,
            Need::Upstream(_) | Need::ResponseAwaited => Waiting::Application,
        };
        if waiting != self.waiting {
            self.wait_for(waiting, connection, ctx);
        }
    }

    /// Everything is sent: the client's next input gets its full time, even if it has begun already.
    pub(super) fn wait_for_input(&mut self, connection: &mut ClientConnection, ctx: &Context) {
        self.wait_for(self.awaited_input(connection), connection, ctx);
    }

    /// The wait for the client's next input.
    fn awaited_input(&self, connection: &ClientConnection) -> Waiting {
        match connection.state {
            ConnectionState::Lingering => Waiting::Linger,
            _ if self.is_delegated() => Waiting::Application,
            _ if self.protocol.is_in_body() => Waiting::Body,
            _ if self.protocol.is_in_unwanted_body() => Waiting::Unwanted,
            _ if !connection.inbox.is_empty() => Waiting::Head,
            _ if self.protocol.requests() == 0 => Waiting::FirstRequest,
            _ => Waiting::NextRequest,
        }
    }

    pub(super) fn wait_for(&mut self, waiting: Waiting, connection: &mut ClientConnection, ctx: &Context) {
        let limits = &ctx.plan.limits;
        let timeout_ms = match waiting {
            Waiting::FirstRequest | Waiting::Head => limits.head_timeout_ms,
            Waiting::NextRequest => limits.idle_timeout_ms,
            Waiting::Body => {
                let last = self.exchanges.last().map(|at| &self.exchanges[at].exchange);
                last.and_then(Exchange::body_timeout_ms).unwrap_or(limits.body_timeout_ms)
            }
            Waiting::Unwanted => limits.body_timeout_ms,
            Waiting::Send => limits.send_timeout_ms,
            Waiting::Linger => limits.linger_timeout_ms,
            // The gateway has deadlines of its own for applications.
            Waiting::Job | Waiting::Application => u64::MAX,
        };
        self.waiting = waiting;
        connection.set_timeout(timeout_ms, ctx);
    }
}

//! What runs the exchanges of a connection: the transitions that are the same in every protocol, and what a protocol
//! provides for them.
//!
//! ```text
//!   Session ─► Driver ─┬─ provided:  an exchange's turn, what it needs, its job, its delegation, the gateway's events,
//!                      │             pieces of its body, its end; how the connection closes
//!                      └─ required:  the order of requests, framing, windows, reading and sending, deadlines
//! ```
//!
//! A protocol is a folder beside this file. It implements [`Driver`], keeps its requests in an [`Exchanges`] and has a
//! [`Responder`]. `at` is the place of a request in that table. It changes when an older request is logged.

use baton_response::send_way::Trial;
use baton_telemetry::log::Outcome;
use baton_telemetry::metrics::Metric;
use baton_upstream::{FailureReason, ResponseEvent, ResponseEvents};

use super::connection::ClientConnection;
use super::exchanges::{Exchanges, Underway};
use super::need::{Need, Stage, UpstreamNeed};
use crate::context::Context;
use crate::exchange::{Delegation, Env, Exchange, Refused, Wants};
use crate::job::JobDone;
use crate::protocol::{LastClose, Responder, StreamId};
use crate::transport::{Received, Transport};

/// A protocol on a connection, and its exchanges.
pub(super) trait Driver: Sized {
    /// What the protocol keeps of each request, besides what all have.
    type Own;

    /// Whether a request goes on while another one waits.
    const IS_MULTIPLEXED: bool;

    fn exchanges(&self) -> &Exchanges<Self::Own>;
    fn exchanges_mut(&mut self) -> &mut Exchanges<Self::Own>;

    /// Goes as far as it can without waiting; `stage` says which half of the work the caller does. Sets the deadline.
    fn step(&mut self, connection: &mut ClientConnection, ctx: &mut Context, stage: Stage) -> Need;

    /// The deadline has passed: a request or the session ends, or goes on if the client turns out to have made progress.
    fn handle_timeout(&mut self, connection: &mut ClientConnection, ctx: &mut Context) -> Need;

    /// The socket may be readable, or take more.
    fn handle_ready(&mut self) {}

    /// Whether there is something to send, and room for it.
    fn can_send(&self, connection: &ClientConnection) -> bool;

    /// Whether every request that has begun is answered, and the protocol has nothing else under way.
    fn is_idle(&self) -> bool;

    /// Whether all that is missing is the rest of what the client is sending, or its end of the connection.
    fn waits_for_client(&self, connection: &ClientConnection) -> bool;

    /// Whether the client may have sent input that was not taken.
    fn has_unread_input(&self, connection: &ClientConnection) -> bool;

    /// Takes input, and begins the requests that it holds, within bounds. Returns how many bytes were consumed.
    fn take_input(&mut self, input: &[u8], connection: &mut ClientConnection, ctx: &mut Context) -> usize;

    /// A job is done: of this request, which may be logged already; `None`: of the connection.
    fn handle_job_done(&mut self, of: Option<StreamId>, connection: &mut ClientConnection, ctx: &Context);

    /// Begins a turn of an exchange; `input`: what has arrived behind its head.
    fn begin_turn<'a>(
        &'a mut self,
        at: usize,
        input: &'a [u8],
        connection: &'a mut ClientConnection,
        ctx: &Context,
    ) -> Turn<'a>;

    /// The turn is over. `was_sent`: what the exchange had answered before had left.
    fn end_turn(&mut self, at: usize, was_sent: bool, trial: Option<Trial>, ctx: &Context);

    /// The request can go on. Where only one waits, the next step finds it.
    fn make_due(&mut self, _at: usize) {}

    /// The request needs its body: takes what has arrived. `Some`: this is needed for more.
    fn read_body(&mut self, at: usize, connection: &mut ClientConnection, ctx: &mut Context) -> Option<Need>;

    /// The gateway gets the rest of the body while it arrives; `left`: its length in bytes, if that is known.
    fn lend_body(&mut self, at: usize, left: Option<u64>);

    /// Whether more is to come of what was lent.
    fn has_lent_body(&self, at: usize) -> bool;

    /// The gateway has an event. Returns whether the request is over with it.
    fn note_response_event(
        &mut self,
        _at: usize,
        _event: &ResponseEvent,
        _connection: &mut ClientConnection,
        _ctx: &mut Context,
    ) -> bool {
        false
    }

    /// The response is on its way, as far as it will come. Logs the request if all of that is sent.
    fn handle_answered(&mut self, at: usize, connection: &mut ClientConnection, ctx: &mut Context);

    /// Ends one request now, and tells the client.
    fn cancel(&mut self, at: usize, outcome: Outcome, connection: &mut ClientConnection, ctx: &mut Context);

    /// The session is about to end: brings the records up to date, and notes what was cut off in its head.
    fn prepare_end(&mut self, connection: &mut ClientConnection, ctx: &mut Context);

    /// The server's side is closed.
    fn handle_lingering(&mut self, _connection: &mut ClientConnection, _ctx: &Context) {}

    /// What holds between any two events.
    fn check_invariants(&self, connection: &ClientConnection);

    /// Reads what has arrived, unless the inbox is to be tried first, and takes it.
    fn receive(&mut self, connection: &mut ClientConnection, ctx: &mut Context) -> Received {
        // Taken out of the context, which the exchanges borrow meanwhile.
        let mut scratch = std::mem::take(&mut ctx.scratch);
        let received = match &mut connection.transport {
            _ if connection.is_inbox_untried && !connection.inbox.is_empty() => Received::Bytes(0),
            transport if transport.has_ended_input() => Received::End,
            transport if !transport.is_readable() => Received::Nothing,
            transport => transport.receive(&mut scratch),
        };
        if let Received::Bytes(count) = received {
            if connection.inbox.is_empty() {
                // Parsed in place: only what is left over is copied.
                let taken = self.take_input(&scratch[..count], connection, ctx);
                connection.inbox.extend_from_slice(&scratch[taken..count]);
            } else {
                let mut inbox = std::mem::take(&mut connection.inbox);
                inbox.extend_from_slice(&scratch[..count]);
                let taken = self.take_input(&inbox, connection, ctx);
                connection.keep(inbox, taken);
            }
        }
        ctx.scratch = scratch;
        received
    }

    /// Whether a request is with an application.
    fn is_delegated(&self) -> bool {
        self.exchanges().iter().any(|entry| entry.exchange.is_delegated())
    }

    /// Calls `act` on an exchange, with the `input` behind its head. Returns also how many bytes of the input it
    /// consumed.
    fn drive<R>(
        &mut self,
        at: usize,
        input: &[u8],
        connection: &mut ClientConnection,
        ctx: &mut Context,
        act: impl FnOnce(&mut Exchange, &mut Env<'_>) -> R,
    ) -> (R, usize) {
        let listener = connection.listener;
        let (exchange, reply, client) = self.begin_turn(at, input, connection, ctx);
        let was_sent = exchange.record.is_all_sent();
        let mut env = Env { stream: exchange.stream, ctx, reply, listener, client, trial: None };
        let result = act(exchange, &mut env);
        let Env { reply, trial, .. } = env;
        let written = reply.finish(exchange.is_answered());
        exchange.record.handle_queued(&written);
        self.end_turn(at, was_sent, trial, ctx);
        (result, written.consumed)
    }

    /// What the session needs for a request; `None`: nothing now.
    fn need_of(
        &mut self,
        at: usize,
        wants: Wants,
        connection: &mut ClientConnection,
        ctx: &mut Context,
    ) -> Option<Need> {
        let entry = &mut self.exchanges_mut()[at];
        let stream = entry.exchange.stream;
        Some(match wants {
            Wants::Nothing => {
                self.handle_answered(at, connection, ctx);
                return None;
            }
            Wants::Body => return self.read_body(at, connection, ctx),
            Wants::Job(job) => {
                ctx.tally.add(Metric::Jobs, 1);
                debug_assert!(!entry.has_job, "one job at a time works for a request");
                entry.has_job = true;
                Need::Job(job, entry.exchange.client(&connection.transport))
            }
            Wants::Delegation(delegation) => self.delegate(at, delegation, connection, ctx),
            Wants::Abandon => Need::Upstream(UpstreamNeed::Abandon(stream)),
            Wants::Resume(end) => Need::Upstream(UpstreamNeed::Resume(stream, end)),
            Wants::Turn => {
                self.make_due(at);
                Need::Turn
            }
            Wants::ResponseEvents => Need::Upstream(UpstreamNeed::ResponseEvents(stream)),
            Wants::JobUnderWay | Wants::ResponseAwaited if Self::IS_MULTIPLEXED => return None,
            Wants::JobUnderWay => Need::JobUnderWay,
            Wants::ResponseAwaited => Need::ResponseAwaited,
        })
    }

    /// Completes a request for an application with what the transport offers.
    fn delegate(
        &mut self,
        at: usize,
        delegation: Delegation,
        connection: &mut ClientConnection,
        ctx: &Context,
    ) -> Need {
        let Delegation { mut request, ask, terms } = delegation;
        let sent = connection.send_queue.sent();
        request.pass = terms.and_then(|terms| connection.transport.pass(terms, sent, &ctx.send));
        if let Some(rest) = &request.rest {
            self.lend_body(at, rest.left());
        }
        let entry = &mut self.exchanges_mut()[at];
        entry.is_passed = request.pass.is_some();
        Need::Upstream(UpstreamNeed::Delegate(
            entry.exchange.stream,
            baton_cache::SourceRequest { upstream: request, ask },
        ))
    }

    /// The job that [`Need::Job`] asked for is done.
    fn handle_job(&mut self, done: JobDone, connection: &mut ClientConnection, ctx: &Context) {
        let of = match done {
            JobDone::Request(stream, learned) => {
                if let Some(at) = self.exchanges().position(stream) {
                    let entry = &mut self.exchanges_mut()[at];
                    debug_assert!(entry.has_job, "a job that was asked for");
                    entry.has_job = false;
                    entry.exchange.handle_job(learned);
                }
                Some(stream)
            }
            JobDone::PagedIn { stream: Some(stream), .. } => Some(stream),
            JobDone::PagedIn { stream: None, until } => {
                connection.send_queue.handle_pages(until);
                None
            }
            JobDone::Sent(sent) => {
                connection.send_queue.handle_waited(sent);
                None
            }
            JobDone::Handshake(worked) => return connection.transport.handle_handshake_work(worked),
        };
        self.handle_job_done(of, connection, ctx);
    }

    /// The gateway may have an event for a delegated request. Returns whether that event is all that the session needs.
    fn handle_response_ready(&mut self, stream: StreamId, connection: &ClientConnection) -> bool {
        let Some(at) = self.exchanges().position(stream) else { return false };
        self.exchanges_mut()[at].exchange.handle_room();
        // A stage that has the client may leave the event to its next step.
        self.make_due(at);
        self.needs_response_event(at, connection)
    }

    /// Whether the gateway's next event is all that a request needs: nothing is to be sent, or done for it, before.
    fn needs_response_event(&self, at: usize, connection: &ClientConnection) -> bool {
        let Underway { exchange, wants_body, .. } = &self.exchanges()[at];
        let is_at_rest = exchange.record.is_all_sent() && !exchange.is_coding() && !wants_body;
        is_at_rest && exchange.is_delegated() && !self.can_send(connection)
    }

    /// The gateway's next events for a delegated request; none: nothing more for now. Returns whether those behind them are
    /// all that the session needs.
    fn handle_response_events(
        &mut self,
        stream: StreamId,
        events: ResponseEvents,
        connection: &mut ClientConnection,
        ctx: &mut Context,
    ) -> bool {
        let Some(at) = self.exchanges().position(stream) else { return false };
        if !self.exchanges()[at].exchange.is_delegated() {
            return false;
        }
        for event in &events {
            if let ResponseEvent::Head(..) | ResponseEvent::Rest(_) = event {
                // The application has closed its copy, or has declined it.
                self.exchanges_mut()[at].is_passed = false;
            }
            if self.note_response_event(at, event, connection, ctx) {
                return false;
            }
        }
        let (is_quiet, is_switch) =
            (events.is_empty(), matches!(events.last(), Some(ResponseEvent::Switch(_))));
        let act = |exchange: &mut Exchange, env: &mut Env<'_>| exchange.handle_response_events(env, events);
        let (lost, _) = self.drive(at, &[], connection, ctx, act);
        if is_switch {
            // What it wanted was the request's body.
            self.exchanges_mut()[at].wants_body = false;
        }
        let exchange = &self.exchanges()[at].exchange;
        if let Some(outcome) = lost {
            self.cancel(at, outcome, connection, ctx);
        } else if exchange.is_answered() {
            self.handle_answered(at, connection, ctx);
        } else if is_quiet && !exchange.is_coding() {
            return false;
        } else if self.needs_response_event(at, connection) {
            return true;
        } else {
            self.make_due(at);
        }
        false
    }

    /// The application wants more of a request's body.
    fn handle_body_wanted(&mut self, stream: StreamId) {
        if let Some(at) = self.exchanges().position(stream) {
            self.exchanges_mut()[at].wants_body = self.has_lent_body(at);
        }
    }

    /// The client sent nothing more in time of a body that an application waits for.
    fn time_out_lent_body(&mut self, at: usize) -> Need {
        let entry = &mut self.exchanges_mut()[at];
        entry.wants_body = false;
        Need::Upstream(UpstreamNeed::Body(entry.exchange.stream, Err(FailureReason::BodyTimedOut)))
    }

    /// Refuses a request whose body takes too long.
    fn refuse_late(&mut self, at: usize, connection: &mut ClientConnection, ctx: &mut Context) {
        self.drive(at, &[], connection, ctx, |exchange, env| exchange.refuse(env, &Refused::LATE));
        self.handle_answered(at, connection, ctx);
    }

    /// Ends the session at once, and logs unfinished requests with this outcome.
    fn end(&mut self, outcome: Outcome, connection: &mut ClientConnection, ctx: &mut Context) -> Need {
        self.prepare_end(connection, ctx);
        self.exchanges_mut().log_all(outcome, connection, ctx);
        connection.finish(ctx)
    }

    /// Like [`end`](Self::end), but with a reset: the kernel drops what the client has not taken.
    fn reset(&mut self, outcome: Outcome, connection: &mut ClientConnection, ctx: &mut Context) -> Need {
        connection.transport.reset();
        self.end(outcome, connection, ctx)
    }

    /// Everything is sent and the connection is to end.
    fn close(&mut self, close: LastClose, connection: &mut ClientConnection, ctx: &mut Context) -> Need {
        // The client may have sent more while the last response was on its way. It answers the end of TLS with its own: on
        // a closed socket that would be a reset, too.
        match close.lingering(self.has_unread_input(connection) || connection.transport.tls().is_some()) {
            LastClose::Reset => self.reset(Outcome::Complete, connection, ctx),
            LastClose::Linger if connection.begin_lingering() => {
                self.handle_lingering(connection, ctx);
                self.linger(connection, ctx)
            }
            LastClose::Linger | LastClose::Orderly => self.end(Outcome::Complete, connection, ctx),
        }
    }

    /// Discards what the client still sends.
    fn linger(&mut self, connection: &mut ClientConnection, ctx: &mut Context) -> Need {
        match connection.linger(ctx) {
            Some(need) => need,
            None => self.end(Outcome::Complete, connection, ctx),
        }
    }
}

/// What an exchange's turn borrows: the exchange, where it answers, and the client's connection.
pub(super) type Turn<'a> = (&'a mut Exchange, Responder<'a>, &'a Transport);

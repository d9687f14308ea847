//! From bytes to requests: the half of the driver that reads.

use std::sync::Arc;

use baton_http::{Refusal, h2};
use baton_telemetry::log::Outcome;
use baton_telemetry::metrics::Metric;

use super::stream::Stream;
use super::{ClientConnection, ConnectionState, Driver, Http2Driver, Underway};
use crate::context::Context;
use crate::exchange::{Exchange, Refused};
use crate::protocol::LastClose;

impl Http2Driver {
    /// The client sends no more: answers that are under way are completed, as far as its windows go, which open no more.
    pub(super) fn goes_on_alone(&self, connection: &ClientConnection) -> bool {
        let goes_on =
            |entry: &Underway<Stream>| !entry.awaits_body() && self.connection.stall(entry.own.id).is_none();
        let is_sending = !connection.send_queue.is_empty() || self.connection.wants_to_send();
        is_sending || self.exchanges.iter().any(goes_on)
    }

    /// Reads frames. Returns how many bytes were consumed.
    pub(super) fn take_frames(
        &mut self,
        input: &[u8],
        text: &mut h2::HeadText,
        connection: &mut ClientConnection,
        ctx: &mut Context,
    ) -> usize {
        let plan = Arc::clone(&ctx.plan);
        let now_ms = ctx.clock.now_ms();
        let mut at = 0;
        connection.is_inbox_untried = false;
        loop {
            let (consumed, event) =
                match self.connection.receive(&input[at..], text, &plan.limits.head, now_ms) {
                    Ok(received) => received,
                    Err(error) => {
                        self.fail(error, connection, ctx);
                        return input.len();
                    }
                };
            at += consumed;
            match event {
                None if consumed == 0 => return at,
                None => {}
                Some(h2::Event::Request { stream, head, protocol, ends, .. }) => {
                    let at = self.begin(Stream::new(stream, Some(&head), ends, &ctx.clock), connection, ctx);
                    if let Some(protocol) = protocol {
                        self.exchanges[at].exchange.set_protocol(protocol);
                    }
                    self.drive(at, &[], connection, ctx, |exchange, env| exchange.begin(env, &plan, &head));
                    self.settle(at, connection, ctx);
                    self.requests_left = self.requests_left.saturating_sub(1);
                }
                Some(h2::Event::Refused { stream, refusal, ends }) => {
                    let at = self.begin(Stream::new(stream, None, ends, &ctx.clock), connection, ctx);
                    self.refuse(at, refusal, connection, ctx);
                    self.requests_left = self.requests_left.saturating_sub(1);
                }
                Some(h2::Event::Data { stream, data, ends }) => {
                    self.take_data(stream, data, ends, connection, ctx);
                }
                Some(h2::Event::End { stream }) => self.take_data(stream, &[], true, connection, ctx),
                Some(h2::Event::Reset { stream, .. }) => {
                    self.handle_reset(stream, Outcome::ClientGone, connection, ctx);
                }
                Some(h2::Event::Broken { stream, .. }) => {
                    self.handle_reset(stream, Outcome::Refused, connection, ctx);
                }
                Some(h2::Event::Malformed { .. }) => self.note_malformed(connection, ctx),
                // Requests under way are answered; the client closes.
                Some(h2::Event::GoAway { .. }) => {}
            }
            if self.requests_left == 0 && at < input.len() {
                connection.is_inbox_untried = true;
                return at;
            }
        }
    }

    /// Adds a request. Returns where it is.
    fn begin(&mut self, stream: Stream, connection: &ClientConnection, ctx: &Context) -> usize {
        let at = self.exchanges.push(Exchange::new(super::name(stream.id), &ctx.clock), stream);
        self.requests += 1;
        self.is_resting = false;
        let leaves = ctx.lingering && self.has_to_end(connection, ctx);
        if leaves || self.requests >= ctx.plan.limits.requests_per_connection_max {
            self.connection.begin_drain(ctx.clock.now_ms());
        }
        at
    }

    /// What follows from the first turn of a request, or from its body.
    pub(super) fn settle(&mut self, at: usize, connection: &mut ClientConnection, ctx: &mut Context) {
        match self.exchanges[at].exchange.is_answered() {
            true => self.handle_answered(at, connection, ctx),
            false => self.make_due(at),
        }
    }

    /// Refuses a request that cannot be read.
    fn refuse(&mut self, at: usize, refusal: Refusal, connection: &mut ClientConnection, ctx: &mut Context) {
        let why = refusal.to_string();
        self.drive(at, &[], connection, ctx, |exchange, env| {
            exchange.refuse_input(env, b"HTTP/2.0", &Refused::by(refusal, &why));
        });
        self.settle(at, connection, ctx);
    }

    /// The stream was reset, by the client or for what it sent.
    fn handle_reset(
        &mut self,
        stream: h2::StreamId,
        outcome: Outcome,
        connection: &mut ClientConnection,
        ctx: &mut Context,
    ) {
        if let Some(at) = self.exchanges.position(super::name(stream)) {
            self.remove(at, outcome, connection, ctx);
        } else {
            self.connection.finish(stream);
        }
    }

    /// A request was malformed, and has been reset: it gets its line in the log all the same.
    fn note_malformed(&self, connection: &ClientConnection, ctx: &mut Context) {
        log_unreadable(b"HTTP/2.0 malformed request", connection, ctx);
    }

    /// The client broke the protocol, or went over a bound: it is told, and the connection ends.
    pub(super) fn fail(
        &mut self,
        error: h2::ConnectionError,
        connection: &mut ClientConnection,
        ctx: &mut Context,
    ) {
        ctx.tally.add(Metric::of_http2_error(&error), 1);
        log_unreadable(format!("HTTP/2.0 {}", error.label()).as_bytes(), connection, ctx);
        for at in (0..self.exchanges.len()).rev() {
            self.remove(at, Outcome::Refused, connection, ctx);
        }
        connection.is_inbox_untried = false;
        connection.inbox = Vec::new();
        connection.state = ConnectionState::Ending(LastClose::Linger);
    }
}

/// Logs input that is no request.
fn log_unreadable(what: &[u8], connection: &ClientConnection, ctx: &mut Context) {
    let mut exchange = Exchange::new(crate::protocol::StreamId::of(0), &ctx.clock);
    exchange.note_unreadable(what, ctx);
    exchange.record.end(Outcome::Refused, connection.transport.peer(), ctx);
}

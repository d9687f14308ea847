//! From bytes to answers: the half of a session that reads.

use std::sync::Arc;

use baton_http::Refusal;
use baton_http::h2::{self, PrefaceMatch};
use baton_telemetry::log::Outcome;

use super::waiting::Waiting;
use super::{ClientConnection, ConnectionState, Driver, Http1Driver, Need};
use crate::context::Context;
use crate::exchange::{Exchange, Refused};
use crate::protocol::{BodyRead, LastClose, NextRequest};
use crate::transport::Received;

impl Http1Driver {
    /// Reads what has arrived, and answers it; `None`: the exchanges or the state have changed.
    pub(super) fn read(&mut self, connection: &mut ClientConnection, ctx: &mut Context) -> Option<Need> {
        match self.receive(connection, ctx) {
            Received::Bytes(_) => None,
            Received::Nothing => Some(Need::Readable),
            Received::End => Some(self.end(Outcome::ClientGone, connection, ctx)),
        }
    }

    /// Answers as many requests as the input holds, within bounds. Returns how many bytes of it were consumed.
    pub(super) fn take_requests(
        &mut self,
        input: &[u8],
        connection: &mut ClientConnection,
        ctx: &mut Context,
    ) -> usize {
        connection.is_inbox_untried = false;
        // Over TLS the handshake has decided (RFC 9113, section 3.2).
        if self.protocol.requests() == 0 && connection.transport.tls().is_none() {
            match h2::match_preface(input) {
                PrefaceMatch::No => {}
                PrefaceMatch::Partial => return 0,
                PrefaceMatch::Whole => {
                    self.is_http2 = true;
                    return 0;
                }
            }
        }
        let plan = Arc::clone(&ctx.plan);
        let mut at = 0;
        let mut requests = 0;
        loop {
            if self.protocol.is_in_body() {
                at += self.take_body(&input[at..], connection, ctx);
            } else {
                match self.protocol.next(&input[at..], &plan.limits) {
                    Ok(NextRequest::Request(head, head_len)) => {
                        let start = at;
                        at += head_len;
                        requests += 1;
                        let mut exchange = Exchange::new(self.protocol.stream(), &ctx.clock);
                        if connection.transport.is_further_request() {
                            exchange.allow_fetch();
                        }
                        let own = self.exchanges.push(exchange, ());
                        let ((), taken) = self.drive(own, &input[at..], connection, ctx, |exchange, env| {
                            exchange.begin(env, &plan, &head);
                        });
                        if self.is_for_front_end(connection, ctx) {
                            return start;
                        }
                        connection.note_request_begun(ctx);
                        at += taken;
                        if self.waiting_request().is_none() {
                            let is_behind = at < input.len() || self.has_unread_input(connection);
                            self.go_on_or_end(is_behind, connection);
                        } else if self.protocol.is_in_body() {
                            continue; // It may be too large before any of it has arrived.
                        }
                    }
                    Ok(NextRequest::Part) => return at,
                    Ok(NextRequest::Unwanted(len)) => {
                        at += len;
                        if self.protocol.is_in_unwanted_body() && connection.send_queue.is_empty() {
                            self.wait_for(Waiting::Unwanted, connection, ctx); // Anew with each part of it.
                        }
                    }
                    Ok(NextRequest::Unusable) => {
                        connection.state = ConnectionState::Ending(LastClose::Linger);
                    }
                    Err(refusal) => {
                        if refusal == Refusal::TlsHandshake {
                            ctx.warn_of_tls(format_args!("a client spoke TLS to a port in clear"));
                        }
                        let why = refusal.to_string();
                        self.refuse(&input[at..], &Refused::by(refusal, &why), connection, ctx);
                    }
                }
            }
            if !connection.is_open() {
                return input.len();
            }
            if at == input.len() {
                return at;
            }
            if self.protocol.is_in_body() {
                continue;
            }
            if self.waiting_request().is_some() {
                return at;
            }
            if requests >= plan.limits.pipelined_max || connection.send_queue.queued() >= BATCH_BYTES {
                connection.is_inbox_untried = true;
                return at;
            }
        }
    }

    /// Reads on in the body of the last request. Returns how many bytes of the input were consumed.
    fn take_body(&mut self, input: &[u8], connection: &mut ClientConnection, ctx: &mut Context) -> usize {
        let Some(last) = self.exchanges.last() else { return 0 };
        let Some(upload) = self.exchanges[last].exchange.upload() else { return 0 };
        let (taken, read) = match self.protocol.read_body(input, upload) {
            Ok((taken, BodyRead::Part)) => {
                self.wait_for(Waiting::Body, connection, ctx); // Anew with each part of it.
                return taken;
            }
            Ok((taken, read)) => (taken, Ok(read)),
            Err(refusal) => (input.len(), Err(refusal)),
        };
        self.drive(last, &[], connection, ctx, |exchange, env| exchange.handle_body(env, read));
        if self.waiting_request().is_none() {
            self.go_on_or_end(true, connection);
        }
        taken
    }

    /// Refuses input that is no request. The rest of the input is discarded.
    fn refuse(
        &mut self,
        input: &[u8],
        refused: &Refused<'_>,
        connection: &mut ClientConnection,
        ctx: &mut Context,
    ) {
        connection.is_inbox_untried = false;
        let stream = self.protocol.take_unreadable(input);
        connection.note_request_begun(ctx);
        let at = self.exchanges.push(Exchange::new(stream, &ctx.clock), ());
        self.drive(at, &[], connection, ctx, |exchange, env| exchange.refuse_input(env, input, refused));
        connection.state = ConnectionState::Ending(LastClose::Linger);
    }

    /// Refuses an incomplete head whose rest takes too long.
    pub(super) fn refuse_late_head(&mut self, connection: &mut ClientConnection, ctx: &mut Context) {
        let inbox = std::mem::take(&mut connection.inbox);
        self.refuse(&inbox, &Refused::LATE, connection, ctx);
    }
}

/// Bytes of responses to pipelined requests that are collected before they are sent.
const BATCH_BYTES: u64 = 256 * 1024;

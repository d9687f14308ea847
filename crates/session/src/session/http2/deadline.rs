//! What the client may take its time for, and how much.
//!
//! A client has one deadline, the earliest of those of the connection and of its streams.

use std::sync::Arc;

use baton_http::h2;
use baton_site::limits::Limits;
use baton_telemetry::log::Outcome;

use super::stream::Stream;
use super::{ClientConnection, ConnectionState, Driver, Http2Driver, Need, Stage, Underway};
use crate::context::Context;
use crate::protocol::LastClose;

impl Http2Driver {
    /// Sets the deadline of a session that is about to wait.
    pub(super) fn set_deadline(&mut self, connection: &mut ClientConnection, ctx: &Context) {
        let limits = &ctx.plan.limits;
        let now_ms = ctx.clock.now_ms();
        let is_in_head = !connection.inbox.is_empty() || !self.connection.is_idle();
        self.head_since_ms = is_in_head.then(|| self.head_since_ms.unwrap_or(now_ms));
        if connection.send_queue.is_empty() || self.is_send_queue_blocked {
            self.send_due_ms = None;
        } else if self.send_due_ms.is_none() {
            connection.set_timeout(limits.send_timeout_ms, ctx);
            self.send_due_ms = Some(connection.deadline_ms);
        }
        if connection.state == ConnectionState::Lingering {
            return;
        }
        let of_streams = self.exchanges.iter().filter_map(|entry| self.stream_deadline(entry, limits));
        let of_connection = self.connection.deadline_ms().into_iter().chain(self.send_due_ms);
        let due_ms = of_streams
            .chain(of_connection)
            .chain(self.idle_deadline(connection, limits))
            .chain(self.rest_deadline(connection))
            .chain(self.patience_deadline(ctx))
            .min();
        connection.deadline_ms = due_ms.map_or(u64::MAX, |due_ms| due_ms.max(now_ms));
    }

    /// When a client without requests is told to go. One that was told has only the time to take that.
    fn idle_deadline(&self, connection: &ClientConnection, limits: &Limits) -> Option<u64> {
        let (since_ms, timeout_ms) = match self.head_since_ms {
            Some(since_ms) => (since_ms.max(self.idle_since_ms), limits.head_timeout_ms),
            None if self.requests == 0 => (self.idle_since_ms, limits.head_timeout_ms),
            None => (self.idle_since_ms, limits.idle_timeout_ms),
        };
        (connection.is_open() && self.exchanges.is_empty()).then_some(since_ms.saturating_add(timeout_ms))
    }

    /// When a client that is not without requests is told of a drain.
    fn patience_deadline(&self, ctx: &Context) -> Option<u64> {
        let waits = ctx.draining && !self.exchanges.is_empty() && !self.connection.is_draining();
        (waits && ctx.patience_until_ms < u64::MAX).then_some(ctx.patience_until_ms)
    }

    /// When a client that rests gives its memory back.
    fn rest_deadline(&self, connection: &ClientConnection) -> Option<u64> {
        let rests = self.is_idle() && connection.inbox.is_empty() && !self.is_resting;
        rests.then_some(self.idle_since_ms.saturating_add(REST_AFTER_MS))
    }

    /// When the client must have sent more of a body, or taken more of a response.
    fn stream_deadline(&self, entry: &Underway<Stream>, limits: &Limits) -> Option<u64> {
        let stream = &entry.own;
        if entry.awaits_body() {
            let timeout_ms = entry.exchange.body_timeout_ms().unwrap_or(limits.body_timeout_ms);
            return Some(stream.received_ms.saturating_add(timeout_ms));
        }
        // A window that opens a byte at a time buys no time, but one that others use does.
        let since_ms = match self.connection.stall(stream.id)? {
            h2::Stall::Stream => stream.sending_since_ms,
            h2::Stall::Connection => stream.sending_since_ms.max(self.data_sent_ms),
        };
        Some(since_ms.saturating_add(limits.send_timeout_ms))
    }

    /// The deadline has passed: a stream or the session ends, or goes on if the client turns out to have made progress.
    pub(super) fn time_out(&mut self, connection: &mut ClientConnection, ctx: &mut Context) -> Need {
        let now_ms = ctx.clock.now_ms();
        if connection.state == ConnectionState::Lingering {
            return self.end(Outcome::Complete, connection, ctx);
        }
        if self.send_due_ms.is_some_and(|due_ms| due_ms <= now_ms) {
            if !connection.client_takes_enough(ctx) {
                // After an orderly close the kernel would keep the unsent rest for minutes.
                return self.reset(Outcome::TimedOut, connection, ctx);
            }
            self.send_due_ms = None;
        }
        if let Err(error) = self.connection.handle_time(now_ms) {
            self.fail(error, connection, ctx);
        }
        if self.idle_deadline(connection, &ctx.plan.limits).is_some_and(|due_ms| due_ms <= now_ms) {
            self.connection.go_away(h2::ErrorCode::NoError);
            connection.state = ConnectionState::Ending(LastClose::Linger);
        }
        if self.rest_deadline(connection).is_some_and(|due_ms| due_ms <= now_ms) {
            self.rest();
        }
        let plan = Arc::clone(&ctx.plan);
        let limits = &plan.limits;
        for at in (0..self.exchanges.len()).rev() {
            let due_ms = self.stream_deadline(&self.exchanges[at], limits);
            if due_ms.is_none_or(|due_ms| due_ms > now_ms) {
                continue;
            }
            let entry = &mut self.exchanges[at];
            if entry.wants_body && entry.awaits_body() {
                entry.own.received_ms = now_ms;
                return self.time_out_lent_body(at);
            } else if entry.awaits_body() {
                self.refuse_late(at, connection, ctx);
            } else if entry.own.taken >= limits.least_bytes_per_send_timeout() {
                entry.own.begin_sending(now_ms);
            } else {
                self.cancel(at, Outcome::TimedOut, connection, ctx);
            }
        }
        self.step(connection, ctx, Stage::Any)
    }
}

/// How long a connection has no request before it gives memory back: longer than between the requests of a page.
const REST_AFTER_MS: u64 = 1000;

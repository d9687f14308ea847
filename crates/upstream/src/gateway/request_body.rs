//! Streams request bodies to applications: asks the session for one piece at a time, as the application takes them.
//!
//! ```text
//!   client ──► session ── push_body ──► Gateway ──► application
//!                 ▲                        │
//!                 └─────── wants_body ◄────┘ when the last piece is written
//! ```
//!
//! The slower side sets the pace. At most one piece of a body is held here.

use baton_buf::Slice;

use super::Gateway;
use crate::connections::ConnectionId;
use crate::exchange::ExchangeState;
use crate::{BodyRest, FailureReason, RequestId};

impl Gateway {
    /// Whether the application wants the next piece of the body. True once per piece, and again if the request is repeated
    /// on another connection meanwhile; answer it once with [`push_body`](Self::push_body) or
    /// [`fail_body`](Self::fail_body).
    pub fn wants_body(&mut self, request_id: RequestId) -> bool {
        self.exchanges.get_mut(request_id).is_some_and(|exchange| std::mem::take(&mut exchange.wants_body))
    }

    /// Adds the next piece of a request's body, or of what its client sends into a tunnel. If the length is known, the body
    /// is complete after [`BodyRest::left`](crate::BodyRest::left) bytes; else the `is_last` piece, which may be empty, ends
    /// it. Pieces for an answered request are dropped.
    pub fn push_body(&mut self, request_id: RequestId, part: Slice, is_last: bool, now_ms: u64) {
        let Some(exchange) = self.exchanges.get_mut(request_id) else { return };
        let state = exchange.state;
        let Some(request) = &mut exchange.request else { return };
        let Some(rest) = &mut request.rest else { return };
        rest.note_pushed(part.len() as u64);
        let is_last = is_last || rest.left() == Some(0);
        if is_last {
            request.rest = None;
        }
        let (ExchangeState::Assigned(id), connections) = (state, &mut self.connections) else {
            // Not sent yet: the piece goes out with the request.
            return request.body.push(part);
        };
        let Some(connection) = connections.get_mut(id).filter(|connection| connection.awaits_body()) else {
            return request.body.push(part);
        };
        connection.push_body(part, is_last);
        // The request cannot be repeated any more.
        exchange.is_partly_gone = true;
        request.body.clear();
        if !self.connections.write(id) {
            return self.read(id, now_ms);
        }
        self.connections.update(id, |connection| {
            connection.restart_head_deadline(now_ms);
            connection.extend_deadline(now_ms);
        });
        self.ask_for_body(id);
        self.end_tunnel_if_over(id, now_ms);
    }

    /// The session knows of the switch of protocols: what its client sends may follow.
    pub(super) fn open_tunnel(&mut self, request_id: RequestId) {
        let Some(exchange) = self.exchanges.get_mut(request_id) else { return };
        let (ExchangeState::Assigned(id), Some(request)) = (exchange.state, &mut exchange.request) else {
            return;
        };
        request.rest = Some(BodyRest::of_origin(None));
        exchange.is_partly_gone = true;
        if let Some(turn) = &mut exchange.turn {
            turn.note_tunnel();
        }
        if let Some(connection) = self.connections.get_mut(id) {
            connection.open_tunnel();
            self.count_as_tunnel(id);
            self.ask_for_body(id);
        }
    }

    /// Ends a tunnel whose both directions have ended.
    pub(super) fn end_tunnel_if_over(&mut self, id: ConnectionId, now_ms: u64) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let Some(request_id) = connection.serving().map(|serving| serving.request_id) else { return };
        if !connection.is_tunnel_over() {
            return;
        }
        if let Some(exchange) = self.exchanges.get_mut(request_id) {
            exchange.response.handle_end(0);
        }
        self.exchanges.finish(request_id);
        self.release(id, false, now_ms);
    }

    /// The rest of a request's body will not come. Fails the request for this reason.
    pub fn fail_body(&mut self, request_id: RequestId, why: FailureReason, now_ms: u64) {
        let Some(exchange) = self.exchanges.get(request_id) else { return };
        match exchange.state {
            ExchangeState::Assigned(id) => self.fail_on_connection(id, request_id, why, now_ms),
            ExchangeState::Queued => {
                if let Some(pool) = self.pools.get_mut(exchange.pool) {
                    pool.leave(request_id);
                }
                self.fail(request_id, why, false);
            }
            ExchangeState::Finished => {}
        }
    }

    /// Asks the session for more of the body, if the application has taken the last piece.
    pub(super) fn ask_for_body(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(id)
            && let Some(request_id) = connection.ask_for_body()
            && let Some(exchange) = self.exchanges.get_mut(request_id)
        {
            exchange.wants_body = true;
            // No deadline here: the session times the client. A tunnel may be idle in both directions, for its own time.
            if !connection.is_tunnel() {
                connection.stop_deadline();
            }
            self.exchanges.announce(request_id);
        }
    }
}

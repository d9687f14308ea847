//! Takes requests to another peer when one fails.

use std::sync::Arc;

use super::Gateway;
use crate::connections::ConnectionId;
use crate::exchange::ExchangeState;
use crate::origins::AtOrigin;
use crate::{FailureReason, RequestId};

impl Gateway {
    /// A peer has no connection for a request. Nothing of it was sent, so another peer may have it, whatever it asks for.
    pub(super) fn try_next_peer_or_fail(&mut self, request_id: RequestId, why: FailureReason, now_ms: u64) {
        if self.choose_next_peer(request_id, why, now_ms) {
            self.go_to_peer(request_id, now_ms);
        } else {
            self.fail(request_id, why, false);
        }
    }

    /// Sends a request to another peer although this one may have begun with it: if that does no harm, and once. A peer that
    /// dies may have had it twice, since its socket still takes connections when the kept ones have ended. False: it stays
    /// where it is.
    pub(super) fn send_elsewhere(
        &mut self,
        id: ConnectionId,
        request_id: RequestId,
        why: FailureReason,
        now_ms: u64,
    ) -> bool {
        let Some(exchange) = self.exchanges.get_mut(request_id) else { return false };
        let is_idempotent = exchange.request.as_ref().is_some_and(|request| request.idempotent);
        let is_harmless = is_idempotent && !exchange.is_partly_gone && exchange.response.is_silent();
        let index = exchange.pool;
        if !is_harmless || exchange.attempts.has_moved_on() || !self.choose_next_peer(request_id, why, now_ms)
        {
            return false;
        }
        if let Some(exchange) = self.exchanges.get_mut(request_id) {
            exchange.attempts.note_moved_on();
        }
        self.close(id);
        self.go_to_peer(request_id, now_ms);
        self.advance_queue(index, now_ms);
        true
    }

    /// Notes the failure, and chooses another peer. False: there is none, or too much was repeated lately.
    fn choose_next_peer(&mut self, request_id: RequestId, why: FailureReason, now_ms: u64) -> bool {
        let Some(exchange) = self.exchanges.get_mut(request_id) else { return false };
        let Some(turn) = &mut exchange.turn else { return false };
        self.peer_events.push(turn.note_failure(why, now_ms));
        let has_moved = turn.move_on(why, now_ms);
        if let Some(pool) = self.pools.get_mut(exchange.pool).filter(|_| has_moved) {
            pool.tally.retries += 1;
            pool.tally.last_failure = Some(why);
            pool.application.settings().record.note_failure(why.label());
        }
        has_moved
    }

    /// Puts a request into the pool of the peer that was chosen.
    fn go_to_peer(&mut self, request_id: RequestId, now_ms: u64) {
        let Some(exchange) = self.exchanges.get_mut(request_id) else { return };
        let (Some(turn), Some(request)) = (&exchange.turn, &mut exchange.request) else { return };
        let application = Arc::clone(turn.application());
        request.application = Arc::clone(&application);
        exchange.attempts.begin_at_peer();
        exchange.state = ExchangeState::Queued;
        // The share that it had is one of the former peer's connections.
        exchange.place = None;
        exchange.at_origin = Some(AtOrigin::begin(&application.settings().record, now_ms));
        exchange.note_relayed();
        let index = self.pool_of(&application);
        if let Some(exchange) = self.exchanges.get_mut(request_id) {
            exchange.pool = index;
        }
        self.assign_or_queue(request_id, index, now_ms);
    }
}

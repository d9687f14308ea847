//! Assigns requests to connections: idle ones, new ones, or a place in the queue.

use std::sync::Arc;

use baton_process_table::Release;
use baton_sys::descriptors;
use rustix::io::Errno;

use super::Gateway;
use crate::channel::Channel;
use crate::codec::Codec;
use crate::connection::{Connection, OtherEnd, Phase};
use crate::connections::{ConnectionId, Connections};
use crate::exchange::ExchangeState;
use crate::pool::{Acquired, Pool};
use crate::shm::SharedRegion;
use crate::{Application, FailureReason, RequestId, proxy_header, socket};

impl Gateway {
    /// The pool of an application.
    pub(super) fn pool_of(&mut self, application: &Arc<Application>) -> usize {
        if let Some(index) = self.pools.find(application) {
            return index;
        }
        let index = self.pools.add(application);
        self.watch_waker(index);
        index
    }

    /// Drops a pool that has no connections, no requests and no other user of its application: an old configuration's.
    pub(super) fn retire(&mut self, index: usize) {
        if let Some(pool) = self.pools.take_unused(index) {
            self.unwatch_waker(&pool);
        }
    }

    /// Gives a new request a connection, or a place in the queue.
    pub(super) fn assign_or_queue(&mut self, request_id: RequestId, index: usize, now_ms: u64) {
        let client = self.exchanges.client_of(request_id);
        let Some(pool) = self.pools.get_mut(index) else { return };
        pool.tally.requests += 1;
        pool.retry_budget.note_request();
        if self.lacks_tunnels(index, request_id) {
            return self.try_next_peer_or_fail(request_id, FailureReason::TunnelsFull, now_ms);
        }
        let Some(pool) = self.pools.get_mut(index) else { return };
        if pool.waiting() == 0 && !pool.is_wanted_by_others() && pool.has_share(client) {
            match self.acquire(index, request_id, now_ms) {
                Acquired::Nothing => {}
                acquired => return self.assign(request_id, index, acquired, now_ms),
            }
        }
        let Some(pool) = self.pools.get_mut(index) else { return };
        if pool.enqueue(request_id, client, now_ms) {
            self.pools.note_due(index, now_ms);
            if self.pools.get(index).is_some_and(|pool| !pool.is_wanted_by_others()) {
                // Another loop may have given a process back before it saw this request in the queue.
                self.advance_queue(index, now_ms);
            }
        } else {
            self.try_next_peer_or_fail(request_id, FailureReason::QueueFull, now_ms);
        }
    }

    /// Assigns connections to waiting requests, as far as the pool has any.
    pub(super) fn advance_queue(&mut self, index: usize, now_ms: u64) {
        while let Some(request_id) = self.pools.get(index).and_then(Pool::first_waiter) {
            if self.lacks_tunnels(index, request_id) {
                if let Some(pool) = self.pools.get_mut(index) {
                    pool.leave(request_id);
                }
                self.try_next_peer_or_fail(request_id, FailureReason::TunnelsFull, now_ms);
                continue;
            }
            let acquired = self.acquire(index, request_id, now_ms);
            if acquired == Acquired::Nothing {
                break;
            }
            if let Some(pool) = self.pools.get_mut(index) {
                pool.next_waiter();
            }
            self.assign(request_id, index, acquired, now_ms);
        }
    }

    /// Finds a connection for a request. One that has said whose it is serves that client only; if there are no others, and
    /// no room for another, an idle one makes room.
    fn acquire(&mut self, index: usize, request_id: RequestId, now_ms: u64) -> Acquired {
        let Some(pool) = self.pools.get_mut(index) else { return Acquired::Nothing };
        if pool.application.settings().send_proxy.is_none() {
            return pool.acquire(now_ms, |_| true);
        }
        let request = self.exchanges.get(request_id).and_then(|exchange| exchange.request.as_ref());
        let ends = request.and_then(|request| request.ends);
        let connections = &mut self.connections;
        let suits =
            |id: &ConnectionId| connections.get_mut(*id).is_some_and(|one| one.other_end.ends == ends);
        let acquired = pool.acquire(now_ms, suits);
        if acquired == Acquired::Nothing
            && let Some(oldest) = pool.give_up_oldest_idle()
        {
            self.close(oldest);
            return self.pools.get_mut(index).map_or(acquired, |pool| pool.acquire(now_ms, |_| false));
        }
        acquired
    }

    /// Sends a request on the connection it acquired. If that is of no use, acquires the next one.
    fn assign(&mut self, request_id: RequestId, index: usize, mut acquired: Acquired, now_ms: u64) {
        let client = self.exchanges.client_of(request_id);
        if let (Some(pool), Some(exchange)) = (self.pools.get(index), self.exchanges.get_mut(request_id)) {
            exchange.place.get_or_insert_with(|| pool.take_share(client));
        }
        loop {
            match acquired {
                Acquired::Idle(id) if self.pools.get(index).is_some_and(Pool::has_others_starving) => {
                    self.close(id);
                }
                // Bytes that no request has asked for would be taken for the response of this one.
                Acquired::Idle(id) if self.has_stray_input(id) => self.close(id),
                Acquired::Idle(id) => return self.send_request(id, request_id, now_ms),
                Acquired::Open(lane) => match self.open(index, lane, request_id, now_ms) {
                    Ok(id) => return self.begin_connecting(id, request_id, now_ms),
                    Err(error) => {
                        let Some(pool) = self.pools.get_mut(index) else { return };
                        let is_gone = matches!(error, Errno::CONNREFUSED | Errno::NOENT);
                        let has_others = pool.give_up_lane(lane, is_gone) && is_gone;
                        if is_gone {
                            pool.application.settings().streamed_bodies.forget();
                        }
                        // Out of descriptors, a request waits as for room in the backlog: connections to applications
                        // close when idle, and clients leave.
                        if error == Errno::AGAIN || descriptors::ran_out(error) {
                            let limit_ms = now_ms + pool.application.settings().connect_timeout_ms;
                            pool.note_backlog_full(now_ms);
                            if let Some(exchange) = self.exchanges.get_mut(request_id) {
                                exchange.attempts.wait_to_connect(limit_ms);
                            }
                            return self.put_back(request_id, index, now_ms);
                        }
                        if !has_others {
                            pool.address(lane).note_unreachable();
                            let why = FailureReason::NoConnection(error);
                            if let Some(exchange) = self.exchanges.get_mut(request_id) {
                                exchange.trail.note_try();
                            }
                            return self.try_next_peer_or_fail(request_id, why, now_ms);
                        }
                    }
                },
                Acquired::Nothing => return self.put_back(request_id, index, now_ms),
            }
            acquired = self.acquire(index, request_id, now_ms);
        }
    }

    /// Whether a kept connection to an origin has ended, or has input, and the loop has not heard of it yet.
    fn has_stray_input(&mut self, id: ConnectionId) -> bool {
        self.connections.get_mut(id).is_some_and(|connection| connection.is_http() && connection.has_input())
    }

    /// Requeues a request at the front.
    pub(super) fn put_back(&mut self, request_id: RequestId, index: usize, now_ms: u64) {
        let Some(pool) = self.pools.get_mut(index) else { return };
        let Some(exchange) = self.exchanges.get_mut(request_id) else { return };
        let queue_until_ms = now_ms.saturating_add(pool.application.settings().queue_timeout_ms);
        let client = exchange.request.as_ref().and_then(|request| request.client);
        (exchange.state, exchange.place) = (ExchangeState::Queued, None);
        let until_ms = exchange.attempts.connecting_until_ms().unwrap_or(queue_until_ms);
        pool.put_back(request_id, client, until_ms);
        self.pools.note_due(index, now_ms);
    }

    /// Opens a connection, which may not be connected yet.
    fn open(
        &mut self,
        index: usize,
        lane: usize,
        request_id: RequestId,
        now_ms: u64,
    ) -> Result<ConnectionId, Errno> {
        let Some(pool) = self.pools.get_mut(index) else { return Err(Errno::INVAL) };
        let connecting = socket::connect(&pool.address(lane))?;
        let settings = pool.application.settings();
        let request = self.exchanges.get(request_id).and_then(|exchange| exchange.request.as_ref());
        let ends = request.and_then(|request| request.ends).filter(|_| settings.send_proxy.is_some());
        let greeting = settings.send_proxy.map(|version| proxy_header::header(version, ends));
        let channel = Channel::new(connecting.socket, greeting.unwrap_or_default(), settings.tls.as_ref());
        let other_end = OtherEnd {
            is_local: connecting.is_local,
            is_trusted: pool.negotiation.trusts(&channel),
            shows_acceptance: connecting.is_local && pool.shares_address(),
            ends,
        };
        let begun = (request_id, now_ms + settings.connect_timeout_ms);
        let (application, codec) = (Arc::clone(&pool.application), Codec::new(settings));
        let connection = Connection::new(application, channel, codec, (index, lane), other_end, begun);
        let id = self.connections.add(Box::new(connection), connecting.under_way)?;
        pool.opened(id, connecting.is_local, now_ms);
        self.pools.note_due(index, now_ms);
        Ok(id)
    }

    /// Sends a request on its new connection, now or when that is connected.
    fn begin_connecting(&mut self, id: ConnectionId, request_id: RequestId, now_ms: u64) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let is_connected = !connection.watches_room;
        if is_connected && connection.channel.is_established() {
            return self.send_request(id, request_id, now_ms);
        }
        let Some(exchange) = self.exchanges.get_mut(request_id) else { return };
        exchange.state = ExchangeState::Assigned(id);
        if is_connected {
            self.secure(id, request_id, now_ms);
        }
    }

    /// Sends a request on a connection.
    pub(super) fn send_request(&mut self, id: ConnectionId, request_id: RequestId, now_ms: u64) {
        let region = self.connections.get_mut(id).and_then(Connection::region);
        if region.is_some_and(SharedRegion::is_crowded) {
            self.make_room(id, request_id);
        }
        let Some(exchange) = self.exchanges.get_mut(request_id) else { return };
        let Some(request) = &exchange.request else { return };
        let Some(connection) = self.connections.get_mut(id) else { return };
        let Some(pool) = self.pools.get_mut(connection.pool) else { return };
        let offered = pool.negotiation.offered(request, connection.other_end.is_trusted, now_ms);
        if let Some(leases) = &pool.leases {
            leases.count(connection.lane);
        }
        exchange.state = ExchangeState::Assigned(id);
        let patience_ms = pool.patience_ms();
        let memory = (&mut self.block, std::mem::take(&mut exchange.memory));
        let begun = connection.begin(request_id, request, offered, patience_ms, memory);
        if let Err(why) = begun {
            self.fail(request_id, why, false);
            self.close(id);
            return;
        }
        exchange.trail.note_sent(now_ms);
        self.connections.update(id, |connection| connection.start_deadlines(offered, now_ms));
        if !self.connections.write(id) {
            return self.read(id, now_ms);
        }
        self.ask_for_body(id);
    }

    /// Frees a connection's region for the current request by moving out what is on loan to other slow clients: bytes in
    /// spools go to their files, bytes being sent go into memory.
    pub(super) fn make_room(&mut self, id: ConnectionId, request_id: RequestId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let Some(pool) = self.pools.get(connection.pool) else { return };
        let Some(region) = connection.region() else { return };
        for borrower in region.others(request_id) {
            if let Some(exchange) = self.exchanges.get_mut(borrower)
                && !exchange.response.is_slow()
            {
                exchange.response.mark_slow(&pool.application.settings().temporary);
            }
        }
        region.move_out_others(request_id);
    }

    /// A connection has served its request.
    pub(super) fn release(&mut self, id: ConnectionId, reusable: bool, now_ms: u64) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let index = connection.pool;
        let idle_ms = connection.idle_ms();
        let idle_ms = idle_ms.map_or(u64::MAX, |idle_ms| idle_ms.saturating_sub(MARGIN_MS).max(idle_ms / 2));
        let Some(pool) = self.pools.get_mut(index) else { return };
        pool.note_answer(now_ms);
        let keeps_any = pool.application.settings().idle_max > 0;
        let reusable = reusable && keeps_any && !pool.is_wanted_elsewhere(connection.lane);
        let settings = pool.application.settings();
        // The other side would close it while a request is on its way.
        let kept_ms = settings.idle_timeout_ms.min(idle_ms);
        let kept_ms = if pool.idle() >= settings.idle_max { kept_ms.min(SURPLUS_MS) } else { kept_ms };
        let idle_until_ms = now_ms.saturating_add(kept_ms);
        self.connections.update(id, |connection| connection.rest(idle_until_ms));
        let connections = &mut self.connections;
        if !reusable || pool.has_starving(|id| is_unaccepted(connections, id)) {
            self.close(id);
            if self.pools.get(index).is_some_and(Pool::is_wanted_by_others) {
                // Closing has woken the other loops. They will wake this one in turn.
                return;
            }
            return self.advance_queue(index, now_ms);
        }
        pool.keep(id);
        if pool.waiting() > 0 {
            // Send the answer first, while it is in the CPU's caches. That also frees its part of the region, which the
            // next request would otherwise have to free by copying.
            self.pools.note_released(index);
        } else {
            self.pools.note_due(index, now_ms);
        }
    }

    /// Closes idle connections so that processes accept those that starve in the application's backlog, and tells other
    /// loops if this one has too few idle ones.
    pub(super) fn feed_starving(&mut self, index: usize, now_ms: u64) {
        let connections = &mut self.connections;
        while let Some(pool) = self.pools.get_mut(index)
            && pool.idle() > 0
            && pool.has_starving(|id| is_unaccepted(connections, id))
            && let Some(oldest) = pool.give_up_oldest_idle()
        {
            if let Some(connection) = connections.remove(oldest) {
                if connection.is_counted() {
                    pool.note_process_left();
                }
                pool.closed(oldest, connection.lane, connection.release);
            }
        }
        if let Some(pool) = self.pools.get_mut(index) {
            pool.tell_of_starving(now_ms, |id| is_unaccepted(connections, id));
        }
    }

    /// Closes a connection.
    pub(super) fn close(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.remove(id) else { return };
        if let Some(pool) = self.pools.get_mut(connection.pool) {
            if connection.is_counted() {
                pool.note_process_left();
            }
            if !connection.counts_as_tunnel {
                pool.closed(id, connection.lane, connection.release);
            }
        }
    }

    /// The application has closed a connection without answering. If it cannot have begun with the request, the gateway
    /// sends the request again on a new connection. If it may have begun, only an idempotent request is sent again, once.
    pub(super) fn retry_or_fail(
        &mut self,
        id: ConnectionId,
        request_id: RequestId,
        why: FailureReason,
        now_ms: u64,
    ) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let Some(exchange) = self.exchanges.get_mut(request_id) else { return };
        let is_possible = connection.was_used() && !exchange.is_partly_gone;
        let is_idempotent = exchange.request.as_ref().is_some_and(|request| request.idempotent);
        let is_harmless =
            why == FailureReason::Overloaded || (is_idempotent && connection.client_is_untouched());
        if !is_possible || !exchange.attempts.take_repeat(connection.is_unseen(), is_harmless) {
            if !self.send_elsewhere(id, request_id, why, now_ms) {
                self.fail_on_connection(id, request_id, why, now_ms);
            }
            return;
        }
        let index = connection.pool;
        if !self.pools.get_mut(index).is_some_and(Pool::may_retry) {
            return self.fail_on_connection(id, request_id, why, now_ms);
        }
        self.close(id);
        let Some(pool) = self.pools.get_mut(index) else { return };
        pool.tally.retries += 1;
        if !pool.may_open(now_ms)
            && let Some(oldest) = pool.give_up_oldest_idle()
        {
            self.close(oldest);
        }
        let fresh = self.pools.get_mut(index).and_then(|pool| pool.take_lane(now_ms));
        self.assign(request_id, index, fresh.map_or(Acquired::Nothing, Acquired::Open), now_ms);
    }

    /// A request cannot be connected to the application. If its host has other addresses, they are tried, each once.
    pub(super) fn connect_elsewhere_or_fail(
        &mut self,
        id: ConnectionId,
        request_id: RequestId,
        why: FailureReason,
        now_ms: u64,
    ) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let (index, lane) = (connection.pool, connection.lane);
        let Some(pool) = self.pools.get_mut(index) else { return };
        let Some(exchange) = self.exchanges.get_mut(request_id) else { return };
        let address = pool.address(lane);
        exchange.trail.note_try();
        let has_others = exchange.attempts.take_address(address.choices());
        self.close(id);
        let lane = self.pools.get_mut(index).filter(|_| has_others).and_then(|pool| pool.take_lane(now_ms));
        if let Some(lane) = lane {
            return self.assign(request_id, index, Acquired::Open(lane), now_ms);
        }
        address.note_unreachable();
        self.try_next_peer_or_fail(request_id, why, now_ms);
        self.advance_queue(index, now_ms);
    }

    /// Fails a request and closes its connection.
    pub(super) fn fail_on_connection(
        &mut self,
        id: ConnectionId,
        request_id: RequestId,
        why: FailureReason,
        now_ms: u64,
    ) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let index = connection.pool;
        if why == FailureReason::TimedOut {
            connection.release = connection.release.map(|_| Release::Overdue);
        }
        let mut client_lost = false;
        let was_ended = matches!(connection.phase(), Phase::Ending { .. }) && connection.has_hung_up();
        let is_gone = why == FailureReason::Ended || was_ended;
        if let Some(handed) = connection.passed() {
            // An application that still runs may be about to write.
            client_lost = !is_gone || !handed.is_untouched();
            if client_lost {
                handed.cut();
            } else if let Some(exchange) = self.exchanges.get_mut(request_id) {
                exchange.response.note_must_end();
            }
        }
        self.close(id);
        if let Some(turn) = self.exchanges.get_mut(request_id).and_then(|exchange| exchange.turn.as_mut()) {
            self.peer_events.push(turn.note_failure(why, now_ms));
        }
        self.fail(request_id, why, client_lost);
        self.advance_queue(index, now_ms);
    }

    /// A request fails.
    pub(super) fn fail(&mut self, request_id: RequestId, why: FailureReason, client_lost: bool) {
        let Some(exchange) = self.exchanges.get_mut(request_id) else { return };
        exchange.response.fail(why, client_lost);
        if let Some(pool) = self.pools.get_mut(exchange.pool) {
            pool.tally.note_failure(why);
            if exchange.at_origin.is_some() {
                pool.application.settings().record.note_failure(why.label());
            }
        }
        self.exchanges.finish(request_id);
    }
}

/// Whether this connection exists and the application may not have accepted it yet.
pub(super) fn is_unaccepted(connections: &mut Connections, id: ConnectionId) -> bool {
    connections.get_mut(id).is_some_and(Connection::is_unaccepted)
}

/// How much earlier than the other side an idle connection is closed: time for a request to get there.
const MARGIN_MS: u64 = 1_000;

/// How long a connection beyond the bound of idle ones is kept. A busy loop answers its clients round by round: all connections
/// are idle at the end of a round, and all are wanted in the next one.
const SURPLUS_MS: u64 = 100;

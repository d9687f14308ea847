//! The applications of one event loop.
//!
//! The gateway ties pools, connections and exchanges, each of which keeps its own. What takes several of them is in a file of its
//! own: `assignment` (requests to connections), `connection_events`, `peer_choice`, `request_body`, `tunnel`, `checking`, `waiting`
//! (for the cluster), `waker` (processes of an application), `invariants`.

mod assignment;
mod checking;
mod connection_events;
mod invariants;
mod peer_choice;
mod request_body;
mod tunnel;
mod waiting;
mod waker;

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::epoll::EventFlags;
use serde_json::Value;

use crate::chosen::Chosen;
use crate::cluster_queue::Waiting;
use crate::connection::Connection;
use crate::connections::{ConnectionId, Connections};
use crate::exchange::{Exchange, ExchangeState};
use crate::exchanges::Exchanges;
use crate::input::Input;
use crate::loop_checks::Checks;
use crate::origins::AtOrigin;
use crate::peers::{Begun, PeerEventQueue, Turn};
use crate::pool::Pool;
use crate::pools::Pools;
use crate::relay_meter::RelayMeter;
use crate::{FailureReason, PeerEvent, Protocol, Request, RequestId, ResponseEvent, ResponseEvents, report};

pub use tunnel::{TunnelEnd, UNSENT_BYTES_MAX};

/// The connections of one event loop to applications, and the requests on them; see the [crate].
///
/// The caller chooses the [`RequestId`]s, but for those whose lower 32 bits are all set: the gateway's own requests, by which
/// it checks origins, have these.
#[derive(Debug)]
pub struct Gateway {
    epoll: Arc<OwnedFd>,
    pools: Pools,
    connections: Connections,
    exchanges: Exchanges,
    input: Input,
    /// Scratch memory for blocks of parameters.
    block: Vec<u8>,
    checks: Checks,
    peer_events: PeerEventQueue,
    /// Requests that no node of the cluster can take now.
    waiting: Waiting,
    meter: RelayMeter,
}

impl Gateway {
    /// Watches its sockets with the loop's `epoll`, edge-triggered, with event data that [`owns`](Self::owns) recognizes.
    pub fn new(epoll: OwnedFd) -> Self {
        let epoll = Arc::new(epoll);
        Self {
            connections: Connections::new(Arc::clone(&epoll)),
            epoll,
            pools: Pools::default(),
            exchanges: Exchanges::default(),
            input: Input::new(),
            block: Vec::new(),
            checks: Checks::default(),
            peer_events: PeerEventQueue::default(),
            waiting: Waiting::default(),
            meter: RelayMeter::default(),
        }
    }

    /// Replaces the kernel's clock (in microseconds) for pools created from now on. Simulations use this.
    #[must_use]
    pub fn with_precise_clock(self, precise_us: fn() -> u64) -> Self {
        Self { pools: self.pools.with_precise_clock(precise_us), ..self }
    }

    /// Whether an event with this data is for [`handle_event`](Self::handle_event): 2^31 to 2^32.
    pub fn owns(data: u64) -> bool {
        ConnectionId::DATA.contains(&data)
    }

    /// Begins a request. It is sent at once on an idle or new connection if the pool has one, and queued otherwise.
    pub fn begin(&mut self, request_id: RequestId, mut request: Request, now_ms: u64) {
        let begun = match (request.turn.take(), request.peers.take()) {
            (Some(turn), _) => Some(Begun::Turn(turn)),
            (None, Some(sought)) if self.waiting.is_wanted(sought.peers()) => Some(Begun::Wait(sought)),
            (None, Some(sought)) => Some(Turn::begin(sought, now_ms)),
            (None, None) => None,
        };
        let turn = match begun {
            Some(Begun::Turn(turn)) => Some(turn),
            Some(Begun::Wait(sought)) => {
                let pool = self.pool_of(&request.application);
                let memory = self.exchanges.spare_memory();
                self.exchanges.insert(request_id, Exchange::new(request, pool, memory, now_ms));
                return self.wait_for_cluster(request_id, sought, now_ms);
            }
            Some(Begun::Nowhere) | None => None,
        };
        self.begin_at(request_id, request, turn, now_ms);
    }

    /// A request that has waited for the cluster goes to its node.
    fn go_to_node(&mut self, request_id: RequestId, turn: Turn, now_ms: u64) {
        let Some(exchange) = self.exchanges.remove(request_id) else { return };
        let begun_ms = exchange.trail;
        let Some(request) = exchange.request else { return };
        self.begin_at(request_id, request, Some(turn), now_ms);
        // The wait is a part of what the log has.
        if let Some(exchange) = self.exchanges.get_mut(request_id) {
            exchange.trail.begin_at(begun_ms);
        }
        self.exchanges.announce(request_id);
    }

    /// Begins a request, whose peer is chosen if there are several.
    fn begin_at(&mut self, request_id: RequestId, mut request: Request, turn: Option<Turn>, now_ms: u64) {
        if let Some(turn) = &turn {
            request.application = Arc::clone(turn.application());
        }
        let turn = match turn {
            Some(turn) if turn.leads_elsewhere() => {
                return self.leave_to_session(request_id, Box::new(Chosen::new(request, turn)), now_ms);
            }
            turn => turn,
        };
        let settings = request.application.settings();
        let is_counted = settings.protocol == Protocol::Http1 && !Self::is_check(request_id);
        let at_origin = is_counted.then(|| AtOrigin::begin(&settings.record, now_ms));
        let is_drained = is_counted && turn.is_none() && settings.record.is_drained();
        let pool = self.pool_of(&request.application);
        let memory = self.exchanges.spare_memory();
        let mut exchange = Exchange { at_origin, ..Exchange::new(request, pool, memory, now_ms) };
        turn.iter().for_each(|turn| self.meter.note_begun(turn));
        exchange.turn = turn;
        exchange.note_relayed();
        self.exchanges.insert(request_id, exchange);
        if is_drained {
            self.fail(request_id, FailureReason::Drained, false);
        } else {
            self.assign_or_queue(request_id, pool, now_ms);
        }
    }

    /// A request gets to its node by another way.
    fn leave_to_session(&mut self, request_id: RequestId, chosen: Box<Chosen>, now_ms: u64) {
        let pool = self.pool_of(chosen.application());
        let memory = self.exchanges.spare_memory();
        let mut exchange = Exchange::answered(chosen.application(), None, pool, memory, now_ms);
        exchange.response.handle_chosen(chosen);
        self.exchanges.insert(request_id, exchange);
        self.exchanges.announce(request_id);
    }

    /// Begins a turn of the loop for this gateway. True: the loop is to time it, and to [say](Self::note_turn_took) how long it
    /// took, so that the cost of relaying to a cluster is known.
    pub fn begin_turn(&mut self) -> bool {
        self.meter.begin_turn()
    }

    /// The turn, with all that clients got in it, has taken so many nanoseconds.
    pub fn note_turn_took(&mut self, ns: u64) {
        self.meter.note_turn_took(ns);
    }

    /// Takes note of an event of a connection.
    pub fn handle_event(&mut self, data: u64, flags: EventFlags, now_ms: u64) {
        let hung_up = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        let readable = hung_up || flags.contains(EventFlags::IN);
        let writable = hung_up || flags.contains(EventFlags::OUT);
        let id = ConnectionId::from_data(data);
        match id.pool_of_waker() {
            Some(pool) => self.handle_wakeup(pool, now_ms),
            None => self.handle_ready(id, readable, writable, hung_up, now_ms),
        }
    }

    /// Handles deadlines and reads requeued connections. Call it once per round, after taking all responses' events. It
    /// costs nothing if nothing is due.
    pub fn handle_time(&mut self, now_ms: u64) {
        for _ in 0..self.connections.requeued() {
            if let Some(id) = self.connections.next_requeued() {
                self.read(id, now_ms);
                self.ask_for_body(id);
            }
        }
        self.serve_released(now_ms);
        if now_ms >= self.connections.due_ms().min(self.pools.due_ms()) {
            self.handle_overdue(now_ms);
        }
        self.handle_checks(now_ms);
    }

    /// Assigns released connections to waiting requests. Call it after taking the responses' events;
    /// [`handle_time`](Self::handle_time) does it, too.
    pub fn serve_released(&mut self, now_ms: u64) {
        while let Some(index) = self.pools.take_released() {
            self.advance_queue(index, now_ms);
        }
        self.advance_waiting(now_ms);
    }

    /// When to call [`handle_time`](Self::handle_time) next; it may be in the past.
    pub fn deadline_ms(&self) -> Option<u64> {
        if self.connections.requeued() > 0 {
            return Some(0);
        }
        let of_sockets = self.connections.due_ms().min(self.pools.due_ms());
        let due_ms = of_sockets.min(self.checks.due_ms()).min(self.waiting.due_ms());
        (due_ms != u64::MAX).then_some(due_ms)
    }

    /// The next request with events to take, each once until something changes again.
    pub fn poll_ready(&mut self) -> Option<RequestId> {
        std::iter::from_fn(|| self.exchanges.poll_announced()).find(|request_id| !Self::is_check(*request_id))
    }

    /// What the operator should know of origins.
    pub fn poll_event(&mut self) -> Option<PeerEvent> {
        self.peer_events.poll()
    }

    /// Takes the next piece of an answer, if there is one now. After the last one the request is forgotten.
    ///
    /// One piece of a body is at most as large as the memory bound of its spool. The rest comes after
    /// [`note_sent`](Self::note_sent).
    pub fn take(&mut self, request_id: RequestId) -> Option<ResponseEvent> {
        let event = self.exchanges.get_mut(request_id)?.response.take()?;
        self.note_taken(request_id, &event);
        Some(event)
    }

    /// Takes the pieces of an answer that are there now, up to its last one or a switch of protocols. Between two of them
    /// nothing was sent, so they hold at most one piece of a body.
    pub fn take_all(&mut self, request_id: RequestId) -> ResponseEvents {
        let mut events = ResponseEvents::new();
        let Some(exchange) = self.exchanges.get_mut(request_id) else { return events };
        while let Some(event) = exchange.response.take() {
            let is_boundary = event.is_last() || matches!(event, ResponseEvent::Switch(_));
            events.push(event);
            if is_boundary {
                break;
            }
        }
        if let Some(event) = events.last() {
            self.note_taken(request_id, event);
        }
        events
    }

    /// The caller has taken this piece.
    fn note_taken(&mut self, request_id: RequestId, event: &ResponseEvent) {
        match event {
            ResponseEvent::Switch(_) => self.open_tunnel(request_id),
            _ if event.is_last() => _ = self.exchanges.remove(request_id),
            _ => {}
        }
    }

    /// The session has handed everything it took to the kernel and dropped the pieces: there is room for more.
    pub fn note_sent(&mut self, request_id: RequestId, now_ms: u64) {
        let Some(exchange) = self.exchanges.get_mut(request_id) else { return };
        exchange.response.note_sent();
        let state = exchange.state;
        self.exchanges.announce(request_id);
        if let ExchangeState::Assigned(id) = state {
            self.handle_room(id, now_ms);
        }
    }

    /// Has nothing of an origin's response wait in a file from now on: its reader sets the pace, and may not want the rest.
    pub fn hold_in_memory(&mut self, request_id: RequestId) {
        let Some(exchange) = self.exchanges.get_mut(request_id) else { return };
        if self.pools.get(exchange.pool).is_some_and(Pool::is_origin) {
            exchange.response.hold_in_memory();
        }
    }

    /// Whether the application cannot have answered a running request by itself: it does not have the client's socket, or
    /// has written nothing to it. If the client is gone then, the request can be [abandoned](Self::abandon). Otherwise the
    /// application notices by itself and reports what it has sent.
    pub fn is_unanswered(&mut self, request_id: RequestId) -> bool {
        match self.exchanges.get(request_id).map(|exchange| exchange.state) {
            Some(ExchangeState::Queued) => true,
            Some(ExchangeState::Assigned(id)) => self.connections.get_mut(id).is_some_and(|connection| {
                // The halves of a tunnel end on their own.
                !connection.is_tunnel() && connection.passed().is_none_or(|handed| handed.is_untouched())
            }),
            Some(ExchangeState::Finished) | None => false,
        }
    }

    /// How far a request to an origin has come that is about to be abandoned. `None`: it is known already, or no origin's.
    pub fn trail(&self, request_id: RequestId) -> Option<ResponseEvent> {
        let exchange = self.exchanges.get(request_id)?;
        let application = &exchange.request.as_ref()?.application;
        let is_origin = application.settings().protocol == Protocol::Http1;
        is_origin.then(|| ResponseEvent::Trail(Arc::clone(application), exchange.trail.told()))
    }

    /// Whether a request has become a tunnel.
    pub fn is_tunnel(&mut self, request_id: RequestId) -> bool {
        let state = self.exchanges.get(request_id).map(|exchange| exchange.state);
        let Some(ExchangeState::Assigned(id)) = state else { return false };
        self.connections.get_mut(id).is_some_and(|connection| connection.is_tunnel())
    }

    /// Cancels a request: closes its connection, which tells the application, and resets the client's socket if the
    /// application has it. Does nothing for an unknown or answered request.
    pub fn abandon(&mut self, request_id: RequestId, now_ms: u64) {
        let Some(exchange) = self.exchanges.remove(request_id) else { return };
        if exchange.state == ExchangeState::Finished {
            return;
        }
        if let Some(pool) = self.pools.get_mut(exchange.pool) {
            pool.tally.abandoned += 1;
            pool.leave(request_id);
        }
        self.waiting.leave(request_id);
        if let ExchangeState::Assigned(id) = exchange.state {
            let connection = self.connections.get_mut(id);
            let is_tunnel = connection.is_some_and(|connection| {
                if let Some(handed) = connection.passed() {
                    handed.cut();
                }
                connection.is_tunnel()
            });
            if is_tunnel {
                self.connections.unwatch(id);
            }
            self.close(id);
            self.advance_queue(exchange.pool, now_ms);
        }
    }

    /// Whether an origin is asked over more than half of the connections that it may have: the others are for what clients
    /// wait for.
    pub fn is_half_busy(&self) -> bool {
        self.pools.iter().any(|pool| pool.is_origin() && pool.is_half_busy())
    }

    /// Asks the applications to give back the clients' sockets they have, and makes no more checks.
    pub fn drain(&mut self) {
        self.checks.watched.clear();
        for id in self.connections.iter().map(|(id, _)| id).collect::<Vec<_>>() {
            if self.connections.get_mut(id).is_some_and(Connection::release) {
                self.connections.write(id);
            }
        }
    }

    /// The state of all pools, for the status page.
    pub fn report(&self) -> Value {
        self.pools.iter().map(report::pool).collect()
    }

    /// Checks every deadline of connections and of queues.
    fn handle_overdue(&mut self, now_ms: u64) {
        for id in self.connections.overdue(now_ms) {
            self.handle_timeout(id, now_ms);
        }
        for index in self.pools.indices() {
            while let Some(request_id) = self.pools.get_mut(index).and_then(|pool| pool.next_overdue(now_ms))
            {
                self.fail_in_queue(request_id);
            }
            self.advance_queue(index, now_ms);
            self.feed_starving(index, now_ms);
            self.retire(index);
        }
        self.connections.settle_due();
        self.pools.settle_due(now_ms);
    }

    fn fail_in_queue(&mut self, request_id: RequestId) {
        let Some(exchange) = self.exchanges.get(request_id) else { return };
        let why = match exchange.attempts.connecting_until_ms() {
            Some(_) => FailureReason::NoConnection(rustix::io::Errno::AGAIN),
            None => FailureReason::QueueTimeout,
        };
        self.fail(request_id, why, false);
    }
}

#[cfg(test)]
mod tests;

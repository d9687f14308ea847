//! What comes and goes on connections, and what is late.

use baton_process_table::Release;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use crate::assignment::INPUT;
use crate::connection::{Connection, ConnectionState, ReadOutcome};
use crate::connections::ConnectionId;
use crate::gateway::Gateway;
use crate::passfd::{HandedOver, LOOKS};
use crate::{RequestId, Why, socket};

impl Gateway {
    /// A connection can be read or written, or has ended.
    pub(crate) fn handle_ready(
        &mut self,
        id: ConnectionId,
        readable: bool,
        writable: bool,
        hung_up: bool,
        now_ms: u64,
    ) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        match connection.state {
            ConnectionState::Connecting { request_id } => {
                if writable {
                    self.handle_connected(id, request_id, now_ms);
                }
            }
            ConnectionState::Serving { .. } => {
                connection.handle_ready(readable, hung_up);
                if writable && connection.has_to_write() {
                    self.write(id);
                }
                self.read(id, now_ms);
                self.ask_for_body(id);
            }
            // Nothing was asked: the application has closed it, or does not know what it does; unless the event is of
            // what was read already, in a turn of its own.
            ConnectionState::Idle => {
                if hung_up || connection.has_input() {
                    connection.release = Some(Release::Unsure);
                    self.close(id);
                }
            }
            // What it says now comes too late.
            ConnectionState::Ending { request_id } => {
                connection.handle_ready(readable, hung_up);
                if hung_up {
                    self.fail_on_connection(id, request_id, Why::TimedOut, now_ms);
                }
            }
        }
    }

    /// The client of a connection's request has taken what there was.
    pub(crate) fn handle_room(&mut self, id: ConnectionId, now_ms: u64) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if connection.grace_until_ms != u64::MAX {
            connection.grace_until_ms = u64::MAX;
            self.extend_deadline(id, now_ms);
        }
        let Some(connection) = self.connections.get_mut(id) else { return };
        let ConnectionState::Serving { request_id } = connection.state else { return };
        if connection.is_readable() {
            self.requeue(id);
        }
        self.serve_region(id, request_id, now_ms);
    }

    /// Writes what a connection takes. If it is gone, there may still be something to be read: `false`.
    pub(crate) fn write(&mut self, id: ConnectionId) -> bool {
        let Some(connection) = self.connections.get_mut(id) else { return true };
        let Ok(done) = connection.write() else {
            connection.handle_broken_pipe();
            return false;
        };
        if done == connection.watches_room {
            // Watched only as long as there is something to write: the kernel announces room whenever the other side
            // has read something.
            connection.watches_room = !done;
            let flags = if done { INPUT } else { INPUT | EventFlags::OUT };
            let data = EventData::new_u64(id.to_data());
            if epoll::modify(&self.epoll, &connection.socket, data, flags).is_err() {
                connection.handle_broken_pipe();
                return false;
            }
        }
        true
    }

    /// Reads an answer as far as it goes.
    pub(crate) fn read(&mut self, id: ConnectionId, now_ms: u64) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let ConnectionState::Serving { request_id } = connection.state else { return };
        let Some(exchange) = self.exchanges.get_mut(&request_id) else { return };
        let Some(request) = &exchange.request else { return };
        let outcome = connection.read(
            &mut self.input,
            &mut exchange.response,
            &request.application.settings().temporary,
        );
        if connection.is_accepted
            && !std::mem::replace(&mut connection.is_counted, true)
            && let Some(pool) = &mut self.pools[connection.pool]
        {
            pool.note_process(now_ms);
        }
        match outcome {
            ReadOutcome::Wait => {
                self.extend_deadline(id, now_ms);
                self.serve_region(id, request_id, now_ms);
            }
            ReadOutcome::Yield => {
                self.requeue(id);
                self.extend_deadline(id, now_ms);
            }
            ReadOutcome::Full { grace: true } => {
                self.extend_deadline(id, now_ms);
                self.give_grace(id, now_ms);
            }
            // The client decides.
            ReadOutcome::Full { grace: false } => connection.deadline_ms = u64::MAX,
            ReadOutcome::Done { reusable } => {
                if let Some(pool) = &mut self.pools[connection.pool] {
                    pool.negotiation.note_answer(connection.offered, connection.took_offer_up, now_ms);
                }
                self.finish(request_id);
                return self.release(id, reusable, now_ms);
            }
            ReadOutcome::Refused => return self.retry_or_fail(id, request_id, Why::Overloaded, now_ms),
            ReadOutcome::EndedSilently => return self.retry_or_fail(id, request_id, Why::Ended, now_ms),
            ReadOutcome::Failed(why) => return self.fail_on_connection(id, request_id, why, now_ms),
        }
        self.announce(request_id);
    }

    /// A connection has had the time it was given.
    pub(crate) fn handle_timeout(&mut self, id: ConnectionId, now_ms: u64) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let index = connection.pool;
        match connection.state {
            ConnectionState::Idle => {
                self.close(id);
                self.retire(index);
            }
            ConnectionState::Connecting { request_id } => {
                self.close(id);
                self.fail(request_id, Why::NoConnection(Errno::TIMEDOUT), false);
                self.advance_queue(index, now_ms);
            }
            ConnectionState::Serving { request_id } if connection.grace_until_ms <= now_ms => {
                self.handle_grace_over(id, request_id, now_ms);
            }
            ConnectionState::Serving { request_id } => {
                let stuck = connection.handed_over().is_none_or(HandedOver::is_stuck);
                if !stuck {
                    self.extend_deadline(id, now_ms);
                } else if !self.end_process(id, request_id, now_ms) {
                    self.fail_on_connection(id, request_id, Why::TimedOut, now_ms);
                }
            }
            ConnectionState::Ending { request_id } => {
                self.fail_on_connection(id, request_id, Why::TimedOut, now_ms);
            }
        }
    }

    /// The client of a request that has had its time can still be told, unless the application has begun to answer it: when
    /// the process that has its socket has ended. False: it has begun, or cannot be ended.
    fn end_process(&mut self, id: ConnectionId, request_id: RequestId, now_ms: u64) -> bool {
        let Some(connection) = self.connections.get_mut(id) else { return false };
        let (index, lane) = (connection.pool, connection.lane);
        if !connection.handed_over().is_some_and(|handed| handed.is_untouched()) {
            return false;
        }
        let Some(pool) = &mut self.pools[index] else { return false };
        if !pool.end_process(lane) {
            return false;
        }
        (connection.state, connection.release) = (ConnectionState::Ending { request_id }, None);
        self.set_deadline(id, now_ms + END_MS);
        self.advance_queue(index, now_ms);
        true
    }

    fn handle_connected(&mut self, id: ConnectionId, request_id: RequestId, now_ms: u64) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let index = connection.pool;
        match socket::finish_connecting(&connection.socket) {
            Ok(()) => self.send_request(id, request_id, now_ms),
            Err(error) => {
                self.close(id);
                self.fail(request_id, Why::NoConnection(error), false);
                self.advance_queue(index, now_ms);
            }
        }
    }

    /// The client has not taken anything in its moment: what it leaves is put aside, so that the application can go on.
    fn handle_grace_over(&mut self, id: ConnectionId, request_id: RequestId, now_ms: u64) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let Some(exchange) = self.exchanges.get_mut(&request_id) else { return };
        let Some(request) = &exchange.request else { return };
        connection.grace_until_ms = u64::MAX;
        exchange.response.mark_slow(&request.application.settings().temporary);
        self.make_room(id, request_id);
        if let Some(region) = self.connections.get_mut(id).and_then(Connection::region) {
            region.move_out();
        }
        self.extend_deadline(id, now_ms);
        self.tell_free(id);
        self.read(id, now_ms);
    }

    fn tell_free(&mut self, id: ConnectionId) {
        if self.connections.get_mut(id).is_some_and(Connection::tell_free) {
            self.write(id);
        }
    }

    /// Tells the application what it may write again. If it has to wait all the same, it does so for a moment only, and
    /// not at all for the clients of others.
    fn serve_region(&mut self, id: ConnectionId, request_id: RequestId, now_ms: u64) {
        self.tell_free(id);
        let waits = |gateway: &mut Self| {
            gateway.connections.get_mut(id).is_some_and(|connection| connection.waits_for_region())
        };
        if waits(self) {
            self.make_room(id, request_id);
            self.tell_free(id);
            if waits(self) {
                self.give_grace(id, now_ms);
            }
        }
    }

    fn give_grace(&mut self, id: ConnectionId, now_ms: u64) {
        if let Some(connection) = self.connections.get_mut(id) {
            connection.grace_until_ms = connection.grace_until_ms.min(now_ms + CLIENT_GRACE_MS);
            let due_ms = connection.grace_until_ms;
            self.note_due(due_ms);
        }
    }

    /// Has a connection read without an event.
    pub(crate) fn requeue(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(id)
            && !std::mem::replace(&mut connection.is_requeued, true)
        {
            self.requeued.push_back(id);
        }
    }

    /// Something has happened: the application has all of its time again, unless it is the client's turn.
    pub(crate) fn extend_deadline(&mut self, id: ConnectionId, now_ms: u64) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let Some(pool) = &self.pools[connection.pool] else { return };
        let looks = if connection.handed_over().is_some() { u64::from(LOOKS) } else { 1 };
        connection.deadline_ms = match connection.awaits_client() {
            true => u64::MAX,
            false => now_ms + pool.application.settings().timeout_ms.div_ceil(looks),
        };
        let due_ms = connection.deadline_ms;
        self.note_due(due_ms);
    }
}

/// How long a client may take to take something when all memory for its response is used. A client that keeps up does
/// so within the same round of the loop; for one that does not, the application should not wait.
const CLIENT_GRACE_MS: u64 = 20;

/// How long a process may take to end before its client is cut off instead of told: few handle the signal at all.
const END_MS: u64 = 1_000;

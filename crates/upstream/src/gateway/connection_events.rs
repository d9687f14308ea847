//! Events of connections: readable, writable, closed, timed out.

use baton_http::origin::RequestKind;
use baton_process_table::Release;
use rustix::io::Errno;

use super::Gateway;
use crate::channel::Established;
use crate::connection::{Connection, Phase, ReadOutcome, Serving};
use crate::connections::ConnectionId;
use crate::passfd::PassedSocket;
use crate::shm::SharedRegion;
use crate::{FailureReason, RequestId, socket};

impl Gateway {
    /// A connection can be read or written, or has ended.
    pub(super) fn handle_ready(
        &mut self,
        id: ConnectionId,
        readable: bool,
        writable: bool,
        hung_up: bool,
        now_ms: u64,
    ) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        match *connection.phase() {
            Phase::Connecting { request_id, .. } => {
                if writable {
                    self.handle_connected(id, request_id, now_ms);
                }
            }
            Phase::Securing { request_id, .. } => self.secure(id, request_id, now_ms),
            Phase::Serving(_) => {
                connection.handle_ready(readable, hung_up);
                if writable && connection.has_to_write() {
                    self.connections.write(id);
                }
                self.read(id, now_ms);
                self.ask_for_body(id);
                self.end_tunnel_if_over(id, now_ms);
            }
            // No request is under way: the application has closed the connection or sends what was not asked for, unless
            // the event announces bytes that a requeued read has consumed already.
            Phase::Idle { .. } => {
                if hung_up || connection.has_input() {
                    connection.release = Some(Release::Unsure);
                    self.close(id);
                }
            }
            // Too late for an answer: only the end of the process counts.
            Phase::Ending { request_id, .. } => {
                connection.handle_ready(readable, hung_up);
                if hung_up {
                    self.fail_on_connection(id, request_id, FailureReason::TimedOut, now_ms);
                }
            }
        }
    }

    /// The client has taken everything: resume reading from the application.
    pub(super) fn handle_room(&mut self, id: ConnectionId, now_ms: u64) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let Some(&Serving { request_id, .. }) = connection.serving() else { return };
        let (is_readable, had_grace) = (connection.is_readable(), connection.end_grace());
        if is_readable {
            self.connections.requeue(id);
        }
        if had_grace {
            self.connections.extend_deadline(id, now_ms);
        }
        self.serve_region(id, request_id, now_ms);
    }

    /// Reads an answer as far as it has come.
    pub(super) fn read(&mut self, id: ConnectionId, now_ms: u64) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let Some(&Serving { request_id, .. }) = connection.serving() else { return };
        let Some(exchange) = self.exchanges.get_mut(request_id) else { return };
        let Some(request) = &exchange.request else { return };
        let (had_head, bytes_before) = (exchange.response.has_head(), exchange.response.body_bytes());
        let outcome = connection.read(
            &mut self.input,
            &mut exchange.response,
            &request.application.settings().temporary,
        );
        if connection.take_acceptance()
            && let Some(pool) = self.pools.get_mut(connection.pool)
        {
            pool.note_process(now_ms);
        }
        if exchange.response.has_head() {
            connection.end_head_deadline();
            exchange.trail.note_head(now_ms);
            if let Some(at_origin) = &mut exchange.at_origin {
                at_origin.note_head(now_ms);
            }
            if exchange.turn.is_some() {
                exchange.response.handle_answering(&request.application);
            }
            if let (Some(turn), Some(status)) = (&mut exchange.turn, exchange.response.status()) {
                self.peer_events.push(turn.note_status(status, now_ms));
            }
        }
        if let Some(turn) = &mut exchange.turn {
            let (begins, bytes) = (exchange.response.has_head() && !had_head, exchange.response.body_bytes());
            self.meter.note_answer(turn, begins, bytes - bytes_before);
            let is_whole = matches!(outcome, ReadOutcome::Done { .. }) && request.asked == RequestKind::Usual;
            // Answers to conditions and errors say nothing of the target.
            if is_whole && exchange.response.status() == Some(200) {
                turn.note_size(bytes);
            }
        }
        match outcome {
            ReadOutcome::Wait => {
                self.connections.extend_deadline(id, now_ms);
                self.serve_region(id, request_id, now_ms);
            }
            ReadOutcome::Yield => {
                self.connections.extend_deadline(id, now_ms);
                self.connections.requeue(id);
            }
            ReadOutcome::Full { grace: true } => {
                self.connections.extend_deadline(id, now_ms);
                self.connections.give_grace(id, now_ms + CLIENT_GRACE_MS);
            }
            ReadOutcome::PipeFull => {
                connection.stop_deadline();
                self.connections.give_grace(id, now_ms + PIPE_GRACE_MS);
            }
            // Without a deadline: the client is the one to act.
            ReadOutcome::Full { grace: false } => connection.stop_deadline(),
            ReadOutcome::HalfOver => {
                self.connections.extend_deadline(id, now_ms);
                self.end_tunnel_if_over(id, now_ms);
            }
            ReadOutcome::Done { reusable } => {
                if let Some(pool) = self.pools.get_mut(connection.pool) {
                    let (offered, outcome) = connection.offer();
                    pool.negotiation.note_answer(offered, outcome, now_ms);
                    if let Some(transport) = connection.travelled() {
                        pool.tally.answers.add(exchange.response.handle_travelled(transport));
                    }
                }
                self.exchanges.finish(request_id);
                return self.release(id, reusable, now_ms);
            }
            ReadOutcome::Refused => {
                return self.retry_or_fail(id, request_id, FailureReason::Overloaded, now_ms);
            }
            ReadOutcome::EndedSilently => {
                return self.retry_or_fail(id, request_id, FailureReason::Ended, now_ms);
            }
            ReadOutcome::Failed(why) => return self.fail_on_connection(id, request_id, why, now_ms),
        }
        self.exchanges.announce(request_id);
    }

    /// The deadline of a connection has passed.
    pub(super) fn handle_timeout(&mut self, id: ConnectionId, now_ms: u64) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let index = connection.pool;
        match *connection.phase() {
            Phase::Idle { .. } => {
                self.close(id);
                self.retire(index);
            }
            Phase::Connecting { request_id, .. } | Phase::Securing { request_id, .. } => {
                let why = match connection.is_http() {
                    true => FailureReason::ConnectTimedOut,
                    false => FailureReason::NoConnection(Errno::TIMEDOUT),
                };
                self.connect_elsewhere_or_fail(id, request_id, why, now_ms);
            }
            Phase::Serving(Serving { request_id, .. }) if connection.is_grace_over(now_ms) => {
                self.handle_grace_over(id, request_id, now_ms);
            }
            Phase::Serving(Serving { request_id, .. }) => {
                let why = connection.overdue();
                let stuck = connection.passed().is_none_or(PassedSocket::is_stuck);
                if !stuck {
                    self.connections.extend_deadline(id, now_ms);
                    return;
                }
                let goes_elsewhere =
                    why == FailureReason::HeadTimedOut && self.send_elsewhere(id, request_id, why, now_ms);
                if !goes_elsewhere && !self.end_process(id, now_ms) {
                    self.fail_on_connection(id, request_id, why, now_ms);
                }
            }
            Phase::Ending { request_id, .. } => {
                self.fail_on_connection(id, request_id, FailureReason::TimedOut, now_ms);
            }
        }
    }

    /// Ends a process that holds the client's socket and has timed out. When the process is gone, the client can still get
    /// an error response. False: the process has begun to answer, or may not be ended.
    fn end_process(&mut self, id: ConnectionId, now_ms: u64) -> bool {
        let Some(connection) = self.connections.get_mut(id) else { return false };
        let (index, lane) = (connection.pool, connection.lane);
        if !connection.passed().is_some_and(|handed| handed.is_untouched()) {
            return false;
        }
        let Some(pool) = self.pools.get_mut(index) else { return false };
        if !pool.end_process(lane) {
            return false;
        }
        self.connections.update(id, |connection| connection.note_process_ending(now_ms + END_MS));
        self.advance_queue(index, now_ms);
        true
    }

    fn handle_connected(&mut self, id: ConnectionId, request_id: RequestId, now_ms: u64) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        match socket::finish_connecting(&connection.channel) {
            Ok(()) => self.secure(id, request_id, now_ms),
            Err(error) => {
                self.connect_elsewhere_or_fail(id, request_id, FailureReason::NoConnection(error), now_ms);
            }
        }
    }

    /// Sends a request on a connection as soon as bytes may flow on it.
    pub(super) fn secure(&mut self, id: ConnectionId, request_id: RequestId, now_ms: u64) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.note_connected();
        match connection.channel.establish() {
            Ok(Established::Yes) => self.send_request(id, request_id, now_ms),
            Ok(Established::NeedsInput) => {}
            Ok(Established::NeedsRoom) => {
                if let Err(error) = self.connections.watch(id, true) {
                    let why = FailureReason::NoConnection(error);
                    self.connect_elsewhere_or_fail(id, request_id, why, now_ms);
                }
            }
            Err(trouble) => {
                self.connect_elsewhere_or_fail(id, request_id, FailureReason::Tls(trouble), now_ms);
            }
        }
    }

    /// The client has taken nothing in its grace period: spool the rest, so that the application can go on.
    fn handle_grace_over(&mut self, id: ConnectionId, request_id: RequestId, now_ms: u64) {
        let Some(exchange) = self.exchanges.get_mut(request_id) else { return };
        let Some(request) = &exchange.request else { return };
        exchange.response.mark_slow(&request.application.settings().temporary);
        self.make_room(id, request_id);
        self.connections.update(id, |connection| {
            connection.end_grace();
            connection.region().into_iter().for_each(SharedRegion::move_out);
            connection.extend_deadline(now_ms);
        });
        self.connections.tell_free(id);
        self.read(id, now_ms);
    }

    /// Tells the application what it may write again. If that is too little, takes back what other clients have on loan,
    /// and gives the client of this request a grace period.
    fn serve_region(&mut self, id: ConnectionId, request_id: RequestId, now_ms: u64) {
        self.connections.tell_free(id);
        let waits =
            |gateway: &mut Self| gateway.connections.get_mut(id).is_some_and(Connection::waits_for_region);
        if waits(self) {
            self.make_room(id, request_id);
            self.connections.tell_free(id);
            if waits(self) {
                self.connections.give_grace(id, now_ms + CLIENT_GRACE_MS);
            }
        }
    }
}

/// Grace period for a client whose response fills its memory. A client that keeps up takes something within the same round
/// of the loop. The application should not wait for slower ones.
const CLIENT_GRACE_MS: u64 = 20;

/// Grace period for a client that has bytes in a pipe, 256 KiB at most. A client that takes as much each second costs less by the
/// pipe than by a file, and holds the origin's connection at a price. Slower ones would hold it for nothing.
const PIPE_GRACE_MS: u64 = 1_000;

/// How long a process may take to end. After that its client is cut off without an error response. Few handle the signal.
const END_MS: u64 = 1_000;

//! A client that speaks HTTP/2: many requests at once, each on a stream of its own.
//!
//! ```text
//!   input ──► receive ──► streams ◄── jobs, applications
//!                           │ respond, push, end
//!                           ▼
//!            connection: frames by priority ──► send_queue ──► sent, in order of the ledger
//! ```
//!
//! The connection keeps what streams have to send and frames only as much as the send queue is about to send, so that a
//! response of higher priority comes next, and a stream that was reset sends no more.

mod bodies;
mod deadline;
mod input;
mod moving;
mod sending;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use baton_buf::FileSlice;
use baton_http::h2;
use baton_response::send_way::Trial;
use baton_telemetry::log::Outcome;
use baton_telemetry::metrics::Metric;

use super::connection::{ClientConnection, ConnectionState};
use super::driver::{Driver, Turn};
use super::exchanges::{Exchanges, Underway};
use super::need::{Need, Stage, UpstreamNeed};
use crate::context::Context;
use crate::exchange::Exchange;
use crate::job::Job;
use crate::protocol::{LastClose, Responder, StreamId};
use crate::transport::Received;
use stream::{Stream, name};

/// HTTP/2 on a connection: the protocol's machine, and its exchanges.
#[derive(Debug)]
pub(super) struct Http2Driver {
    connection: h2::Connection,
    exchanges: Exchanges<Stream>,
    /// Streams that may be able to go on.
    due: VecDeque<h2::StreamId>,
    /// Ranges of files that are to be brought into memory before they are framed.
    cold: Vec<(h2::StreamId, FileSlice)>,
    /// What the send queue holds, in order; of the first, so many bytes are sent.
    ledger: VecDeque<h2::Framed>,
    ledger_sent: u64,
    /// Requests that this step may still begin.
    requests_left: usize,
    /// The socket takes no more for now.
    is_full: bool,
    /// The send queue waits for a job of its own.
    is_send_queue_blocked: bool,
    /// Streams whose requests are over, and whose jobs are not.
    abandoned: Vec<h2::StreamId>,
    /// Requests that applications are to be told to give up.
    to_abandon: Vec<StreamId>,
    /// Requests of the connection.
    requests: u64,
    /// Since when there has been no request.
    idle_since_ms: u64,
    /// When bytes of a response's body were last sent, on any stream.
    data_sent_ms: u64,
    /// Since when a part of a frame or of a head has been there.
    head_since_ms: Option<u64>,
    /// When the client must have taken more of what is being sent.
    send_due_ms: Option<u64>,
    /// The memory that requests needed has been given back.
    is_resting: bool,
}

impl Driver for Http2Driver {
    type Own = Stream;

    const IS_MULTIPLEXED: bool = true;

    fn exchanges(&self) -> &Exchanges<Stream> {
        &self.exchanges
    }

    fn exchanges_mut(&mut self) -> &mut Exchanges<Stream> {
        &mut self.exchanges
    }

    fn step(&mut self, connection: &mut ClientConnection, ctx: &mut Context, stage: Stage) -> Need {
        let need = self.go(connection, ctx, stage);
        self.set_deadline(connection, ctx);
        need
    }

    fn handle_timeout(&mut self, connection: &mut ClientConnection, ctx: &mut Context) -> Need {
        self.time_out(connection, ctx)
    }

    fn handle_ready(&mut self) {
        self.is_full = false;
    }

    fn can_send(&self, connection: &ClientConnection) -> bool {
        !self.is_full
            && !self.is_send_queue_blocked
            && (!connection.send_queue.is_empty() || self.connection.wants_to_send())
    }

    /// The connection can be closed without loss: it was told so, if it is to end.
    fn is_idle(&self) -> bool {
        self.exchanges.is_empty()
            && self.ledger.is_empty()
            && self.connection.is_idle()
            && !self.connection.is_draining()
    }

    fn waits_for_client(&self, connection: &ClientConnection) -> bool {
        connection.send_queue.is_empty()
            && self.ledger.is_empty()
            && self.exchanges.iter().all(Underway::awaits_body)
    }

    /// The client may be sending at any time: windows, if nothing else.
    fn has_unread_input(&self, _connection: &ClientConnection) -> bool {
        true
    }

    fn take_input(&mut self, input: &[u8], connection: &mut ClientConnection, ctx: &mut Context) -> usize {
        let mut text = std::mem::take(&mut ctx.head_text);
        let taken = self.take_frames(input, &mut text, connection, ctx);
        ctx.head_text = text;
        taken
    }

    fn handle_job_done(&mut self, of: Option<StreamId>, _connection: &mut ClientConnection, _ctx: &Context) {
        let Some(stream) = of else {
            self.is_send_queue_blocked = false;
            return;
        };
        if let Some(at) = self.exchanges.position(stream) {
            // What it sends may have waited for its pages.
            self.connection.handle_ready(self.exchanges[at].own.id);
            self.make_due(at);
        } else if let Some(at) = self.abandoned.iter().position(|id| name(*id) == stream) {
            self.connection.finish(self.abandoned.swap_remove(at));
        }
    }

    fn begin_turn<'a>(
        &'a mut self,
        at: usize,
        _input: &'a [u8],
        connection: &'a mut ClientConnection,
        _ctx: &Context,
    ) -> Turn<'a> {
        let Underway { exchange, own: Stream { id, response, body, .. }, .. } = &mut self.exchanges[at];
        (exchange, Responder::http2(&mut self.connection, *id, response, body), &connection.transport)
    }

    fn end_turn(&mut self, at: usize, was_sent: bool, _trial: Option<Trial>, ctx: &Context) {
        if was_sent {
            self.exchanges[at].own.begin_sending(ctx.clock.now_ms());
        }
    }

    fn make_due(&mut self, at: usize) {
        let stream = &mut self.exchanges[at].own;
        if !std::mem::replace(&mut stream.is_due, true) {
            self.due.push_back(stream.id);
        }
    }

    fn read_body(&mut self, at: usize, connection: &mut ClientConnection, ctx: &mut Context) -> Option<Need> {
        self.take_arrived(at, connection, ctx);
        None
    }

    fn lend_body(&mut self, at: usize, left: Option<u64>) {
        if let Some(left) = left {
            self.exchanges[at].own.body.lend_length(left);
        }
    }

    fn has_lent_body(&self, at: usize) -> bool {
        self.exchanges[at].own.body.is_lent()
    }

    fn handle_answered(&mut self, at: usize, connection: &mut ClientConnection, ctx: &mut Context) {
        let entry = &mut self.exchanges[at];
        entry.wants_body = false;
        if !entry.has_job {
            self.connection.finish(entry.own.id);
        }
        self.end_if_sent(at, connection, ctx);
    }

    fn cancel(&mut self, at: usize, outcome: Outcome, connection: &mut ClientConnection, ctx: &mut Context) {
        self.connection.reset(self.exchanges[at].own.id, h2::ErrorCode::Cancel);
        self.remove(at, outcome, connection, ctx);
    }

    fn prepare_end(&mut self, connection: &mut ClientConnection, ctx: &mut Context) {
        self.handle_sent(0, connection, ctx);
    }

    fn handle_lingering(&mut self, connection: &mut ClientConnection, ctx: &Context) {
        connection.set_timeout(ctx.plan.limits.linger_timeout_ms, ctx);
    }

    fn check_invariants(&self, connection: &ClientConnection) {
        self.exchanges.check_invariants(connection);
        for Underway { exchange, own, wants_body, .. } in self.exchanges.iter() {
            assert_eq!(exchange.stream, name(own.id), "the exchange is the stream's");
            assert_eq!(own.is_due, self.due.contains(&own.id), "what is due has its turn");
            assert!(!wants_body || own.body.is_lent(), "what is wanted is lent");
            assert!(!self.abandoned.contains(&own.id), "a request under way is not abandoned");
        }
        let is_within = |front: &h2::Framed| self.ledger_sent < front.total_bytes();
        assert!(self.ledger.front().is_none_or(is_within), "what is sent is off the ledger");
        let in_ledger = self.ledger.iter().map(h2::Framed::total_bytes).sum::<u64>() - self.ledger_sent;
        assert_eq!(
            in_ledger,
            connection.send_queue.queued() + connection.transport.early_data(),
            "the ledger is the send queue's"
        );
    }
}

impl Http2Driver {
    /// HTTP/2 on a connection before the client's preface.
    pub(super) fn new(ctx: &Context) -> Self {
        let now_ms = ctx.clock.now_ms();
        let settings = h2::Settings {
            head_bytes_max: u32::try_from(ctx.plan.limits.head.head_bytes_max).unwrap_or(u32::MAX),
            connect_protocol: ctx.plan.has_proxies(),
            ..h2::Settings::default()
        };
        Self {
            connection: h2::Connection::new(&settings, now_ms),
            exchanges: Exchanges::default(),
            due: VecDeque::new(),
            cold: Vec::new(),
            ledger: VecDeque::new(),
            ledger_sent: 0,
            requests_left: 0,
            is_full: false,
            is_send_queue_blocked: false,
            abandoned: Vec::new(),
            to_abandon: Vec::new(),
            requests: 0,
            idle_since_ms: now_ms,
            data_sent_ms: now_ms,
            head_since_ms: None,
            send_due_ms: None,
            is_resting: false,
        }
    }

    fn go(&mut self, connection: &mut ClientConnection, ctx: &mut Context, stage: Stage) -> Need {
        self.requests_left = REQUESTS_PER_STEP;
        if connection.transport.is_hung_up() {
            return self.end(Outcome::ClientGone, connection, ctx);
        }
        loop {
            match connection.state {
                ConnectionState::Closed => return Need::Finished,
                ConnectionState::Lingering => return self.linger(connection, ctx),
                ConnectionState::Ending(close)
                    if connection.send_queue.is_empty() && !self.connection.wants_to_send() =>
                {
                    return self.close(close, connection, ctx);
                }
                ConnectionState::Ending(_) => {}
                ConnectionState::Open => {
                    if let Some(need) = self.go_on(connection, ctx, stage) {
                        return need;
                    }
                }
            }
            if stage != Stage::Read {
                if let Some(need) = self.send(connection, ctx) {
                    return need;
                }
            } else if self.can_send(connection) {
                return Need::Writable;
            }
            if !connection.is_open() {
                if !connection.send_queue.is_empty() {
                    return Need::Writable;
                }
                continue;
            }
            if self.connection.is_over() && connection.send_queue.is_empty() {
                connection.state = ConnectionState::Ending(LastClose::Linger);
                continue;
            }
            if !self.cold.is_empty() {
                continue;
            }
            if !self.due.is_empty() {
                if stage == Stage::Write {
                    return Need::Turn;
                }
                continue;
            }
            if stage == Stage::Write {
                return if may_read(connection) { Need::Turn } else { self.wait(connection) };
            }
            match self.receive(connection, ctx) {
                Received::Bytes(_) if connection.is_inbox_untried => return Need::Turn,
                Received::Bytes(_) => {}
                Received::End if !self.goes_on_alone(connection) => {
                    return self.end(Outcome::ClientGone, connection, ctx);
                }
                Received::Nothing | Received::End => return self.wait(connection),
            }
        }
    }

    /// Advances streams and their bodies as far as possible; `Some`: one of them needs this.
    fn go_on(&mut self, connection: &mut ClientConnection, ctx: &mut Context, stage: Stage) -> Option<Need> {
        if ctx.draining && self.has_to_end(connection, ctx) {
            self.connection.begin_drain(ctx.clock.now_ms());
        }
        if let Some(stream) = self.to_abandon.pop() {
            return Some(Need::Upstream(UpstreamNeed::Abandon(stream)));
        }
        if let Some(need) = self.pass_body_on() {
            return Some(need);
        }
        if let Some((id, slice)) = self.cold.pop() {
            ctx.tally.add(Metric::Jobs, 1);
            let at = self.exchanges.position(name(id));
            let client = at.and_then(|at| self.exchanges[at].exchange.client(&connection.transport));
            return Some(Need::Job(Job::PageIn { stream: Some(name(id)), slice }, client));
        }
        if stage == Stage::Write {
            return None; // A reader advances requests, once there is nothing to send or no room for it.
        }
        while let Some(id) = self.due.pop_front() {
            if let Some(need) = self.advance(name(id), connection, ctx) {
                return Some(need);
            }
        }
        None
    }

    /// Whether the client has to be told of a drain: no other process goes on with the connection, or it was not without
    /// requests for so long that it may never be.
    fn has_to_end(&self, connection: &ClientConnection, ctx: &Context) -> bool {
        let version =
            connection.passport_version().filter(|_| connection.is_open()).map(|version| version.max(2));
        ctx.clock.now_ms() >= ctx.patience_until_ms || ctx.is_last_request_over(version)
    }

    fn wait(&self, connection: &ClientConnection) -> Need {
        if connection.send_queue.is_empty() { Need::Readable } else { Need::Writable }
    }

    /// Advances a request until it has to wait; `Some`: it needs this first.
    fn advance(
        &mut self,
        stream: StreamId,
        connection: &mut ClientConnection,
        ctx: &mut Context,
    ) -> Option<Need> {
        let at = self.exchanges.position(stream)?;
        let Underway { exchange, own, .. } = &mut self.exchanges[at];
        own.is_due = false;
        // What an application has sent goes to the client before there is more of it.
        if exchange.is_answered() || !exchange.record.is_all_sent() {
            return None;
        }
        let (wants, _) = self.drive(at, &[], connection, ctx, Exchange::poll);
        self.need_of(at, wants, connection, ctx)
    }

    /// Logs a request whose response is over. What works for it still counts.
    fn remove(&mut self, at: usize, outcome: Outcome, connection: &mut ClientConnection, ctx: &mut Context) {
        let Underway { exchange, has_job, own, .. } = &self.exchanges[at];
        if exchange.is_delegated() {
            self.to_abandon.push(exchange.stream);
        }
        match has_job {
            true => self.abandoned.push(own.id),
            false => self.connection.finish(own.id),
        }
        self.exchanges.log(at, outcome, connection, ctx);
        if self.exchanges.is_empty() {
            self.idle_since_ms = ctx.clock.now_ms();
        }
    }

    /// Gives back the memory that requests needed: most idle connections stay idle.
    fn rest(&mut self) {
        self.is_resting = true;
        self.connection.release_memory();
        (self.exchanges, self.due, self.ledger) = Default::default();
    }
}

/// Whether there may be something to read.
fn may_read(connection: &ClientConnection) -> bool {
    connection.is_inbox_untried
        || connection.transport.is_readable() && !connection.transport.has_ended_input()
}

/// Requests that are begun before other clients have a turn (the client may send a hundred at once).
const REQUESTS_PER_STEP: usize = 32;

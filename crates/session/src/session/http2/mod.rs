//! A client that speaks HTTP/2: many requests at once, each on a stream of its own.
//!
//! ```text
//!   input ──► receive ──► streams ◄── jobs, applications
//!                           │ respond, push, end
//!                           ▼
//!            connection: frames by priority ──► outlet ──► sent, in order of the ledger
//! ```
//!
//! The connection keeps what streams have to send and frames only as much as the outlet is about to send, so that a
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
use baton_telemetry::log::Outcome;
use baton_telemetry::metrics::Metric;
use baton_upstream::ResponseEvent;

use super::need::{Need, Stage};
use super::wire::{Closing, Wire, WireState};
use crate::context::Context;
use crate::exchange::{Delegation, Env, Exchange, Wants};
use crate::job::{Job, JobDone};
use crate::protocol::{LastClose, Responder, StreamId};
use stream::{Left, Lent, Stream, name};

/// HTTP/2 on a connection: the protocol's machine, and its exchanges.
#[derive(Debug)]
pub(super) struct Http2Driver {
    connection: h2::Connection,
    /// Requests that are not logged yet, by number.
    streams: VecDeque<Stream>,
    /// Streams that may be able to go on.
    due: VecDeque<h2::StreamId>,
    /// Ranges of files that are to be brought into memory before they are framed.
    cold: Vec<(h2::StreamId, FileSlice)>,
    /// What the outlet holds, in order; of the first, so many bytes are sent.
    ledger: VecDeque<h2::Framed>,
    ledger_sent: u64,
    /// Input that was not read: the beginning of a frame, or what came behind enough requests for one step. Holds no
    /// memory while it is empty.
    inbox: Vec<u8>,
    /// Whether the inbox may hold a whole frame.
    is_inbox_untried: bool,
    /// The socket takes no more for now.
    is_full: bool,
    /// The outlet waits for a job of its own.
    is_outlet_blocked: bool,
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
    is_lingering: bool,
    /// The memory that requests needed has been given back.
    is_resting: bool,
}

/// What reading came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    /// Something was read.
    Taken,
    /// There is nothing to read.
    None,
    /// There is more, and other clients have a turn first.
    Turn,
    /// The client has ended its input, and waits for nothing.
    Ended,
}

impl Http2Driver {
    /// HTTP/2 on a connection whose client has sent `inbox` so far.
    pub(super) fn new(inbox: Vec<u8>, ctx: &Context) -> Self {
        let now_ms = ctx.clock.now_ms();
        let settings = h2::Settings {
            head_bytes_max: u32::try_from(ctx.plan.limits.head.head_bytes_max).unwrap_or(u32::MAX),
            connect_protocol: ctx.plan.has_proxies(),
            ..h2::Settings::default()
        };
        Self {
            connection: h2::Connection::new(&settings, now_ms),
            streams: VecDeque::new(),
            due: VecDeque::new(),
            cold: Vec::new(),
            ledger: VecDeque::new(),
            ledger_sent: 0,
            is_inbox_untried: !inbox.is_empty(),
            inbox,
            is_full: false,
            is_outlet_blocked: false,
            abandoned: Vec::new(),
            to_abandon: Vec::new(),
            requests: 0,
            idle_since_ms: now_ms,
            data_sent_ms: now_ms,
            head_since_ms: None,
            send_due_ms: None,
            is_lingering: false,
            is_resting: false,
        }
    }

    /// Whether the connection can be closed without loss: it was told so, if it is to end.
    pub(super) fn is_idle(&self) -> bool {
        self.streams.is_empty()
            && self.ledger.is_empty()
            && self.inbox.is_empty()
            && self.connection.is_idle()
            && !self.connection.is_draining()
    }

    /// Whether all that is missing is the rest of what the client is sending, or its end of the connection.
    pub(super) fn waits_for_client(&self, wire: &Wire) -> bool {
        wire.outlet.is_empty() && self.ledger.is_empty() && self.streams.iter().all(Stream::awaits_body)
    }

    /// Whether there is something to send, and room for it.
    pub(super) fn can_send(&self, wire: &Wire) -> bool {
        !self.is_full
            && !self.is_outlet_blocked
            && (!wire.outlet.is_empty() || self.connection.wants_to_send())
    }

    pub(super) fn is_delegated(&self) -> bool {
        self.streams.iter().any(|stream| stream.exchange.is_delegated())
    }

    /// The socket may take more.
    pub(super) fn handle_ready(&mut self) {
        self.is_full = false;
    }

    /// A job that was asked for is done.
    pub(super) fn handle_job(&mut self, done: JobDone, wire: &mut Wire) {
        match done {
            JobDone::Found(stream, found) => {
                self.finish_job(stream, |exchange| exchange.handle_found(found));
            }
            JobDone::Verified(stream, user) => {
                self.finish_job(stream, |exchange| exchange.handle_verified(user));
            }
            JobDone::Coded(stream, coded) => {
                self.finish_job(stream, |exchange| exchange.handle_coded(coded));
            }
            JobDone::PagedIn { stream: Some(stream), .. } => {
                if let Some(at) = self.position(stream) {
                    self.connection.handle_ready(self.streams[at].id);
                }
            }
            JobDone::PagedIn { stream: None, until } => {
                self.is_outlet_blocked = false;
                wire.outlet.handle_pages(until);
            }
            // The handshake is the session's, and no stream waits in a call that sends.
            JobDone::Handshake(_) | JobDone::Sent(_) => {}
        }
    }

    /// A job of a stream is done.
    fn finish_job(&mut self, stream: StreamId, tell: impl FnOnce(&mut Exchange)) {
        if let Some(at) = self.position(stream) {
            self.streams[at].has_job = false;
            tell(&mut self.streams[at].exchange);
            self.make_due(at);
        } else if let Some(at) = self.abandoned.iter().position(|id| name(*id) == stream) {
            self.connection.finish(self.abandoned.swap_remove(at));
        }
    }

    /// Goes as far as it can without waiting; `stage` says which half of the work the caller does.
    pub(super) fn step(&mut self, wire: &mut Wire, ctx: &mut Context, stage: Stage) -> Need {
        let need = self.go(wire, ctx, stage);
        self.set_deadline(wire, ctx);
        need
    }

    fn go(&mut self, wire: &mut Wire, ctx: &mut Context, stage: Stage) -> Need {
        let mut requests_left = REQUESTS_PER_STEP;
        if wire.transport.is_hung_up() {
            return self.end(Outcome::ClientGone, wire, ctx);
        }
        loop {
            match wire.state {
                WireState::Closed => return Need::Finished,
                WireState::Lingering => return self.linger(wire, ctx),
                WireState::Ending(close) if wire.outlet.is_empty() && !self.connection.wants_to_send() => {
                    return self.close(close, wire, ctx);
                }
                WireState::Ending(_) => {}
                WireState::Open => {
                    if let Some(need) = self.go_on(wire, ctx, stage) {
                        return need;
                    }
                }
            }
            if stage != Stage::Read {
                if let Some(need) = self.send(wire, ctx) {
                    return need;
                }
            } else if self.can_send(wire) {
                return Need::Writable;
            }
            if !wire.is_open() {
                if !wire.outlet.is_empty() {
                    return Need::Writable;
                }
                continue;
            }
            if self.connection.is_over() && wire.outlet.is_empty() {
                wire.state = WireState::Ending(LastClose::Linger);
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
                return if self.has_input(wire) { Need::Turn } else { self.wait(wire) };
            }
            match self.receive(wire, ctx, &mut requests_left) {
                Input::Taken => {}
                Input::None => return self.wait(wire),
                Input::Turn => return Need::Turn,
                Input::Ended => return self.end(Outcome::ClientGone, wire, ctx),
            }
        }
    }

    /// Advances streams and their bodies as far as possible; `Some`: one of them needs this.
    fn go_on(&mut self, wire: &mut Wire, ctx: &mut Context, stage: Stage) -> Option<Need> {
        if ctx.draining && self.has_to_end(wire, ctx) {
            self.connection.begin_drain(ctx.clock.now_ms());
        }
        if let Some(stream) = self.to_abandon.pop() {
            return Some(Need::Abandon(stream));
        }
        if let Some(need) = self.pass_body_on() {
            return Some(need);
        }
        if let Some((id, slice)) = self.cold.pop() {
            ctx.tally.add(Metric::Jobs, 1);
            let at = self.position(name(id));
            let client = at.and_then(|at| self.streams[at].exchange.client(&wire.transport));
            return Some(Need::Job(Job::PageIn { stream: Some(name(id)), slice }, client));
        }
        if stage == Stage::Write {
            return None; // A reader advances requests, once there is nothing to send or no room for it.
        }
        while let Some(id) = self.due.pop_front() {
            if let Some(need) = self.advance(name(id), wire, ctx) {
                return Some(need);
            }
        }
        None
    }

    /// Whether the client has to be told of a drain: no other process goes on with the connection, or it was not without
    /// requests for so long that it may never be.
    fn has_to_end(&self, wire: &Wire, ctx: &Context) -> bool {
        let version = wire.passport_version().filter(|_| wire.is_open()).map(|version| version.max(2));
        ctx.clock.now_ms() >= ctx.patience_until_ms || ctx.is_last_request_over(version)
    }

    fn wait(&self, wire: &Wire) -> Need {
        if wire.outlet.is_empty() { Need::Readable } else { Need::Writable }
    }

    /// Where the stream with this name is among the streams.
    fn position(&self, stream: StreamId) -> Option<usize> {
        self.streams.binary_search_by_key(&stream.number(), |own| u64::from(own.id.number())).ok()
    }

    fn make_due(&mut self, at: usize) {
        let stream = &mut self.streams[at];
        if !std::mem::replace(&mut stream.is_due, true) {
            self.due.push_back(stream.id);
        }
    }

    /// Advances a request until it has to wait; `Some`: it needs this first.
    fn advance(&mut self, stream: StreamId, wire: &mut Wire, ctx: &mut Context) -> Option<Need> {
        let at = self.position(stream)?;
        self.streams[at].is_due = false;
        // What an application has sent goes to the client before there is more of it.
        if self.streams[at].exchange.is_answered() || !self.streams[at].exchange.record.is_all_sent() {
            return None;
        }
        match self.drive(at, wire, ctx, Exchange::poll) {
            Wants::Nothing => {
                self.handle_answered(at, wire, ctx);
                None
            }
            Wants::Body => {
                self.take_arrived(at, wire, ctx);
                None
            }
            Wants::Job(job) => {
                ctx.tally.add(Metric::Jobs, 1);
                self.streams[at].has_job = true;
                Some(Need::Job(job, self.streams[at].exchange.client(&wire.transport)))
            }
            Wants::Turn => {
                self.make_due(at);
                Some(Need::Turn)
            }
            Wants::JobUnderWay | Wants::ResponseAwaited => None,
            Wants::Delegation(delegation) => Some(self.delegate(at, delegation)),
            Wants::Resume(end) => Some(Need::Resume(stream, end)),
            Wants::ResponseEvent => Some(Need::ResponseEvent(stream)),
        }
    }

    /// Calls `act` on the exchange of the stream at this place.
    fn drive<R>(
        &mut self,
        at: usize,
        wire: &Wire,
        ctx: &mut Context,
        act: impl FnOnce(&mut Exchange, &mut Env<'_>) -> R,
    ) -> R {
        let Stream { id, exchange, response, body, .. } = &mut self.streams[at];
        let reply = Responder::http2(&mut self.connection, *id, response, body);
        let mut env = Env {
            stream: name(*id),
            ctx,
            reply,
            listener: wire.listener,
            client: &wire.transport,
            trial: None,
        };
        let was_sent = exchange.record.is_all_sent();
        let result = act(exchange, &mut env);
        let written = env.reply.finish(exchange.is_answered());
        exchange.record.handle_queued(written.bytes, written.head_bytes);
        if written.ends {
            exchange.record.handle_end_queued();
        }
        if was_sent {
            self.streams[at].begin_sending(ctx.clock.now_ms());
        }
        result
    }

    /// The work for a stream is over; what is left of its response is on its way.
    fn handle_answered(&mut self, at: usize, wire: &Wire, ctx: &mut Context) {
        let stream = &mut self.streams[at];
        stream.lent = None;
        if !stream.has_job {
            self.connection.finish(stream.id);
        }
        self.end_if_sent(at, wire, ctx);
    }

    fn delegate(&mut self, at: usize, delegation: Delegation) -> Need {
        let Delegation { request, ask, .. } = delegation;
        let stream = &mut self.streams[at];
        if let Some(rest) = &request.rest {
            let bytes_max = stream.body.bytes_max();
            let left = rest.left().map_or(Left::UntilEnd(bytes_max), Left::Length);
            stream.lent = Some(Lent { left, is_wanted: false });
        }
        Need::Delegate(name(stream.id), baton_cache::Request { upstream: request, ask })
    }

    /// The gateway may have an event for a request.
    pub(super) fn handle_response_ready(&mut self, stream: StreamId) {
        if let Some(at) = self.position(stream) {
            self.streams[at].exchange.handle_room();
            self.make_due(at);
        }
    }

    /// The gateway's event for a request; `None`: nothing more for now.
    pub(super) fn handle_response_event(
        &mut self,
        stream: StreamId,
        event: Option<ResponseEvent>,
        wire: &mut Wire,
        ctx: &mut Context,
    ) {
        let Some(at) = self.position(stream) else { return };
        if !self.streams[at].exchange.is_delegated() {
            return;
        }
        let is_quiet = event.is_none();
        if matches!(event, Some(ResponseEvent::Switch(_))) {
            self.streams[at].lent = Some(Lent { left: Left::Tunnel, is_wanted: false });
        }
        if let Some(outcome) =
            self.drive(at, wire, ctx, |exchange, env| exchange.handle_response_event(env, event))
        {
            self.cancel(at, h2::ErrorCode::Cancel, outcome, wire, ctx);
        } else if self.streams[at].exchange.is_answered() {
            self.handle_answered(at, wire, ctx);
        } else if !is_quiet || self.streams[at].exchange.is_coding() {
            self.make_due(at);
        }
    }

    /// Ends one request now, and tells the client.
    fn cancel(&mut self, at: usize, code: h2::ErrorCode, outcome: Outcome, wire: &Wire, ctx: &mut Context) {
        self.connection.reset(self.streams[at].id, code);
        self.remove(at, outcome, wire, ctx);
    }

    /// Logs a request whose response is over. What works for it still counts.
    fn remove(&mut self, at: usize, outcome: Outcome, wire: &Wire, ctx: &mut Context) {
        let Some(stream) = self.streams.remove(at) else { return };
        if stream.exchange.is_delegated() {
            self.to_abandon.push(name(stream.id));
        }
        match stream.has_job {
            true => self.abandoned.push(stream.id),
            false => self.connection.finish(stream.id),
        }
        stream.exchange.record.end(outcome, wire.transport.peer(), ctx);
        if self.streams.is_empty() {
            self.idle_since_ms = ctx.clock.now_ms();
        }
    }

    /// Gives back the memory that requests needed: most idle connections stay idle.
    fn rest(&mut self) {
        self.is_resting = true;
        self.connection.release_memory();
        (self.streams, self.due, self.ledger) = Default::default();
    }

    /// Ends the session at once, and logs unfinished requests with this outcome.
    pub(super) fn end(&mut self, outcome: Outcome, wire: &mut Wire, ctx: &mut Context) -> Need {
        self.handle_sent(0, wire, ctx);
        while let Some(stream) = self.streams.pop_front() {
            stream.exchange.record.end(outcome, wire.transport.peer(), ctx);
        }
        wire.finish(ctx)
    }

    /// Like [`end`](Self::end), but with a reset: the kernel drops what the client has not taken.
    fn reset(&mut self, outcome: Outcome, wire: &mut Wire, ctx: &mut Context) -> Need {
        wire.transport.reset();
        self.end(outcome, wire, ctx)
    }

    /// Everything is sent and the connection is to end.
    fn close(&mut self, close: LastClose, wire: &mut Wire, ctx: &mut Context) -> Need {
        // The client may be sending at any time: windows, if nothing else.
        match wire.close(close, true) {
            Closing::Now => self.end(Outcome::Complete, wire, ctx),
            Closing::Reset => self.reset(Outcome::Complete, wire, ctx),
            Closing::Linger => self.linger(wire, ctx),
        }
    }

    fn linger(&mut self, wire: &mut Wire, ctx: &mut Context) -> Need {
        match wire.linger(ctx) {
            Some(need) => need,
            None => self.end(Outcome::Complete, wire, ctx),
        }
    }
}

/// Requests that are begun before other clients have a turn (the client may send a hundred at once).
const REQUESTS_PER_STEP: usize = 32;

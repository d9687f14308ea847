//! A client that speaks HTTP/1: one request at a time, answers in the order of the requests.

mod deadline;
mod handing_over;
mod input;
mod moving;
mod streamed_body;
mod waiting;

use std::collections::VecDeque;
use std::time::Instant;

use baton_fcgi::AnswerOutcome;
use baton_telemetry::log::Outcome;
use baton_telemetry::metrics::Metric;
use baton_upstream::ResponseEvent;

use super::need::{Need, Stage};
use super::wire::{Closing, Wire, WireState};
use crate::context::Context;
use crate::exchange::{Delegation, Env, Exchange, Wants};
use crate::job::JobDone;
use crate::outlet::{Flush, SendPolicy};
use crate::protocol::{Http1, LastClose, Responder, StreamId};
use crate::send_way::Trial;
use waiting::{StreamedBody, Waiting};

/// HTTP/1 on a connection: the protocol's machine, and its exchanges.
#[derive(Debug)]
pub(super) struct Http1Driver {
    protocol: Http1,
    /// Requests whose responses the kernel has not taken completely, oldest first. Only the last may still wait for
    /// something; all others are answered.
    exchanges: VecDeque<Exchange>,
    /// Unparsed input: an incomplete head, or pipelined requests. Holds no memory while it is empty.
    inbox: Vec<u8>,
    /// Whether the inbox may hold a whole request.
    inbox_untried: bool,
    /// The client has begun with the preface of HTTP/2, which lies in the inbox.
    is_http2: bool,
    /// The rest of the delegated request's body, if the request was delegated before its body was complete.
    streamed_body: Option<StreamedBody>,
    /// The server's half of a tunnel has ended.
    has_ended_half: bool,
    /// The request at the front of the inbox is for the front-end that has handed the connection over, or all that comes is.
    gives_back: bool,
    /// The front-end could not be given it: it is answered here.
    keeps_next: bool,
    /// The measurement of the outlet's content, which is one response alone.
    trial: Option<Trial>,
    waiting: Waiting,
}

impl Http1Driver {
    /// HTTP/1 on a connection that has just been accepted.
    pub(super) fn new(wire: &mut Wire, ctx: &Context) -> Self {
        let mut driver = Self {
            protocol: Http1::new(),
            exchanges: VecDeque::new(),
            inbox: Vec::new(),
            inbox_untried: false,
            is_http2: false,
            streamed_body: None,
            has_ended_half: false,
            gives_back: false,
            keeps_next: false,
            trial: None,
            waiting: Waiting::FirstRequest,
        };
        driver.wait_for(Waiting::FirstRequest, wire, ctx);
        driver
    }

    /// Whether every request that has begun is answered.
    pub(super) fn is_idle(&self) -> bool {
        self.exchanges.is_empty() && self.inbox.is_empty() && !self.protocol.is_in_unwanted_body()
    }

    /// Whether all that is missing is the rest of what the client is sending, or its end of the connection.
    pub(super) fn waits_for_client(&self) -> bool {
        matches!(self.waiting, Waiting::Head | Waiting::Body | Waiting::Unwanted | Waiting::Linger)
    }

    /// The input of a client that turned out to speak HTTP/2 ("prior knowledge", RFC 9113, section 3.3).
    pub(super) fn take_http2_input(&mut self) -> Option<Vec<u8>> {
        self.is_http2.then(|| std::mem::take(&mut self.inbox))
    }

    /// Whether the client may have sent input that the session has not parsed.
    fn has_unread_input(&self, wire: &Wire) -> bool {
        wire.transport.is_readable() || !self.inbox.is_empty() || self.protocol.has_body_ahead()
    }

    /// Whether a request is with an application.
    pub(super) fn is_delegated(&self) -> bool {
        self.exchanges.iter().any(Exchange::is_delegated)
    }

    /// The job that [`Need::Job`] asked for is done.
    pub(super) fn handle_job(&mut self, done: JobDone, wire: &mut Wire, ctx: &Context) {
        // The request may want its body now, which perhaps has arrived behind its head.
        self.inbox_untried = !self.inbox.is_empty();
        match done {
            JobDone::Found(stream, found) => {
                if let Some(exchange) = self.exchange(stream) {
                    exchange.handle_found(found);
                }
            }
            JobDone::Verified(stream, user) => {
                if let Some(exchange) = self.exchange(stream) {
                    exchange.handle_verified(user);
                }
            }
            JobDone::Coded(stream, coded) => {
                if let Some(exchange) = self.exchange(stream) {
                    exchange.handle_coded(coded);
                }
            }
            JobDone::PagedIn { stream: None, until } => wire.outlet.handle_pages(until),
            JobDone::PagedIn { stream: Some(_), .. } => {}
            JobDone::Sent(sent) => wire.outlet.handle_waited(sent),
            // The session's own.
            JobDone::Handshake(_) => {}
        }
        self.wait_for(Waiting::Send, wire, ctx);
    }

    /// Goes as far as it can without waiting; `stage` says which half of the work the caller does.
    pub(super) fn step(&mut self, wire: &mut Wire, ctx: &mut Context, stage: Stage) -> Need {
        if self.waiting == Waiting::Job {
            return Need::JobUnderWay;
        }
        let need = self.go(wire, ctx, stage);
        self.await_need(&need, wire, ctx);
        need
    }

    fn go(&mut self, wire: &mut Wire, ctx: &mut Context, stage: Stage) -> Need {
        loop {
            if self.is_http2 {
                return Need::Turn;
            }
            if std::mem::take(&mut self.gives_back)
                && let Some(need) = self.give_back(wire, ctx)
            {
                return need;
            }
            // The body first: the client may take no response before it has sent its body.
            if let Some(need) = self.stream_body(wire, ctx) {
                return need;
            }
            if wire.has_output() {
                if stage == Stage::Read {
                    return Need::Writable;
                }
                if let Some(need) = self.send(wire, ctx) {
                    return need;
                }
            }
            // The outlet is empty: every response in front of a waiting request has been sent.
            let waiting = self.exchanges.iter().find(|exchange| !exchange.is_answered());
            let need = match (wire.state, waiting.map(|exchange| exchange.stream)) {
                (WireState::Open, Some(stream)) => self.advance(stream, wire, ctx, stage),
                (WireState::Open, None) if stage == Stage::Write => {
                    let has_input = wire.transport.is_readable() || self.inbox_untried;
                    Some(if has_input { Need::Turn } else { Need::Readable })
                }
                (WireState::Open, None) => self.receive(wire, ctx),
                (WireState::Ending(close), _) => Some(self.close(close, wire, ctx)),
                (WireState::Lingering, _) => Some(self.linger(wire, ctx)),
                (WireState::Closed, _) => Some(Need::Finished),
            };
            if let Some(need) = need {
                return need;
            }
        }
    }

    /// The exchange of this stream; `None` once it is logged.
    fn exchange(&mut self, stream: StreamId) -> Option<&mut Exchange> {
        self.exchanges.iter_mut().rfind(|exchange| exchange.stream == stream)
    }

    /// Whether the response to this request is in the outlet, as far as it will come.
    fn is_answered(&mut self, stream: StreamId) -> bool {
        self.exchange(stream).is_none_or(|exchange| exchange.is_answered())
    }

    /// Advances a waiting request until it has to wait again; `None`: it made progress.
    fn advance(
        &mut self,
        stream: StreamId,
        wire: &mut Wire,
        ctx: &mut Context,
        stage: Stage,
    ) -> Option<Need> {
        let has_ended_half = self.has_ended_half;
        let exchange = self.exchange(stream)?;
        // An application that holds the socket notices the hang-up itself. If it has written nothing, the gateway has
        // already ended the session.
        // Nor does a hang-up mean anything where both have ended their halves of a tunnel.
        let is_gone = wire.transport.is_hung_up() && !has_ended_half;
        if exchange.is_delegated() && !exchange.is_handed_over() && is_gone {
            return Some(self.end(Outcome::ClientGone, wire, ctx));
        }
        if stage == Stage::Write && !exchange.is_under_way() {
            let has_input = wire.transport.is_readable() || !self.protocol.is_in_body();
            return Some(if has_input { Need::Turn } else { Need::Readable });
        }
        let inbox = std::mem::take(&mut self.inbox);
        let (wants, taken) = self.drive(stream, &inbox, wire, ctx, Exchange::poll);
        self.keep(inbox, taken);
        Some(match wants {
            Wants::Nothing => {
                self.handle_answered(wire);
                self.handle_sent(0, wire, ctx);
                return None;
            }
            Wants::Body => return self.receive(wire, ctx),
            Wants::Job(job) => {
                ctx.tally.add(Metric::Jobs, 1);
                let exchange = self.exchanges.iter().find(|exchange| exchange.stream == stream);
                Need::Job(job, exchange.and_then(|exchange| exchange.client(&wire.transport)))
            }
            Wants::JobUnderWay => Need::JobUnderWay,
            Wants::Delegation(delegation) => {
                Need::Delegate(stream, self.delegate(stream, delegation, wire, &ctx.send))
            }
            Wants::Resume(end) => Need::Resume(stream, end),
            Wants::Turn => Need::Turn,
            Wants::ResponseEvent => Need::ResponseEvent(stream),
            Wants::ResponseAwaited => Need::ResponseAwaited,
        })
    }

    /// Calls `act` on an exchange, with the `input` behind its head. Returns also how many bytes of the input it
    /// consumed.
    fn drive<R: Default>(
        &mut self,
        stream: StreamId,
        input: &[u8],
        wire: &mut Wire,
        ctx: &mut Context,
        act: impl FnOnce(&mut Exchange, &mut Env<'_>) -> R,
    ) -> (R, usize) {
        let exchange = self.exchanges.iter_mut().rfind(|exchange| exchange.stream == stream);
        let Some(exchange) = exchange else { return Default::default() };
        let is_alone = wire.outlet.is_empty();
        let by_reference = wire.transport.sends_files();
        let is_last = ctx.is_last_request_of(&wire.transport);
        let reply = self.protocol.respond(&mut wire.outlet, is_last, by_reference, input);
        let mut env = Env {
            stream,
            ctx,
            reply: Responder::Http1(reply),
            listener: wire.listener,
            client: &wire.transport,
            trial: None,
        };
        let result = act(exchange, &mut env);
        let Env { reply, trial, .. } = env;
        let written = reply.finish(exchange.is_answered());
        exchange.record.handle_queued(written.bytes, written.head_bytes);
        self.trial = trial.filter(|_| is_alone);
        (result, written.consumed)
    }

    /// The last request is answered, and all input has been read that the session knows of: either the next one
    /// follows, or the connection ends.
    fn handle_answered(&mut self, wire: &mut Wire) {
        let has_unread_input = self.has_unread_input(wire);
        self.handle_answered_before(has_unread_input, wire);
    }

    /// The last request is answered; `has_unread_input`: the client may have sent more.
    fn handle_answered_before(&mut self, has_unread_input: bool, wire: &mut Wire) {
        if self.protocol.goes_on() {
            self.inbox_untried = !self.inbox.is_empty();
        } else {
            wire.state = WireState::Ending(self.protocol.last_close().lingering(has_unread_input));
        }
    }

    /// Completes a request for an application with what the transport offers.
    fn delegate(
        &mut self,
        stream: StreamId,
        delegation: Delegation,
        wire: &mut Wire,
        policy: &SendPolicy,
    ) -> baton_cache::Request {
        let Delegation { mut request, ask, terms } = delegation;
        let sent = wire.outlet.sent();
        request.handover = terms.and_then(|terms| wire.transport.hand_over(terms, sent, policy));
        self.streamed_body =
            request.rest.as_ref().and_then(|_| self.protocol.lend_body()).map(StreamedBody::of_rest);
        if let Some(exchange) = self.exchange(stream).filter(|_| request.handover.is_some()) {
            exchange.handle_handed_over();
        }
        baton_cache::Request { upstream: request, ask }
    }

    /// The gateway's event for the delegated request; `None`: nothing more for now.
    pub(super) fn handle_response_event(
        &mut self,
        stream: StreamId,
        event: Option<ResponseEvent>,
        wire: &mut Wire,
        ctx: &mut Context,
    ) {
        if !self.exchange(stream).is_some_and(|exchange| exchange.is_delegated()) {
            return;
        }
        if let Some(ResponseEvent::Chosen(chosen)) = &event
            && self.hand_off(stream, chosen, wire, ctx)
        {
            return;
        }
        match &event {
            Some(ResponseEvent::Rest(rest)) => {
                handle_sent_by_others(rest.head_sent, rest.body_sent, wire, ctx);
            }
            Some(ResponseEvent::Answered(answered)) => {
                handle_sent_by_others(answered.head_bytes, answered.body_bytes, wire, ctx);
                if !answered.complete || answered.outcome != AnswerOutcome::Complete {
                    // Closing with unread requests would send a reset, and the client would lose what it has not read.
                    wire.transport.handle_read_by_others();
                }
            }
            Some(ResponseEvent::End { .. } | ResponseEvent::Failed(_)) => {
                let left = self.stop_streaming(wire);
                self.protocol.pass_unread(left);
            }
            _ => {}
        }
        let is_switch = matches!(event, Some(ResponseEvent::Switch(_)));
        let (lost, _) =
            self.drive(stream, &[], wire, ctx, |exchange, env| exchange.handle_response_event(env, event));
        if is_switch {
            self.open_tunnel();
        }
        if wire.outlet.is_empty() {
            self.end_half(wire);
        }
        if let Some(outcome) = lost {
            self.end(outcome, wire, ctx);
        } else if self.is_answered(stream) {
            self.handle_answered(wire);
            self.handle_sent(0, wire, ctx);
        }
    }

    /// The kernel has taken so many bytes: logs the requests whose responses they complete.
    fn handle_sent(&mut self, mut bytes: u64, wire: &mut Wire, ctx: &mut Context) {
        while let Some(exchange) = self.exchanges.front_mut() {
            bytes = exchange.record.handle_sent(bytes, &ctx.clock);
            if !exchange.record.is_complete() {
                return;
            }
            if let Some(exchange) = self.exchanges.pop_front() {
                exchange.record.end(Outcome::Complete, wire.transport.peer(), ctx);
                wire.note_request_ended(ctx);
            }
        }
    }

    /// Ends the session at once, and logs unfinished requests with this outcome.
    pub(super) fn end(&mut self, outcome: Outcome, wire: &mut Wire, ctx: &mut Context) -> Need {
        self.handle_sent(0, wire, ctx);
        self.protocol.cut();
        if !self.exchanges.is_empty() && self.protocol.last_close() == LastClose::Reset {
            // After an orderly close, a response that is delimited by it would look complete.
            wire.transport.reset();
        }
        self.end_exchanges(outcome, wire, ctx);
        wire.finish(ctx)
    }

    /// Logs every request that is not logged yet, including one that was cut off in its head.
    fn end_exchanges(&mut self, outcome: Outcome, wire: &mut Wire, ctx: &mut Context) {
        if self.exchanges.iter().all(Exchange::is_answered)
            && wire.is_open()
            && !self.inbox.trim_ascii_start().is_empty()
        {
            let stream = self.protocol.take_unreadable(&self.inbox);
            let mut exchange = Exchange::new(stream, &ctx.clock);
            exchange.note_unreadable(self.inbox.trim_ascii_start(), ctx);
            wire.note_request_begun(ctx);
            self.exchanges.push_back(exchange);
        }
        while let Some(exchange) = self.exchanges.pop_front() {
            exchange.record.end(outcome, wire.transport.peer(), ctx);
            wire.note_request_ended(ctx);
        }
    }

    /// Like [`end`](Self::end), but with a reset: the kernel drops what the client has not taken.
    fn reset(&mut self, outcome: Outcome, wire: &mut Wire, ctx: &mut Context) -> Need {
        wire.transport.reset();
        self.end(outcome, wire, ctx)
    }

    /// `None`: all is sent.
    fn send(&mut self, wire: &mut Wire, ctx: &mut Context) -> Option<Need> {
        // What sealing costs says nothing about connections in clear.
        let is_clear = wire.transport.tls().is_none();
        let trial = self.trial.take().filter(|_| is_clear && wire.transport.sends_files());
        let started = trial.map(|_| Instant::now());
        if matches!(wire.state, WireState::Ending(close) if close != LastClose::Reset) {
            wire.transport.end_behind_output();
        }
        let (sent, flush) = wire.send(&ctx.send, &mut ctx.scratch, &ctx.clock);
        // Only complete sends are comparable: the duration of any other depends on the client.
        if let (Some(trial), Some(started), Flush::Done) = (trial, started, &flush) {
            ctx.send_ways.handle_cost(trial, started.elapsed());
        }
        ctx.tally.add(Metric::BytesSent, sent);
        self.handle_sent(sent, wire, ctx);
        match wire.need_after(flush, ctx) {
            Ok(None) => {
                self.end_half(wire);
                for exchange in &mut self.exchanges {
                    // Tell the gateway that there is room, or the application may wait for it forever.
                    exchange.handle_room();
                }
                self.wait_for_input(wire, ctx);
                None
            }
            // Another process can wait for the disk, or for the client.
            Ok(Some(Need::Job(..))) if self.leaves_before_job(wire, ctx) => Some(Need::Turn),
            Ok(Some(Need::Job(job, client))) => {
                let sent = self.exchanges.front();
                Some(Need::Job(job, sent.map_or(client, |exchange| exchange.client(&wire.transport))))
            }
            Ok(need) => need,
            Err(outcome) => Some(self.end(outcome, wire, ctx)),
        }
    }

    /// Everything is sent: if that is all that the origin sends into a tunnel, the client is told, and may go on.
    fn end_half(&mut self, wire: &mut Wire) {
        if self.protocol.take_half_end() {
            self.has_ended_half = true;
            wire.transport.end_output();
        }
    }

    /// Everything is sent and the connection is to end.
    fn close(&mut self, close: LastClose, wire: &mut Wire, ctx: &mut Context) -> Need {
        // The client may have sent more while the last response was on its way.
        match wire.close(close, self.has_unread_input(wire)) {
            Closing::Now => self.end(Outcome::Complete, wire, ctx),
            Closing::Reset => self.reset(Outcome::Complete, wire, ctx),
            Closing::Linger => {
                self.inbox = Vec::new();
                self.wait_for(Waiting::Linger, wire, ctx);
                self.linger(wire, ctx)
            }
        }
    }

    fn linger(&mut self, wire: &mut Wire, ctx: &mut Context) -> Need {
        match wire.linger(ctx) {
            Some(need) => need,
            None => self.end(Outcome::Complete, wire, ctx),
        }
    }
}

/// Counts the bytes that an application claims to have sent. The claim is not verified.
fn handle_sent_by_others(head_bytes: u64, body_bytes: u64, wire: &mut Wire, ctx: &mut Context) {
    let bytes = head_bytes.saturating_add(body_bytes);
    ctx.tally.add(Metric::BytesSent, bytes);
    wire.transport.handle_sent_by_others(bytes);
}

//! A client: its transport, the protocol on it, its exchanges, and what is being sent.
//!
//! [`Session::step`] advances the client until it has to wait, and returns what it needs next. The architecture decides
//! which thread waits. See `LIFECYCLE.md` beside this file for the states.

mod deadline;
mod input;
mod state;
mod streamed_body;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use baton_buf::{Slice, Stop};
use baton_fcgi::AnswerOutcome;
use baton_gateway::{ClientSocket, News, Why};

use crate::context::Context;
use crate::exchange::{Delegation, Env, Exchange, Wants};
use crate::job::{Job, JobDone};
use crate::log::Outcome;
use crate::metrics::Metric;
use crate::outlet::{Flush, Outlet};
use crate::protocol::{Http1, LastClose, StreamId};
use crate::send_way::Trial;
use crate::transport::{Received, Transport};
use state::{State, StreamedBody, Waiting};

/// What a session needs before its next step.
#[derive(Debug)]
pub(crate) enum Need {
    /// Its socket readable.
    Readable,
    /// Its socket writable.
    Writable,
    /// A job done that may block; then [`Session::handle_job`].
    Job(Job),
    /// The job that was asked for before.
    JobUnderWay,
    /// A request to be given to its application; then [`Session::handle_news`].
    Delegate(Box<baton_gateway::Request>),
    /// A piece of a delegated request's body to be passed on, or the reason why no more will come.
    Body(Result<Slice, Why>),
    /// The gateway's next event for the delegated request, or `None` if there is none yet.
    News,
    /// To be woken by the gateway's next event for that request.
    NewsUnderWay,
    /// Another step, after other clients have had a turn or on a thread of the other stage.
    Turn,
    /// Nothing ever again: drop it.
    Finished,
}

/// The halves of the work, for architectures that give them to different threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Reading, parsing, finding content.
    Read,
    /// Sending.
    Write,
    /// Both.
    Any,
}

/// One client.
#[derive(Debug)]
pub(crate) struct Session {
    transport: Transport,
    listener: usize,
    protocol: Http1,
    outlet: Outlet,
    /// Requests whose responses the kernel has not taken completely, oldest first. With HTTP/1 only the last may still
    /// wait for something; all others are answered.
    exchanges: VecDeque<Exchange>,
    /// Unparsed input: an incomplete head, or pipelined requests. Holds no memory while it is empty.
    inbox: Vec<u8>,
    /// Whether the inbox may hold a whole request.
    inbox_untried: bool,
    /// The rest of the delegated request's body, if the request was delegated before its body was complete.
    streamed_body: Option<StreamedBody>,
    /// The measurement of the outlet's content, which is one response alone.
    trial: Option<Trial>,
    state: State,
    waiting: Waiting,
    deadline_ms: u64,
    /// What the outlet had sent when the deadline was set.
    sent_at_deadline_start: u64,
}

impl Session {
    /// A client that has just been accepted on the listener with this id.
    pub(crate) fn new(socket: OwnedFd, peer: Option<SocketAddr>, listener: usize, ctx: &mut Context) -> Self {
        Self::over(Transport::new(socket, peer), listener, ctx)
    }

    /// Like [`new`](Self::new), over any transport.
    pub(crate) fn over(transport: Transport, listener: usize, ctx: &mut Context) -> Self {
        ctx.tally.add(Metric::ConnectionsAccepted, 1);
        ctx.tally.add(Metric::ConnectionsOpen, 1);
        let mut session = Self {
            transport,
            listener,
            protocol: Http1::new(),
            outlet: Outlet::default(),
            exchanges: VecDeque::new(),
            inbox: Vec::new(),
            inbox_untried: false,
            streamed_body: None,
            trial: None,
            state: State::Open,
            waiting: Waiting::FirstRequest,
            deadline_ms: u64::MAX,
            sent_at_deadline_start: 0,
        };
        session.wait_for(Waiting::FirstRequest, ctx);
        session
    }

    /// The socket, to wait on.
    pub(crate) fn socket(&self) -> &Arc<ClientSocket> {
        self.transport.socket()
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due, in milliseconds of the clock; `u64::MAX`: never.
    pub(crate) fn deadline_ms(&self) -> u64 {
        self.deadline_ms
    }

    /// Which half of the work is next.
    pub(crate) fn stage(&self) -> Stage {
        if self.outlet.is_empty() { Stage::Read } else { Stage::Write }
    }

    /// Whether every request that has begun is answered, so that closing the connection loses nothing.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.state, State::Open)
            && self.exchanges.is_empty()
            && self.outlet.is_empty()
            && self.inbox.is_empty()
            && !self.protocol.is_in_unwanted_body()
    }

    /// Whether the client may have sent input that the session has not parsed.
    fn has_unread_input(&self) -> bool {
        self.transport.is_readable() || !self.inbox.is_empty() || self.protocol.has_body_ahead()
    }

    fn waits_for_job(&self) -> bool {
        self.waiting == Waiting::Job
    }

    /// The socket has something to read.
    pub(crate) fn handle_readable(&mut self) {
        self.transport.handle_readable();
    }

    /// The client has ended its input, perhaps behind unread data, or is gone. For pollers that report this only once.
    pub(crate) fn handle_input_end(&mut self) {
        self.transport.handle_input_end();
    }

    /// The connection is over in both directions: no answer can arrive.
    pub(crate) fn handle_hangup(&mut self) {
        self.transport.handle_hangup();
    }

    /// Whether a request of this session is with an application.
    pub(crate) fn is_delegated(&self) -> bool {
        self.exchanges.iter().any(Exchange::is_delegated)
    }

    /// The job that [`Need::Job`] asked for is done.
    pub(crate) fn handle_job(&mut self, done: JobDone, ctx: &Context) {
        match done {
            JobDone::Found(stream, found) => {
                if let Some(exchange) = self.exchange(stream) {
                    exchange.handle_found(found);
                }
            }
            JobDone::PagedIn { until } => self.outlet.handle_pages(until),
            JobDone::Sent(sent) => self.outlet.handle_waited(sent),
        }
        self.wait_for(Waiting::Send, ctx);
    }

    /// Goes as far as it can without waiting; `stage` says which half of the work the caller does.
    pub(crate) fn step(&mut self, ctx: &mut Context, stage: Stage) -> Need {
        if self.waits_for_job() {
            return Need::JobUnderWay;
        }
        let need = self.go(ctx, stage);
        self.await_need(&need, ctx);
        need
    }

    fn go(&mut self, ctx: &mut Context, stage: Stage) -> Need {
        loop {
            // The body first: the client may take no response before it has sent its body.
            if let Some(need) = self.stream_body(ctx) {
                return need;
            }
            if !self.outlet.is_empty() {
                if stage == Stage::Read {
                    return Need::Writable;
                }
                if let Some(need) = self.send(ctx) {
                    return need;
                }
            }
            // The outlet is empty: every response in front of a waiting request has been sent.
            let waiting = self.exchanges.iter().find(|exchange| !exchange.is_answered());
            let need = match (&self.state, waiting.map(|exchange| exchange.stream)) {
                (State::Open, Some(stream)) => self.advance(stream, ctx, stage),
                (State::Open, None) if stage == Stage::Write => {
                    let has_input = self.transport.is_readable() || self.inbox_untried;
                    Some(if has_input { Need::Turn } else { Need::Readable })
                }
                (State::Open, None) => self.receive(ctx),
                (State::Ending(close), _) => Some(self.close(*close, ctx)),
                (State::Lingering, _) => Some(self.linger(ctx)),
                (State::Closed, _) => Some(Need::Finished),
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
    fn advance(&mut self, stream: StreamId, ctx: &mut Context, stage: Stage) -> Option<Need> {
        let is_hung_up = self.transport.is_hung_up();
        let exchange = self.exchange(stream)?;
        // An application that holds the socket notices the hang-up itself. If it has written nothing, the gateway has
        // already ended the session.
        if exchange.is_delegated() && !exchange.is_handed_over() && is_hung_up {
            return Some(self.end(Outcome::ClientGone, ctx));
        }
        if stage == Stage::Write && !exchange.is_under_way() {
            let has_input = self.transport.is_readable() || !self.protocol.is_in_body();
            return Some(if has_input { Need::Turn } else { Need::Readable });
        }
        let inbox = std::mem::take(&mut self.inbox);
        let (wants, taken) = self.drive(stream, &inbox, ctx, Exchange::poll);
        self.keep(inbox, taken);
        Some(match wants {
            Wants::Nothing => {
                self.handle_answered(self.has_unread_input());
                self.handle_sent(0, ctx);
                return None;
            }
            Wants::Body => return self.receive(ctx),
            Wants::Job(job) => {
                ctx.tally.add(Metric::Jobs, 1);
                Need::Job(job)
            }
            Wants::JobUnderWay => Need::JobUnderWay,
            Wants::Delegation(delegation) => Need::Delegate(self.delegate(stream, delegation)),
            Wants::News => Need::News,
            Wants::NewsUnderWay => Need::NewsUnderWay,
        })
    }

    /// Calls `act` on an exchange, with the `input` behind its head. Returns also how many bytes of the input it
    /// consumed.
    fn drive<R: Default>(
        &mut self,
        stream: StreamId,
        input: &[u8],
        ctx: &mut Context,
        act: impl FnOnce(&mut Exchange, &mut Env<'_>) -> R,
    ) -> (R, usize) {
        let exchange = self.exchanges.iter_mut().rfind(|exchange| exchange.stream == stream);
        let Some(exchange) = exchange else { return Default::default() };
        let (start, is_alone) = (self.outlet.end(), self.outlet.is_empty());
        let reply = self.protocol.respond(&mut self.outlet, ctx.draining, input);
        let mut env =
            Env { stream, ctx, reply, listener: self.listener, client: &self.transport, trial: None };
        let result = act(exchange, &mut env);
        let Env { reply, trial, .. } = env;
        let (taken, head_bytes) = reply.finish();
        exchange.record.handle_queued(self.outlet.end() - start, head_bytes);
        self.trial = trial.filter(|_| is_alone);
        (result, taken)
    }

    /// The last request is answered: either the next one follows, or the connection ends.
    fn handle_answered(&mut self, has_unread_input: bool) {
        if self.protocol.goes_on() {
            self.inbox_untried = !self.inbox.is_empty();
        } else {
            self.state = State::Ending(self.protocol.last_close().lingering(has_unread_input));
        }
    }

    /// Completes a request for an application with what the transport offers.
    fn delegate(&mut self, stream: StreamId, delegation: Delegation) -> Box<baton_gateway::Request> {
        let Delegation { mut request, terms } = delegation;
        request.handover = terms.and_then(|terms| self.transport.hand_over(terms, self.outlet.sent()));
        self.streamed_body = request.rest.as_ref().map(|rest| StreamedBody::new(rest.left()));
        if self.streamed_body.is_some() {
            self.protocol.handle_body_lent();
        }
        if let Some(exchange) = self.exchange(stream).filter(|_| request.handover.is_some()) {
            exchange.handle_handed_over();
        }
        request
    }

    /// The gateway's event for the delegated request; `None`: nothing more for now.
    pub(crate) fn handle_news(&mut self, news: Option<News>, ctx: &mut Context) {
        let delegated = self.exchanges.iter().find(|exchange| exchange.is_delegated());
        let Some(stream) = delegated.map(|exchange| exchange.stream) else { return };
        match &news {
            Some(News::Rest(rest)) => {
                self.handle_sent_by_others(rest.head_sent, rest.body_sent, ctx);
            }
            Some(News::Answered(answered)) => {
                self.handle_sent_by_others(answered.head_bytes, answered.body_bytes, ctx);
                if !answered.complete || answered.outcome != AnswerOutcome::Complete {
                    // Closing with unread requests would send a reset, and the client would lose what it has not read.
                    self.transport.handle_read_by_others();
                }
            }
            Some(News::End { .. } | News::Failed(_)) => {
                let left = self.stop_streaming();
                self.protocol.pass_unread(left);
            }
            _ => {}
        }
        let (lost, _) = self.drive(stream, &[], ctx, |exchange, env| exchange.handle_news(env, news));
        if let Some(outcome) = lost {
            self.end(outcome, ctx);
        } else if self.is_answered(stream) {
            self.handle_answered(self.has_unread_input());
            self.handle_sent(0, ctx);
        }
    }

    /// Counts the bytes that an application claims to have sent. The claim is not verified.
    fn handle_sent_by_others(&mut self, head_bytes: u64, body_bytes: u64, ctx: &mut Context) {
        let bytes = head_bytes.saturating_add(body_bytes);
        ctx.tally.add(Metric::BytesSent, bytes);
        self.transport.handle_sent_by_others(bytes);
    }

    /// The kernel has taken so many bytes: logs the requests whose responses they complete.
    fn handle_sent(&mut self, mut bytes: u64, ctx: &mut Context) {
        while let Some(exchange) = self.exchanges.front_mut() {
            bytes = exchange.record.handle_sent(bytes);
            if !exchange.record.is_complete() {
                return;
            }
            if let Some(exchange) = self.exchanges.pop_front() {
                exchange.record.end(Outcome::Complete, self.transport.peer(), ctx);
            }
        }
    }

    /// Ends the session at once, and logs unfinished requests with this outcome.
    pub(crate) fn end(&mut self, outcome: Outcome, ctx: &mut Context) -> Need {
        self.handle_sent(0, ctx);
        self.protocol.cut();
        if !self.exchanges.is_empty() && self.protocol.last_close() == LastClose::Reset {
            // After an orderly close, a response that is delimited by it would look complete.
            self.transport.reset();
        }
        self.end_exchanges(outcome, ctx);
        self.outlet.clear();
        if !matches!(self.state, State::Closed) {
            self.state = State::Closed;
            ctx.tally.subtract(Metric::ConnectionsOpen, 1);
        }
        Need::Finished
    }

    /// Logs every request that is not logged yet, including one that was cut off in its head.
    fn end_exchanges(&mut self, outcome: Outcome, ctx: &mut Context) {
        if self.exchanges.iter().all(Exchange::is_answered)
            && matches!(self.state, State::Open)
            && !self.inbox.trim_ascii_start().is_empty()
        {
            let mut exchange = Exchange::new(self.protocol.take_unreadable(), ctx.clock.now_ms());
            exchange.note_unreadable(self.inbox.trim_ascii_start(), ctx);
            self.exchanges.push_back(exchange);
        }
        while let Some(exchange) = self.exchanges.pop_front() {
            exchange.record.end(outcome, self.transport.peer(), ctx);
        }
    }

    /// Like [`end`](Self::end), but with a reset: the kernel drops what the client has not taken.
    fn reset(&mut self, outcome: Outcome, ctx: &mut Context) -> Need {
        self.transport.reset();
        self.end(outcome, ctx)
    }

    /// `None`: all is sent.
    fn send(&mut self, ctx: &mut Context) -> Option<Need> {
        let last = matches!(self.state, State::Ending(_));
        let before = self.outlet.sent();
        let unix_seconds = ctx.clock.stamp().unix_seconds;
        let trial = self.trial.take().filter(|_| self.transport.sends_files());
        let started = trial.map(|_| Instant::now());
        let flush = self.transport.flush(&mut self.outlet, &ctx.send, &mut ctx.scratch, last, unix_seconds);
        // Only complete sends are comparable: the duration of any other depends on the client.
        if let (Some(trial), Some(started), Flush::Done) = (trial, started, &flush) {
            ctx.send_ways.handle_cost(trial, started.elapsed());
        }
        let sent = self.outlet.sent() - before;
        ctx.tally.add(Metric::BytesSent, sent);
        self.handle_sent(sent, ctx);
        match flush {
            Flush::Done => {
                for exchange in &mut self.exchanges {
                    // Tell the gateway that there is room, or the application may wait for it forever.
                    exchange.handle_room();
                }
                self.wait_for_input(ctx);
                None
            }
            Flush::Full => Some(Need::Writable),
            Flush::Quantum => Some(Need::Turn),
            Flush::NeedsPages(slice) => {
                ctx.tally.add(Metric::Jobs, 1);
                Some(Need::Job(Job::PageIn(slice)))
            }
            Flush::Waits(slice) => {
                ctx.tally.add(Metric::Jobs, 1);
                let patience = Duration::from_millis(ctx.plan.limits.send_timeout_ms.max(1));
                Some(Need::Job(Job::Send { socket: Arc::clone(self.transport.socket()), slice, patience }))
            }
            Flush::Over(Stop::FileShrank) => Some(self.end(Outcome::FileChanged, ctx)),
            Flush::Over(Stop::FileFailed) => Some(self.end(Outcome::Failed, ctx)),
            Flush::Over(Stop::PeerGone | Stop::Full) => Some(self.end(Outcome::ClientGone, ctx)),
        }
    }

    /// Everything is sent and the connection is to end.
    fn close(&mut self, close: LastClose, ctx: &mut Context) -> Need {
        // The client may have sent more while the last response was on its way.
        let close = close.lingering(self.has_unread_input());
        if close == LastClose::Reset {
            return self.reset(Outcome::Complete, ctx);
        }
        if close == LastClose::Linger && !self.transport.has_ended_input() && self.transport.end_output() {
            self.inbox = Vec::new();
            self.state = State::Lingering;
            self.wait_for(Waiting::Linger, ctx);
            return self.linger(ctx);
        }
        self.end(Outcome::Complete, ctx)
    }

    /// Discards what the client still sends: closing a socket with unread data sends a reset, which could
    /// overtake the response (RFC 9112, section 9.6).
    fn linger(&mut self, ctx: &mut Context) -> Need {
        let mut turns = LINGER_READS_MAX;
        while self.transport.is_readable() {
            match self.transport.receive(&mut ctx.scratch) {
                Received::End => return self.end(Outcome::Complete, ctx),
                Received::Bytes(_) if turns == 0 => return Need::Turn,
                Received::Bytes(_) => turns -= 1,
                Received::Nothing => {}
            }
        }
        Need::Readable
    }
}

/// Reads of a lingering client's data before other clients have a turn.
const LINGER_READS_MAX: usize = 16;

#[cfg(test)]
mod tests;

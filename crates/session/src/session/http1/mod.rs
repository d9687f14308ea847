//! A client that speaks HTTP/1: one request at a time, answers in the order of the requests.

mod deadline;
mod handing_over;
mod input;
mod lent_body;
mod moving;
mod waiting;

use baton_fcgi::AnswerOutcome;
use baton_response::send_way::Trial;
use baton_telemetry::log::Outcome;
use baton_telemetry::metrics::Metric;
use baton_upstream::ResponseEvent;

use super::driver::{Driver, Turn};
use super::exchanges::Exchanges;
use super::need::{Need, Stage};
use super::wire::{Wire, WireState};
use crate::context::Context;
use crate::exchange::Exchange;
use crate::outlet::Flush;
use crate::protocol::{Http1, LastClose, Responder, StreamId};
use waiting::Waiting;

/// HTTP/1 on a connection: the protocol's machine, and its exchanges.
#[derive(Debug)]
pub(super) struct Http1Driver {
    protocol: Http1,
    /// Requests whose responses the kernel has not taken completely. Only the last may still wait for something; all
    /// others are answered.
    exchanges: Exchanges<()>,
    /// The client has begun with the preface of HTTP/2, which lies in the inbox.
    is_http2: bool,
    /// Pieces of a lent body that were passed on since other clients had a turn.
    pieces: usize,
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

impl Driver for Http1Driver {
    type Own = ();

    const IS_MULTIPLEXED: bool = false;

    fn exchanges(&self) -> &Exchanges<()> {
        &self.exchanges
    }

    fn exchanges_mut(&mut self) -> &mut Exchanges<()> {
        &mut self.exchanges
    }

    fn step(&mut self, wire: &mut Wire, ctx: &mut Context, stage: Stage) -> Need {
        if self.waiting == Waiting::Job {
            return Need::JobUnderWay;
        }
        let need = self.go(wire, ctx, stage);
        self.await_need(&need, wire, ctx);
        need
    }

    fn handle_timeout(&mut self, wire: &mut Wire, ctx: &mut Context) -> Need {
        self.time_out(wire, ctx)
    }

    fn can_send(&self, wire: &Wire) -> bool {
        wire.has_output()
    }

    fn is_idle(&self) -> bool {
        self.exchanges.is_empty() && !self.protocol.is_in_unwanted_body()
    }

    fn waits_for_client(&self, _wire: &Wire) -> bool {
        matches!(self.waiting, Waiting::Head | Waiting::Body | Waiting::Unwanted | Waiting::Linger)
    }

    fn has_unread_input(&self, wire: &Wire) -> bool {
        wire.has_input() || self.protocol.has_body_ahead()
    }

    fn take_input(&mut self, input: &[u8], wire: &mut Wire, ctx: &mut Context) -> usize {
        self.take_requests(input, wire, ctx)
    }

    fn handle_job_done(&mut self, _of: Option<StreamId>, wire: &mut Wire, ctx: &Context) {
        // The request may want its body now, which perhaps has arrived behind its head.
        wire.retry_inbox();
        self.wait_for(Waiting::Send, wire, ctx);
    }

    fn begin_turn<'a>(
        &'a mut self,
        at: usize,
        input: &'a [u8],
        wire: &'a mut Wire,
        ctx: &Context,
    ) -> Turn<'a> {
        let by_reference = wire.transport.sends_files();
        let is_last = ctx.is_last_request_of(&wire.transport);
        let reply = self.protocol.respond(&mut wire.outlet, is_last, by_reference, input);
        (&mut self.exchanges[at].exchange, Responder::Http1(reply), &wire.transport)
    }

    fn end_turn(&mut self, _at: usize, was_sent: bool, trial: Option<Trial>, _ctx: &Context) {
        // What is in front of it would be measured, too.
        self.trial = trial.filter(|_| was_sent && self.exchanges.len() == 1);
    }

    fn read_body(&mut self, _at: usize, wire: &mut Wire, ctx: &mut Context) -> Option<Need> {
        self.read(wire, ctx)
    }

    fn lend_body(&mut self, _at: usize, _left: Option<u64>) {
        self.protocol.lend_body();
        self.pieces = 0;
    }

    fn has_lent_body(&self, _at: usize) -> bool {
        self.protocol.is_lent()
    }

    fn note_response_event(
        &mut self,
        at: usize,
        event: &ResponseEvent,
        wire: &mut Wire,
        ctx: &mut Context,
    ) -> bool {
        match event {
            ResponseEvent::Chosen(chosen) => return self.hand_off(at, chosen, wire, ctx),
            ResponseEvent::Rest(rest) => {
                handle_sent_by_others(rest.head_sent, rest.body_sent, wire, ctx);
            }
            ResponseEvent::Answered(answered) => {
                handle_sent_by_others(answered.head_bytes, answered.body_bytes, wire, ctx);
                if !answered.complete || answered.outcome != AnswerOutcome::Complete {
                    // Closing with unread requests would send a reset, and the client would lose what it has not read.
                    wire.transport.handle_read_by_others();
                }
            }
            ResponseEvent::End { .. } | ResponseEvent::Failed(_) => self.take_back_body(at, wire),
            _ => {}
        }
        false
    }

    /// All input has been read that the session knows of: either the next request follows, or the connection ends.
    fn handle_answered(&mut self, at: usize, wire: &mut Wire, ctx: &mut Context) {
        self.take_back_body(at, wire);
        let has_unread_input = self.has_unread_input(wire);
        self.go_on_or_end(has_unread_input, wire);
        self.handle_sent(0, wire, ctx);
    }

    /// The other requests are answered, and what is sent of this one ends with the connection.
    fn cancel(&mut self, _at: usize, outcome: Outcome, wire: &mut Wire, ctx: &mut Context) {
        self.end(outcome, wire, ctx);
    }

    fn prepare_end(&mut self, wire: &mut Wire, ctx: &mut Context) {
        self.handle_sent(0, wire, ctx);
        self.protocol.cut();
        if !self.exchanges.is_empty() && self.protocol.last_close() == LastClose::Reset {
            // After an orderly close, a response that is delimited by it would look complete.
            wire.transport.reset();
        }
        let is_answered = self.exchanges.iter().all(|entry| entry.exchange.is_answered());
        let cut_off = wire.inbox.trim_ascii_start();
        if is_answered && wire.is_open() && !cut_off.is_empty() {
            let stream = self.protocol.take_unreadable(&wire.inbox);
            let mut exchange = Exchange::new(stream, &ctx.clock);
            exchange.note_unreadable(cut_off, ctx);
            wire.note_request_begun(ctx);
            self.exchanges.push(exchange, ());
        }
    }

    fn handle_lingering(&mut self, wire: &mut Wire, ctx: &Context) {
        wire.inbox = Vec::new();
        self.wait_for(Waiting::Linger, wire, ctx);
    }

    fn check_invariants(&self, wire: &Wire) {
        self.exchanges.check_invariants(wire);
        let is_waiting = |at: usize| !self.exchanges[at].exchange.is_answered();
        let last = self.exchanges.len().saturating_sub(1);
        assert!(!(0..last).any(is_waiting), "only the last request waits");
        let queued = self.exchanges.iter().map(|entry| entry.exchange.record.queued());
        let in_outlet = wire.outlet.queued() + wire.transport.early_data();
        assert_eq!(queued.sum::<u64>(), in_outlet, "the records share the outlet");
        assert!(self.wants_body().is_none() || self.protocol.is_lent(), "what is wanted is lent");
    }
}

impl Http1Driver {
    /// HTTP/1 on a connection that has just been accepted.
    pub(super) fn new(wire: &mut Wire, ctx: &Context) -> Self {
        let mut driver = Self {
            protocol: Http1::new(),
            exchanges: Exchanges::default(),
            is_http2: false,
            pieces: 0,
            has_ended_half: false,
            gives_back: false,
            keeps_next: false,
            trial: None,
            waiting: Waiting::FirstRequest,
        };
        driver.wait_for(Waiting::FirstRequest, wire, ctx);
        driver
    }

    /// Whether the client turned out to speak HTTP/2 ("prior knowledge", RFC 9113, section 3.3).
    pub(super) fn is_http2(&self) -> bool {
        self.is_http2
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
            if wire.outlet.is_empty() {
                self.end_half(wire);
            }
            // The body first: the client may take no response before it has sent its body.
            if let Some(need) = self.pass_body_on(wire, ctx) {
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
            let need = match (wire.state, self.waiting_request()) {
                (WireState::Open, Some(at)) => self.advance(at, wire, ctx, stage),
                (WireState::Open, None) if stage == Stage::Write => {
                    let has_input = wire.transport.is_readable() || wire.is_inbox_untried;
                    Some(if has_input { Need::Turn } else { Need::Readable })
                }
                (WireState::Open, None) => self.read(wire, ctx),
                (WireState::Ending(close), _) => Some(self.close(close, wire, ctx)),
                (WireState::Lingering, _) => Some(self.linger(wire, ctx)),
                (WireState::Closed, _) => Some(Need::Finished),
            };
            if let Some(need) = need {
                return need;
            }
        }
    }

    /// Where the request is that is not answered; `None`: all are.
    fn waiting_request(&self) -> Option<usize> {
        self.exchanges.last().filter(|&at| !self.exchanges[at].exchange.is_answered())
    }

    /// Advances a waiting request until it has to wait again; `None`: it made progress.
    fn advance(&mut self, at: usize, wire: &mut Wire, ctx: &mut Context, stage: Stage) -> Option<Need> {
        let exchange = &self.exchanges[at].exchange;
        // An application that holds the socket notices the hang-up itself. If it has written nothing, the gateway has
        // already ended the session.
        // Nor does a hang-up mean anything where both have ended their halves of a tunnel.
        let is_gone = wire.transport.is_hung_up() && !self.has_ended_half;
        if exchange.is_delegated() && !exchange.is_handed_over() && is_gone {
            return Some(self.end(Outcome::ClientGone, wire, ctx));
        }
        if stage == Stage::Write && !exchange.is_under_way() {
            let has_input = wire.transport.is_readable() || !self.protocol.is_in_body();
            return Some(if has_input { Need::Turn } else { Need::Readable });
        }
        let inbox = std::mem::take(&mut wire.inbox);
        let (wants, taken) = self.drive(at, &inbox, wire, ctx, Exchange::poll);
        wire.keep(inbox, taken);
        self.need_of(at, wants, wire, ctx)
    }

    /// The last request is answered; `has_unread_input`: the client may have sent more.
    fn go_on_or_end(&mut self, has_unread_input: bool, wire: &mut Wire) {
        if self.protocol.goes_on() {
            wire.retry_inbox();
        } else {
            wire.state = WireState::Ending(self.protocol.last_close().lingering(has_unread_input));
        }
    }

    /// The kernel has taken so many bytes: logs the requests whose responses they complete.
    fn handle_sent(&mut self, mut bytes: u64, wire: &mut Wire, ctx: &mut Context) {
        while !self.exchanges.is_empty() {
            let record = &mut self.exchanges[0].exchange.record;
            bytes = record.handle_sent(bytes, &ctx.clock);
            if !record.is_complete() {
                return;
            }
            self.exchanges.log(0, Outcome::Complete, wire, ctx);
        }
    }

    /// `None`: all is sent.
    fn send(&mut self, wire: &mut Wire, ctx: &mut Context) -> Option<Need> {
        // What sealing costs says nothing about connections in clear.
        let is_clear = wire.transport.tls().is_none();
        let trial = self.trial.take().filter(|_| is_clear && wire.transport.sends_files());
        let started = trial.map(|_| ctx.clock.exact_ns());
        if matches!(wire.state, WireState::Ending(close) if close != LastClose::Reset) {
            wire.transport.end_behind_output();
        }
        let (sent, flush) = wire.send(&ctx.send, &mut ctx.scratch, &ctx.clock);
        // Only complete sends are comparable: the duration of any other depends on the client.
        if let (Some(trial), Some(started), Flush::Done) = (trial, started, &flush) {
            ctx.send_ways.handle_cost(trial, ctx.clock.exact_ns() - started);
        }
        ctx.tally.add(Metric::BytesSent, sent);
        self.handle_sent(sent, wire, ctx);
        match wire.need_after(flush, ctx) {
            Ok(None) => {
                self.end_half(wire);
                for entry in self.exchanges.iter_mut() {
                    // Tell the gateway that there is room, or the application may wait for it forever.
                    entry.exchange.handle_room();
                }
                self.wait_for_input(wire, ctx);
                None
            }
            // Another process can wait for the disk, or for the client.
            Ok(Some(Need::Job(..))) if self.leaves_before_job(wire, ctx) => Some(Need::Turn),
            Ok(Some(Need::Job(job, client))) => {
                let sent = self.exchanges.iter().next();
                Some(Need::Job(job, sent.map_or(client, |sent| sent.exchange.client(&wire.transport))))
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
}

/// Counts the bytes that an application claims to have sent. The claim is not verified.
fn handle_sent_by_others(head_bytes: u64, body_bytes: u64, wire: &mut Wire, ctx: &mut Context) {
    let bytes = head_bytes.saturating_add(body_bytes);
    ctx.tally.add(Metric::BytesSent, bytes);
    wire.transport.handle_sent_by_others(bytes);
}

//! A client that speaks HTTP/1: one request at a time, answers in the order of the requests.

mod deadline;
mod handing_off;
mod input;
mod lent_body;
mod moving;
mod waiting;

use baton_fcgi::AnswerOutcome;
use baton_pool::Chunk;
use baton_response::send_way::Trial;
use baton_telemetry::log::Outcome;
use baton_telemetry::metrics::Metric;
use baton_upstream::ResponseEvent;

use super::connection::{ClientConnection, ConnectionState};
use super::driver::{Driver, Turn};
use super::exchanges::{Exchanges, Underway};
use super::need::{Need, Stage};
use crate::context::Context;
use crate::exchange::Exchange;
use crate::protocol::{Http1, LastClose, Responder, StreamId};
use crate::send_queue::Flush;
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
    /// What is free of the chunk with the last piece.
    room: Option<Chunk>,
    /// The server's half of a tunnel has ended.
    has_ended_half: bool,
    /// The request at the front of the inbox is for the front-end that has handed the connection over, or all that comes is.
    gives_back: bool,
    /// The front-end could not be given it: it is answered here.
    keeps_next: bool,
    /// The measurement of the send queue's content, which is one response alone.
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

    fn step(&mut self, connection: &mut ClientConnection, ctx: &mut Context, stage: Stage) -> Need {
        if self.waiting == Waiting::Job {
            return Need::JobUnderWay;
        }
        let need = self.go(connection, ctx, stage);
        self.await_need(&need, connection, ctx);
        need
    }

    fn handle_timeout(&mut self, connection: &mut ClientConnection, ctx: &mut Context) -> Need {
        self.time_out(connection, ctx)
    }

    fn can_send(&self, connection: &ClientConnection) -> bool {
        connection.has_output()
    }

    fn is_idle(&self) -> bool {
        self.exchanges.is_empty() && !self.protocol.is_in_unwanted_body()
    }

    fn waits_for_client(&self, _connection: &ClientConnection) -> bool {
        matches!(self.waiting, Waiting::Head | Waiting::Body | Waiting::Unwanted | Waiting::Linger)
    }

    fn has_unread_input(&self, connection: &ClientConnection) -> bool {
        connection.has_input() || self.protocol.has_body_ahead()
    }

    fn take_input(&mut self, input: &[u8], connection: &mut ClientConnection, ctx: &mut Context) -> usize {
        self.take_requests(input, connection, ctx)
    }

    fn handle_job_done(&mut self, _of: Option<StreamId>, connection: &mut ClientConnection, ctx: &Context) {
        // The request may want its body now, which perhaps has arrived behind its head.
        connection.retry_inbox();
        self.wait_for(Waiting::Send, connection, ctx);
    }

    fn begin_turn<'a>(
        &'a mut self,
        at: usize,
        input: &'a [u8],
        connection: &'a mut ClientConnection,
        ctx: &Context,
    ) -> Turn<'a> {
        let by_reference = connection.transport.sends_files();
        let is_last = ctx.is_last_request_of(&connection.transport);
        let reply = self.protocol.respond(&mut connection.send_queue, is_last, by_reference, input);
        (&mut self.exchanges[at].exchange, Responder::Http1(reply), &connection.transport)
    }

    fn end_turn(&mut self, _at: usize, was_sent: bool, trial: Option<Trial>, _ctx: &Context) {
        // What is in front of it would be measured, too.
        self.trial = trial.filter(|_| was_sent && self.exchanges.len() == 1);
    }

    fn read_body(
        &mut self,
        _at: usize,
        connection: &mut ClientConnection,
        ctx: &mut Context,
    ) -> Option<Need> {
        self.read(connection, ctx)
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
        connection: &mut ClientConnection,
        ctx: &mut Context,
    ) -> bool {
        match event {
            ResponseEvent::Chosen(chosen) => return self.hand_off(at, chosen, connection, ctx),
            ResponseEvent::Rest(rest) => {
                handle_sent_by_others(rest.head_sent, rest.body_sent, connection, ctx);
            }
            ResponseEvent::Answered(answered) => {
                handle_sent_by_others(answered.head_bytes, answered.body_bytes, connection, ctx);
                if !answered.complete || answered.outcome != AnswerOutcome::Complete {
                    // Closing with unread requests would send a reset, and the client would lose what it has not read.
                    connection.transport.handle_read_by_others();
                }
            }
            ResponseEvent::End { .. } | ResponseEvent::Failed(_) => self.take_back_body(at, connection),
            _ => {}
        }
        false
    }

    /// All input has been read that the session knows of: either the next request follows, or the connection ends.
    fn handle_answered(&mut self, at: usize, connection: &mut ClientConnection, ctx: &mut Context) {
        self.take_back_body(at, connection);
        let has_unread_input = self.has_unread_input(connection);
        self.go_on_or_end(has_unread_input, connection);
        self.handle_sent(0, connection, ctx);
    }

    /// The other requests are answered, and what is sent of this one ends with the connection.
    fn cancel(&mut self, _at: usize, outcome: Outcome, connection: &mut ClientConnection, ctx: &mut Context) {
        self.end(outcome, connection, ctx);
    }

    fn prepare_end(&mut self, connection: &mut ClientConnection, ctx: &mut Context) {
        self.handle_sent(0, connection, ctx);
        self.protocol.cut();
        if !self.exchanges.is_empty() && self.protocol.last_close() == LastClose::Reset {
            // After an orderly close, a response that is delimited by it would look complete.
            connection.transport.reset();
        }
        let is_answered = self.exchanges.iter().all(|entry| entry.exchange.is_answered());
        let cut_off = connection.inbox.trim_ascii_start();
        if is_answered && connection.is_open() && !cut_off.is_empty() {
            let stream = self.protocol.take_unreadable(&connection.inbox);
            let mut exchange = Exchange::new(stream, &ctx.clock);
            exchange.note_unreadable(cut_off, ctx);
            connection.note_request_begun(ctx);
            self.exchanges.push(exchange, ());
        }
    }

    fn handle_lingering(&mut self, connection: &mut ClientConnection, ctx: &Context) {
        connection.inbox = Vec::new();
        self.wait_for(Waiting::Linger, connection, ctx);
    }

    fn check_invariants(&self, connection: &ClientConnection) {
        self.exchanges.check_invariants(connection);
        let is_waiting = |at: usize| !self.exchanges[at].exchange.is_answered();
        let last = self.exchanges.len().saturating_sub(1);
        assert!(!(0..last).any(is_waiting), "only the last request waits");
        let queued = self.exchanges.iter().map(|entry| entry.exchange.record.queued());
        let in_queue = connection.send_queue.queued() + connection.transport.early_data();
        assert_eq!(queued.sum::<u64>(), in_queue, "the records share the send queue");
        assert!(self.wants_body().is_none() || self.protocol.is_lent(), "what is wanted is lent");
    }
}

impl Http1Driver {
    /// HTTP/1 on a connection that has just been accepted.
    pub(super) fn new(connection: &mut ClientConnection, ctx: &Context) -> Self {
        let mut driver = Self {
            protocol: Http1::new(),
            exchanges: Exchanges::default(),
            is_http2: false,
            pieces: 0,
            room: None,
            has_ended_half: false,
            gives_back: false,
            keeps_next: false,
            trial: None,
            waiting: Waiting::FirstRequest,
        };
        driver.wait_for(Waiting::FirstRequest, connection, ctx);
        driver
    }

    /// Whether the client turned out to speak HTTP/2 ("prior knowledge", RFC 9113, section 3.3).
    pub(super) fn is_http2(&self) -> bool {
        self.is_http2
    }

    fn go(&mut self, connection: &mut ClientConnection, ctx: &mut Context, stage: Stage) -> Need {
        loop {
            if self.is_http2 {
                return Need::Turn;
            }
            if std::mem::take(&mut self.gives_back)
                && let Some(need) = self.give_back(connection, ctx)
            {
                return need;
            }
            if connection.send_queue.is_empty() {
                self.end_half(connection);
            }
            // The body first: the client may take no response before it has sent its body.
            if let Some(need) = self.pass_body_on(connection, ctx) {
                return need;
            }
            if connection.has_output() {
                if stage == Stage::Read {
                    return Need::Writable;
                }
                if let Some(need) = self.send(connection, ctx) {
                    return need;
                }
            }
            // The send queue is empty: every response in front of a waiting request has been sent.
            let need = match (connection.state, self.waiting_request()) {
                (ConnectionState::Open, Some(at)) => self.advance(at, connection, ctx, stage),
                (ConnectionState::Open, None) if stage == Stage::Write => {
                    let has_input = connection.transport.is_readable() || connection.is_inbox_untried;
                    Some(if has_input { Need::Turn } else { Need::Readable })
                }
                (ConnectionState::Open, None) => self.read(connection, ctx),
                (ConnectionState::Ending(close), _) => Some(self.close(close, connection, ctx)),
                (ConnectionState::Lingering, _) => Some(self.linger(connection, ctx)),
                (ConnectionState::Closed, _) => Some(Need::Finished),
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
    fn advance(
        &mut self,
        at: usize,
        connection: &mut ClientConnection,
        ctx: &mut Context,
        stage: Stage,
    ) -> Option<Need> {
        let Underway { exchange, is_passed, .. } = &self.exchanges[at];
        // An application that holds the socket notices the hang-up itself. If it has written nothing, the gateway has
        // already ended the session.
        // Nor does a hang-up mean anything where both have ended their halves of a tunnel.
        let is_gone = connection.transport.is_hung_up() && !self.has_ended_half;
        if exchange.is_delegated() && !is_passed && is_gone {
            return Some(self.end(Outcome::ClientGone, connection, ctx));
        }
        if stage == Stage::Write && !exchange.is_under_way() {
            let has_input = connection.transport.is_readable() || !self.protocol.is_in_body();
            return Some(if has_input { Need::Turn } else { Need::Readable });
        }
        let inbox = std::mem::take(&mut connection.inbox);
        let (wants, taken) = self.drive(at, &inbox, connection, ctx, Exchange::poll);
        connection.keep(inbox, taken);
        self.need_of(at, wants, connection, ctx)
    }

    /// The last request is answered; `has_unread_input`: the client may have sent more.
    fn go_on_or_end(&mut self, has_unread_input: bool, connection: &mut ClientConnection) {
        if self.protocol.goes_on() {
            connection.retry_inbox();
        } else {
            connection.state =
                ConnectionState::Ending(self.protocol.last_close().lingering(has_unread_input));
        }
    }

    /// The kernel has taken so many bytes: logs the requests whose responses they complete.
    fn handle_sent(&mut self, mut bytes: u64, connection: &mut ClientConnection, ctx: &mut Context) {
        while !self.exchanges.is_empty() {
            let record = &mut self.exchanges[0].exchange.record;
            bytes = record.handle_sent(bytes, &ctx.clock);
            if !record.is_complete() {
                return;
            }
            self.exchanges.log(0, Outcome::Complete, connection, ctx);
        }
    }

    /// `None`: all is sent.
    fn send(&mut self, connection: &mut ClientConnection, ctx: &mut Context) -> Option<Need> {
        // What sealing costs says nothing about connections in clear.
        let is_clear = connection.transport.tls().is_none();
        let trial = self.trial.take().filter(|_| is_clear && connection.transport.sends_files());
        let started = trial.map(|_| ctx.clock.exact_ns());
        if matches!(connection.state, ConnectionState::Ending(close) if close != LastClose::Reset) {
            connection.transport.end_behind_output();
        }
        let (sent, flush) = connection.send(&ctx.send, &mut ctx.scratch, &ctx.clock);
        // Only complete sends are comparable: the duration of any other depends on the client.
        if let (Some(trial), Some(started), Flush::Done) = (trial, started, &flush) {
            ctx.send_ways.handle_cost(trial, ctx.clock.exact_ns() - started);
        }
        ctx.tally.add(Metric::BytesSent, sent);
        self.handle_sent(sent, connection, ctx);
        match connection.need_after(flush, ctx) {
            Ok(None) => {
                self.end_half(connection);
                for entry in self.exchanges.iter_mut() {
                    // Tell the gateway that there is room, or the application may wait for it forever.
                    entry.exchange.handle_room();
                }
                self.wait_for_input(connection, ctx);
                None
            }
            // Another process can wait for the disk, or for the client.
            Ok(Some(Need::Job(..))) if self.leaves_before_job(connection, ctx) => Some(Need::Turn),
            Ok(Some(Need::Job(job, client))) => {
                let sent = self.exchanges.iter().next();
                Some(Need::Job(job, sent.map_or(client, |sent| sent.exchange.client(&connection.transport))))
            }
            Ok(need) => need,
            Err(outcome) => Some(self.end(outcome, connection, ctx)),
        }
    }

    /// Everything is sent: if that is all that the origin sends into a tunnel, the client is told, and may go on.
    fn end_half(&mut self, connection: &mut ClientConnection) {
        if self.protocol.take_half_end() {
            self.has_ended_half = true;
            connection.transport.end_output();
        }
    }
}

/// Counts the bytes that an application claims to have sent. The claim is not verified.
fn handle_sent_by_others(
    head_bytes: u64,
    body_bytes: u64,
    connection: &mut ClientConnection,
    ctx: &mut Context,
) {
    let bytes = head_bytes.saturating_add(body_bytes);
    ctx.tally.add(Metric::BytesSent, bytes);
    connection.transport.handle_sent_by_others(bytes);
}

//! One connection of HTTP/2, the server's side.
//!
//! ```text
//!   input ──► receive ──► Event::{Request, Data, End, Reset, …} ──► exchanges
//!                                                                       │
//!   output ◄─ poll_transmit ◄─ control frames, heads, bodies ◄─ respond, push, end
//!                 order:           first        then   by priority
//! ```
//!
//! `receive` reads a frame or a piece of DATA, and `poll_transmit` frames what may leave now. Everything else is state:
//! which streams there are, how much each side may send, and what the client has left of its budget.

mod commands;
mod control;
mod data;
mod heads;
mod moving;
mod receive;
mod state;
mod transmit;

use std::collections::VecDeque;

use super::bounds::{Budget, SETTINGS_ACK_TIMEOUT_MS, WINDOW_UPDATES_MAX};
use super::error::{ConnectionError, ErrorCode, Violation};
use super::frame::{StreamId, push_goaway, push_reset, push_window_update};
use super::hpack::Decoder;
use super::priority::Priority;
use super::schedule::Schedule;
use super::settings::Settings;
use super::streams::{Receiving, Sending, Slot, Streams, Turn};
use super::window::{CONNECTION_WINDOW, INITIAL_WINDOW, ReceiveWindow, SendWindow};
use state::{Announcement, BlockUnderWay, Control, DataUnderWay, Drain, Phase, TableUpdate};

/// The server's side of a connection.
///
/// - *Getters*: [`wants_to_send`](Self::wants_to_send), [`open_streams`](Self::open_streams), [`queued`](Self::queued) …
/// - *Input*: [`receive`](Self::receive), [`handle_time`](Self::handle_time), [`handle_ready`](Self::handle_ready).
/// - *Commands*: [`respond`](Self::respond), [`push`](Self::push), [`end`](Self::end), [`reset`](Self::reset),
///   [`finish`](Self::finish), [`consume`](Self::consume), [`begin_drain`](Self::begin_drain), [`go_away`](Self::go_away).
/// - *Output*: [`poll_transmit`](Self::poll_transmit).
///
/// Commands for streams that have been reset have no effect, so that an owner need not race with its client.
#[derive(Debug)]
pub struct Connection {
    // Reading
    phase: Phase,
    data: Option<DataUnderWay>,
    block: Option<BlockUnderWay>,
    decoder: Decoder,

    // Streams
    streams: Streams,
    streams_max: usize,
    /// Extended CONNECT is served.
    connect_protocol: bool,
    /// Priorities of streams that are not open yet.
    early: VecDeque<(u32, Priority)>,

    // Flow control
    receive: ReceiveWindow,
    /// What unconsumed DATA cost beyond their bytes, on all streams.
    small_data: u64,
    send: SendWindow,
    /// The window of a new stream's response: SETTINGS_INITIAL_WINDOW_SIZE of the client.
    send_initial: u32,

    // Sending
    control: Control,
    announcements: VecDeque<Announcement>,
    schedule: Schedule,
    /// A client that makes HPACK's table smaller wants to hear that it is not used (RFC 7541 section 4.2). Once is enough.
    table_update: TableUpdate,

    // Bounds
    budget: Budget,
    window_updates_left: u32,
    /// When SETTINGS must have been acknowledged.
    settings_due_ms: Option<u64>,
    drain: Drain,
}

/// A window that is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stall {
    /// The window of the stream.
    Stream,
    /// The window of the connection, which all streams share.
    Connection,
}

impl Connection {
    /// A new connection. SETTINGS wait to be sent.
    pub fn new(settings: &Settings, now_ms: u64) -> Self {
        let mut control = Control::default();
        settings.push(control.next());
        push_window_update(control.next(), 0, CONNECTION_WINDOW - INITIAL_WINDOW);
        Self {
            phase: Phase::Preface,
            data: None,
            block: None,
            decoder: Decoder::new(),
            streams: Streams::default(),
            streams_max: usize::from(settings.streams_max),
            connect_protocol: settings.connect_protocol,
            early: VecDeque::new(),
            receive: ReceiveWindow::new(CONNECTION_WINDOW),
            small_data: 0,
            send: SendWindow::new(INITIAL_WINDOW),
            send_initial: INITIAL_WINDOW,
            control,
            announcements: VecDeque::new(),
            schedule: Schedule::default(),
            table_update: TableUpdate::NotNeeded,
            budget: Budget::new(now_ms),
            window_updates_left: WINDOW_UPDATES_MAX,
            settings_due_ms: Some(now_ms.saturating_add(SETTINGS_ACK_TIMEOUT_MS)),
            drain: Drain::No,
        }
    }

    /// Streams that are open, or whose owner has not finished.
    pub fn open_streams(&self) -> usize {
        self.streams.len()
    }

    /// Whether the client waits for nothing: no stream is open, no request half received, and nothing waits to be sent.
    pub fn is_idle(&self) -> bool {
        self.streams.len() == 0 && self.block.is_none() && !self.wants_to_send()
    }

    /// Whether nothing more happens on the connection: the last request that is taken has been answered, or an error has
    /// ended it, and the client has been told.
    pub fn is_over(&self) -> bool {
        (matches!(self.drain, Drain::Final { .. }) || self.phase == Phase::Failed) && self.is_idle()
    }

    /// Whether an error has ended the connection: all that it still does is to send GOAWAY.
    pub fn has_failed(&self) -> bool {
        self.phase == Phase::Failed
    }

    /// Whether the end was announced.
    pub fn is_draining(&self) -> bool {
        self.drain != Drain::No
    }

    /// Bytes of the response that are not framed yet.
    pub fn queued(&self, stream: StreamId) -> u64 {
        self.streams.slot_of(stream.0).map_or(0, |slot| self.streams.at(slot).body.len())
    }

    /// Which of the client's windows keeps bytes of this stream back, if one does.
    pub fn stall(&self, stream: StreamId) -> Option<Stall> {
        let stream = self.streams.at(self.streams.slot_of(stream.0)?);
        match stream.body.is_empty() {
            true => None,
            false if stream.send.available() == 0 => Some(Stall::Stream),
            false if self.send.available() == 0 => Some(Stall::Connection),
            false => None,
        }
    }

    /// When [`handle_time`](Self::handle_time) has something to do.
    pub fn deadline_ms(&self) -> Option<u64> {
        let announced = match self.drain {
            Drain::Announced { until_ms } if self.phase != Phase::Failed => Some(until_ms),
            _ => None,
        };
        self.settings_due_ms.into_iter().chain(announced).min()
    }

    /// The time is `now_ms`.
    ///
    /// # Errors
    /// The client has not acknowledged SETTINGS.
    pub fn handle_time(&mut self, now_ms: u64) -> Result<(), ConnectionError> {
        if self.settings_due_ms.is_some_and(|due_ms| due_ms <= now_ms) {
            return Err(self.fail(Violation::SettingsUnacknowledged.into()));
        }
        if matches!(self.drain, Drain::Announced { until_ms } if until_ms <= now_ms) {
            self.go_away(ErrorCode::NoError);
        }
        Ok(())
    }

    /// Puts a stream into the queue of its urgency if it can send.
    fn queue_up(&mut self, slot: Slot) {
        let stream = self.streams.at_mut(slot);
        if stream.wants_turn() {
            stream.turn = Turn::Queued;
            self.schedule.push(stream.id, slot, stream.priority);
        }
    }

    /// Takes a stream out of the queue of its urgency.
    fn leave_queue(&mut self, slot: Slot) {
        let stream = self.streams.at_mut(slot);
        if stream.turn == Turn::Queued {
            stream.turn = Turn::Idle;
            self.schedule.remove(slot, stream.priority.urgency);
        }
    }

    /// Resets a stream whose response is not over.
    fn reset_slot(&mut self, slot: Slot, code: ErrorCode) {
        let id = self.streams.at(slot).id;
        push_reset(self.control.next(), id, code);
        self.streams.remember_reset(id);
        self.abandon(slot, Receiving::Ignored);
    }

    /// Closes both halves of a stream, and drops what is queued.
    fn abandon(&mut self, slot: Slot, receiving: Receiving) {
        self.release_held(slot);
        self.leave_queue(slot);
        self.announcements.retain(|announcement| announcement.slot != slot);
        let stream = self.streams.at_mut(slot);
        stream.body.clear();
        (stream.receiving, stream.sending, stream.turn) = (receiving, Sending::Closed, Turn::Idle);
        self.streams.remove_closed(slot);
    }

    /// Gives the credit back that a stream's body holds.
    fn release_held(&mut self, slot: Slot) {
        let stream = self.streams.at_mut(slot);
        let held = stream.receive.held();
        stream.receive.consume(held);
        self.small_data -= std::mem::take(&mut stream.small_data);
        self.consume_on_connection(held);
    }

    fn consume_on_connection(&mut self, bytes: u64) {
        self.receive.consume(bytes);
        if let Some(credit) = self.receive.credit()
            && self.phase != Phase::Failed
        {
            push_window_update(self.control.next(), 0, credit);
        }
    }

    /// Ends the connection: GOAWAY is all that is still sent.
    fn fail(&mut self, error: ConnectionError) -> ConnectionError {
        self.phase = Phase::Failed;
        self.settings_due_ms = None;
        (self.data, self.block) = (None, None);
        for slot in self.streams.slots() {
            self.abandon(slot, Receiving::Ended);
        }
        push_goaway(self.control.next(), self.streams.highest(), error.code, error.label());
        error
    }
}

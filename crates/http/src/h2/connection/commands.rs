//! What the owner of a connection does with its streams.

use baton_buf::{Aggregate, Piece, Slice};

use super::Connection;
use super::state::{Announcement, Drain, Phase};
use crate::h2::bounds::DRAIN_NOTICE_MS;
use crate::h2::error::ErrorCode;
use crate::h2::frame::{StreamId, kind, push_goaway, push_window_update};
use crate::h2::streams::{Receiving, Sending, Slot, Turn};
use crate::h2::window::BODY_WINDOW;

impl Connection {
    /// Queues a complete header block: that of the response, or one with a status of 1xx before it. `ends`: no body
    /// follows.
    pub fn respond(&mut self, stream: StreamId, block: Slice, ends: bool) {
        let Some(slot) = self.sending_slot(stream) else { return };
        if ends {
            self.streams.at_mut(slot).sending = Sending::Ending;
        }
        self.announcements.push_back(Announcement { slot, block: Some(block), ends });
    }

    /// Queues a part of the response's body, behind its head.
    pub fn push(&mut self, stream: StreamId, body: Aggregate) {
        let Some(slot) = self.sending_slot(stream) else { return };
        self.streams.at_mut(slot).body.append(body);
        self.queue_up(slot);
    }

    /// Like [`push`](Self::push), for a single piece.
    pub fn push_piece(&mut self, stream: StreamId, piece: impl Into<Piece>) {
        let Some(slot) = self.sending_slot(stream) else { return };
        self.streams.at_mut(slot).body.push(piece);
        self.queue_up(slot);
    }

    /// Ends the response behind what is queued.
    pub fn end(&mut self, stream: StreamId) {
        let Some(slot) = self.sending_slot(stream) else { return };
        let stream = self.streams.at_mut(slot);
        stream.sending = Sending::Ending;
        if stream.body.is_empty() {
            let block = stream.trailers.take();
            self.announcements.push_back(Announcement { slot, block, ends: true });
        }
    }

    /// The block of fields that goes behind the response's body. [`end`](Self::end) comes next.
    pub fn set_trailers(&mut self, stream: StreamId, block: Slice) {
        if let Some(slot) = self.sending_slot(stream) {
            self.streams.at_mut(slot).trailers = Some(block);
        }
    }

    /// The stream is a tunnel from now on (RFC 8441): each half goes on when the other has ended.
    pub fn open_tunnel(&mut self, stream: StreamId) {
        if let Some(slot) = self.sending_slot(stream) {
            self.streams.at_mut(slot).is_tunnel = true;
        }
    }

    /// Ends the stream at once, and drops what is queued.
    pub fn reset(&mut self, stream: StreamId, code: ErrorCode) {
        let Some(slot) = self.streams.slot_of(stream.0) else { return };
        if self.streams.at(slot).sending != Sending::Closed {
            self.reset_slot(slot, code);
        }
    }

    /// The owner's work for the stream is over: it no longer counts once all that is queued is framed.
    pub fn finish(&mut self, stream: StreamId) {
        let Some(slot) = self.streams.slot_of(stream.0) else { return };
        let ended = self.streams.at(slot);
        if ended.is_tunnel && ended.receiving == Receiving::Open {
            self.reset_slot(slot, ErrorCode::Cancel);
        }
        self.release_held(slot);
        self.streams.at_mut(slot).is_at_work = false;
        self.streams.remove_closed(slot);
    }

    /// The owner has disposed of bytes of the request's body: the client may send as many more. The first call says that
    /// the body is wanted, and opens a larger window.
    pub fn consume(&mut self, stream: StreamId, bytes: u64) {
        let Some(slot) = self.streams.slot_of(stream.0) else { return };
        let stream = self.streams.at_mut(slot);
        let held = stream.receive.held();
        let bytes = bytes.min(held);
        if bytes == 0 {
            return;
        }
        let paid = (stream.small_data * bytes).div_ceil(held);
        stream.small_data -= paid;
        self.small_data -= paid;
        stream.receive.consume(bytes);
        let is_short = stream.body_left.is_some_and(|left| left <= stream.receive.open());
        if stream.receiving == Receiving::Open && !is_short {
            stream.receive.widen(BODY_WINDOW);
            if let Some(credit) = stream.receive.credit() {
                push_window_update(self.control.next(), stream.id, credit);
            }
        }
        self.consume_on_connection(bytes);
    }

    /// The range of a file that kept the stream back is in memory now.
    pub fn handle_ready(&mut self, stream: StreamId) {
        let Some(slot) = self.streams.slot_of(stream.0) else { return };
        let stream = self.streams.at_mut(slot);
        if stream.turn == Turn::Parked {
            stream.turn = Turn::Idle;
            self.queue_up(slot);
        }
    }

    /// Announces the end: requests that are on their way are still taken, until the client has heard of it or a second
    /// has passed (RFC 9113 section 6.8).
    pub fn begin_drain(&mut self, now_ms: u64) {
        if self.drain == Drain::No && self.phase != Phase::Failed {
            self.drain = Drain::Announced { until_ms: now_ms.saturating_add(DRAIN_NOTICE_MS) };
            push_goaway(self.control.next(), STREAM_MAX, ErrorCode::NoError, "");
            self.control.push(kind::PING, 0, &DRAIN_PING);
        }
    }

    /// Takes no more requests from now on; those that are open are answered.
    pub fn go_away(&mut self, code: ErrorCode) {
        if !matches!(self.drain, Drain::Final { .. }) && self.phase != Phase::Failed {
            let last = self.streams.highest();
            self.drain = Drain::Final { last };
            push_goaway(self.control.next(), last, code, "");
        }
    }

    /// Gives back the memory that past streams needed: for a connection that rests.
    pub fn release_memory(&mut self) {
        if self.is_idle() {
            self.streams.release_memory();
            self.announcements = Default::default();
            self.schedule = Default::default();
            self.control = Default::default();
        }
    }

    /// The place of a stream whose response is not over.
    fn sending_slot(&self, stream: StreamId) -> Option<Slot> {
        self.streams.slot_of(stream.0).filter(|slot| self.streams.at(*slot).sending == Sending::Open)
    }
}

/// The highest number of a stream.
const STREAM_MAX: u32 = 0x7fff_ffff;

/// The payload of the PING whose answer tells that the client has read the first GOAWAY.
pub(super) const DRAIN_PING: [u8; 8] = *b"draining";

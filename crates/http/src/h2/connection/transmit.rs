//! Frames what may leave now: control frames, heads, then DATA by priority.

use baton_buf::{Aggregate, FileSlice, Piece, Slice};

use super::Connection;
use super::state::{Announcement, TableUpdate};
use crate::h2::bounds::{WINDOW_UPDATES_MAX, WINDOW_UPDATES_PER_FRAME};
use crate::h2::error::ErrorCode;
use crate::h2::frame::{
    FRAME_HEAD_BYTES, FrameHead, PAYLOAD_BYTES_MAX, RESET_BYTES, StreamId, flag, kind, push_reset,
};
use crate::h2::framed::Framed;
use crate::h2::packer::{Batch, Packer};
use crate::h2::streams::{Receiving, Sending, Slot, Turn};

impl Connection {
    /// Whether [`poll_transmit`](Self::poll_transmit) has something to frame.
    pub fn wants_to_send(&self) -> bool {
        !self.control.bytes().is_empty()
            || !self.announcements.is_empty()
            || (self.send.available() > 0 && !self.schedule.is_empty())
    }

    /// Adds frames to `out` until `room` bytes are framed: the last one may go beyond. `ledger` is told of each. `is_ready`
    /// says whether a range of a file is in memory; a stream whose range is not is left out until
    /// [`handle_ready`](Self::handle_ready), and others go on.
    pub fn poll_transmit(
        &mut self,
        out: &mut Aggregate,
        room: u64,
        packer: &mut Packer,
        ledger: &mut impl FnMut(Framed),
        is_ready: &mut impl FnMut(StreamId, &FileSlice) -> bool,
    ) {
        if !self.wants_to_send() {
            return;
        }
        let mut batch = packer.begin();
        if !self.control.bytes().is_empty() {
            batch.bytes().extend_from_slice(self.control.bytes());
            ledger(Framed::overhead(None, self.control.bytes().len()));
            self.control.clear();
        }
        while batch.len() < room
            && let Some(announcement) = self.announcements.pop_front()
        {
            self.frame_announcement(announcement, &mut batch, ledger);
        }
        while batch.len() < room
            && self.send.available() > 0
            && let Some(slot) = self.schedule.front()
        {
            self.frame_data(slot, &mut batch, ledger, is_ready);
        }
        batch.finish(out);
    }

    fn frame_announcement(
        &mut self,
        announcement: Announcement,
        batch: &mut Batch<'_>,
        ledger: &mut impl FnMut(Framed),
    ) {
        let Announcement { slot, block, ends } = announcement;
        let id = self.streams.at(slot).id;
        let head_bytes = block.as_ref().map_or(0, Slice::len) as u64;
        let before = batch.len();
        match block {
            Some(block) => self.frame_block(id, block, ends, batch),
            None => {
                let head = FrameHead { len: 0, kind: kind::DATA, flags: flag::END_STREAM, stream: id };
                batch.bytes().extend_from_slice(&head.bytes());
            }
        }
        let overhead_bytes = batch.len() - before - head_bytes;
        ledger(Framed { stream: Some(StreamId(id)), overhead_bytes, head_bytes, body_bytes: 0, ends });
        if ends {
            self.handle_framed_end(slot, batch, ledger);
        }
    }

    /// Cuts a header block into HEADERS and CONTINUATION.
    fn frame_block(&mut self, id: u32, mut block: Slice, ends: bool, batch: &mut Batch<'_>) {
        let mut kind = kind::HEADERS;
        let mut flags = if ends { flag::END_STREAM } else { 0 };
        let mut prefix: &[u8] = &[];
        if self.table_update == TableUpdate::Due {
            self.table_update = TableUpdate::Sent;
            prefix = &[EMPTY_TABLE];
        }
        loop {
            let len = block.len().min(PAYLOAD_BYTES_MAX as usize - prefix.len());
            let rest = block.split_off(len);
            if rest.is_empty() {
                flags |= flag::END_HEADERS;
            }
            let head = FrameHead { len: (prefix.len() + len) as u32, kind, flags, stream: id };
            batch.bytes().extend_from_slice(&head.bytes());
            batch.bytes().extend_from_slice(prefix);
            batch.push(block.into());
            if rest.is_empty() {
                return;
            }
            (block, kind, flags, prefix) = (rest, kind::CONTINUATION, 0, &[]);
        }
    }

    /// A DATA frame of the stream whose turn it is, as far as its bytes are in memory.
    fn frame_data(
        &mut self,
        slot: Slot,
        batch: &mut Batch<'_>,
        ledger: &mut impl FnMut(Framed),
        is_ready: &mut impl FnMut(StreamId, &FileSlice) -> bool,
    ) {
        let stream = self.streams.at_mut(slot);
        let id = StreamId(stream.id);
        let windows = self.send.available().min(stream.send.available());
        let len_max = windows.min(u64::from(PAYLOAD_BYTES_MAX)).min(stream.body.len());
        let at = batch.reserve::<FRAME_HEAD_BYTES>();
        let mut len = 0;
        while len < len_max {
            if let Some(Piece::File(file)) = stream.body.front()
                && !is_ready(id, &file.prefix(len_max - len))
            {
                stream.turn = Turn::Parked;
                break;
            }
            let Some(piece) = stream.body.take_front(len_max - len) else { break };
            len += piece.len();
            batch.push(piece);
        }
        self.send.take(len);
        stream.send.take(len);
        if stream.turn == Turn::Queued && (stream.body.is_empty() || stream.send.available() == 0) {
            stream.turn = Turn::Idle;
        }
        if stream.turn == Turn::Queued {
            self.schedule.rotate();
        } else {
            self.schedule.remove(slot, stream.priority.urgency);
        }
        if len == 0 {
            batch.give_up(at);
            return;
        }
        let is_last = stream.body.is_empty() && stream.sending == Sending::Ending;
        let trailers = if is_last { stream.trailers.take() } else { None };
        let ends = is_last && trailers.is_none();
        let flags = if ends { flag::END_STREAM } else { 0 };
        batch.fill(at, &FrameHead { len: len as u32, kind: kind::DATA, flags, stream: id.0 }.bytes());
        let overhead_bytes = FRAME_HEAD_BYTES as u64;
        ledger(Framed { stream: Some(id), overhead_bytes, head_bytes: 0, body_bytes: len, ends });
        self.explain_window_updates();
        if let Some(block) = trailers {
            self.announcements.push_back(Announcement { slot, block: Some(block), ends: true });
        }
        if ends {
            self.handle_framed_end(slot, batch, ledger);
        }
    }

    /// The response is complete. A client that still sends the body of its request may stop (RFC 9113 section 8.1).
    fn handle_framed_end(&mut self, slot: Slot, batch: &mut Batch<'_>, ledger: &mut impl FnMut(Framed)) {
        self.budget.earn_answer();
        let stream = self.streams.at_mut(slot);
        stream.sending = Sending::Closed;
        let id = stream.id;
        if stream.receiving == Receiving::Open && !stream.is_tunnel {
            stream.receiving = Receiving::Ignored;
            // Clients take a reset for an error, though it says none (curl 7.88). What fits into the window needs none.
            let is_short = stream.body_left.is_some_and(|left| left <= stream.receive.open());
            if !is_short {
                push_reset(batch.bytes(), id, ErrorCode::NoError);
                ledger(Framed::overhead(Some(StreamId(id)), RESET_BYTES));
            }
            self.streams.remember_reset(id);
            self.release_held(slot);
        }
        self.streams.remove_closed(slot);
    }

    /// A request or DATA is a reason for the client to update windows.
    pub(super) fn explain_window_updates(&mut self) {
        let left = self.window_updates_left + WINDOW_UPDATES_PER_FRAME;
        self.window_updates_left = left.min(WINDOW_UPDATES_MAX);
    }
}

/// HPACK's update of the table to a size of 0 (RFC 7541 section 6.3).
const EMPTY_TABLE: u8 = 0x20;

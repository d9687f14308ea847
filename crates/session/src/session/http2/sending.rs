//! From frames to the socket: what is framed next, and whose bytes have left.

use baton_telemetry::log::Outcome;
use baton_telemetry::metrics::Metric;

use super::{ClientConnection, Driver, Http2Driver, Need, Underway};
use crate::context::Context;
use crate::send_queue::{Flush, is_resident};

impl Http2Driver {
    /// Frames and sends as much as the socket takes; `None`: there is nothing more to send, or no room for it.
    pub(super) fn send(&mut self, connection: &mut ClientConnection, ctx: &mut Context) -> Option<Need> {
        while self.can_send(connection) {
            if connection.send_queue.queued() < FRAMED_BYTES_MIN {
                self.frame(connection, ctx);
            }
            if connection.send_queue.is_empty() {
                return None; // All that could be framed waits for a disk.
            }
            let policy = ctx.send.without_waiting();
            let (sent, flush) = connection.send(&policy, &mut ctx.scratch, &ctx.clock);
            ctx.tally.add(Metric::BytesSent, sent);
            self.handle_sent(sent, connection, ctx);
            self.is_full = matches!(flush, Flush::Full);
            match connection.need_after(flush, ctx) {
                Ok(Some(need @ Need::Job(..))) => {
                    self.is_send_queue_blocked = true;
                    return Some(need);
                }
                Ok(Some(Need::Turn)) => return Some(Need::Turn),
                Ok(_) => {}
                Err(outcome) => return Some(self.end(outcome, connection, ctx)),
            }
        }
        None
    }

    fn frame(&mut self, connection: &mut ClientConnection, ctx: &mut Context) {
        let room = FRAMED_BYTES_MAX - connection.send_queue.queued();
        let (test_residency, unix_seconds) = (ctx.send.test_residency, ctx.clock.stamp().unix_seconds);
        let (cold, ledger) = (&mut self.cold, &mut self.ledger);
        self.connection.poll_transmit(
            connection.send_queue.queue_mut(),
            room,
            &mut ctx.packer,
            &mut |framed| ledger.push_back(framed),
            &mut |stream, slice| {
                let is_ready = !test_residency || is_resident(slice, slice.len(), unix_seconds);
                if !is_ready {
                    cold.push((stream, slice.clone()));
                }
                is_ready
            },
        );
    }

    /// The kernel has taken so many bytes: gives them to the requests whose frames they are.
    pub(super) fn handle_sent(&mut self, bytes: u64, connection: &mut ClientConnection, ctx: &mut Context) {
        let mut left = bytes;
        while let Some(front) = self.ledger.front().copied() {
            let before = self.ledger_sent;
            let now = left.min(front.total_bytes() - before);
            left -= now;
            self.ledger_sent += now;
            // Framing is in front.
            let payload = |sent: u64| sent.saturating_sub(front.overhead_bytes);
            let of_payload = payload(self.ledger_sent) - payload(before);
            let is_over = self.ledger_sent == front.total_bytes();
            if is_over {
                self.ledger_sent = 0;
                self.ledger.pop_front();
            }
            if let Some(at) = front.stream.and_then(|stream| self.exchanges.position(super::name(stream))) {
                if is_over && front.ends {
                    self.exchanges[at].exchange.record.handle_end_sent();
                }
                self.note_sent(at, of_payload, connection, ctx);
            }
            if !is_over {
                return;
            }
        }
    }

    fn note_sent(&mut self, at: usize, bytes: u64, connection: &mut ClientConnection, ctx: &mut Context) {
        let Underway { exchange, own, .. } = &mut self.exchanges[at];
        if bytes > 0 {
            own.taken += bytes;
            self.data_sent_ms = ctx.clock.now_ms();
            exchange.record.handle_sent(bytes, &ctx.clock);
        }
        if exchange.is_answered() {
            self.end_if_sent(at, connection, ctx);
        } else if exchange.record.is_all_sent() {
            // Tell the gateway that there is room, or the application may wait for it forever.
            exchange.handle_room();
            self.make_due(at);
        }
    }

    /// Logs an answered request once all of it has been sent.
    pub(super) fn end_if_sent(&mut self, at: usize, connection: &mut ClientConnection, ctx: &mut Context) {
        let Underway { exchange, own, .. } = &self.exchanges[at];
        if !exchange.record.is_complete() {
            return;
        }
        if own.response.is_cut {
            // The client must not take the part for the whole.
            self.connection.reset(own.id, baton_http::h2::ErrorCode::Internal);
        }
        self.remove(at, Outcome::Complete, connection, ctx);
    }
}

/// Bytes that are framed and not sent: enough for one call, and few enough that priorities and resets come in time.
const FRAMED_BYTES_MAX: u64 = 96 * 1024;

/// Below this, more is framed before the next call.
const FRAMED_BYTES_MIN: u64 = 32 * 1024;

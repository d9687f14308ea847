//! The bodies of requests: kept for applications, passed on while they arrive, or dropped.

use baton_http::h2;
use baton_upstream::FailureReason;

use super::stream::{Stream, name};
use super::{ClientConnection, Driver, Http2Driver, Need, Underway};
use crate::body_memory::place;
use crate::context::{BODY_PIECE_BYTES, Context};
use crate::protocol::{BodyRead, BodySink};
use crate::session::need::{BodyPart, UpstreamNeed};

impl Http2Driver {
    /// A part of a request's body has arrived.
    pub(super) fn take_data(
        &mut self,
        id: h2::StreamId,
        data: &[u8],
        ends: bool,
        connection: &mut ClientConnection,
        ctx: &mut Context,
    ) {
        let Some(at) = self.exchanges.position(name(id)) else {
            return self.connection.consume(id, data.len() as u64);
        };
        let stream = &mut self.exchanges[at].own;
        stream.received_ms = ctx.clock.now_ms();
        stream.body.is_complete |= ends;
        if stream.body.is_unwanted() {
            return self.connection.consume(id, data.len() as u64);
        }
        if stream.body.is_wanted() && stream.body.arrived.is_empty() {
            return self.keep(at, data, connection, ctx);
        }
        stream.body.arrived.extend_from_slice(data);
    }

    /// An application wants the body: gives it what has arrived.
    pub(super) fn take_arrived(&mut self, at: usize, connection: &mut ClientConnection, ctx: &mut Context) {
        let Underway { exchange, own: Stream { body, .. }, .. } = &mut self.exchanges[at];
        let arrived = std::mem::take(&mut body.arrived);
        let begins_at_once = exchange.upload().is_some_and(|upload| upload.has_enough());
        if !arrived.is_empty() || begins_at_once || body.is_complete || body.is_too_long() {
            self.keep(at, &arrived, connection, ctx);
        }
    }

    /// Keeps a part of a wanted body. The request goes on once the body is complete, long enough or too long.
    fn keep(&mut self, at: usize, data: &[u8], connection: &mut ClientConnection, ctx: &mut Context) {
        let Underway { exchange, own: Stream { id, body, .. }, .. } = &mut self.exchanges[at];
        let is_complete = body.is_complete;
        let fits = body.take(data.len() as u64);
        let Some(upload) = exchange.upload() else { return };
        let read = match fits && upload.take(data) {
            false => BodyRead::TooLarge,
            true if is_complete => BodyRead::Complete,
            true if upload.has_enough() => BodyRead::Begun,
            true => BodyRead::Part,
        };
        self.connection.consume(*id, data.len() as u64);
        match read {
            BodyRead::Part => return,
            // What arrives from now on is passed on.
            BodyRead::Begun => body.lend(),
            BodyRead::Complete | BodyRead::TooLarge => {}
        }
        self.drive(at, &[], connection, ctx, |exchange, env| exchange.handle_body(env, Ok(read)));
        self.settle(at, connection, ctx);
    }

    /// The next piece of a body that an application waits for, if it has arrived.
    pub(super) fn pass_body_on(&mut self) -> Option<Need> {
        let entry = self.exchanges.iter_mut().find(|entry| {
            let body = &entry.own.body;
            entry.wants_body && (!body.arrived.is_empty() || body.is_complete)
        })?;
        entry.wants_body = false;
        let Underway { exchange, own: Stream { id, body, .. }, .. } = entry;
        let len = body.arrived.len().min(BODY_PIECE_BYTES);
        let bytes = place(body.arrived.drain(..len).collect(), || exchange.chunk());
        self.connection.consume(*id, len as u64);
        let part = match body.take(len as u64) {
            true => Ok(BodyPart { bytes, is_last: body.is_complete && body.arrived.is_empty() }),
            false => Err(FailureReason::BodyTooLong),
        };
        Some(Need::Upstream(UpstreamNeed::Body(name(*id), part)))
    }
}

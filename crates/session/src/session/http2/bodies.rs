//! The bodies of requests: kept for applications, passed on while they arrive, or dropped.

use baton_buf::Slice;
use baton_http::h2;
use baton_upstream::FailureReason;

use super::stream::{Left, name};
use super::{Http2Driver, Need, Wire};
use crate::context::{BODY_PIECE_BYTES, Context};
use crate::protocol::{BodyRead, BodySink, StreamId};
use crate::session::need::BodyPart;

impl Http2Driver {
    /// A part of a request's body has arrived.
    pub(super) fn take_data(
        &mut self,
        id: h2::StreamId,
        data: &[u8],
        ends: bool,
        wire: &mut Wire,
        ctx: &mut Context,
    ) {
        let Some(at) = self.position(name(id)) else {
            return self.connection.consume(id, data.len() as u64);
        };
        let stream = &mut self.streams[at];
        stream.received_ms = ctx.clock.now_ms();
        stream.body.is_complete |= ends;
        if stream.body.is_unwanted() {
            return self.connection.consume(id, data.len() as u64);
        }
        if stream.body.is_wanted() && stream.body.arrived.is_empty() {
            return self.keep(at, data, wire, ctx);
        }
        stream.body.arrived.extend_from_slice(data);
    }

    /// An application wants the body: gives it what has arrived.
    pub(super) fn take_arrived(&mut self, at: usize, wire: &mut Wire, ctx: &mut Context) {
        let stream = &mut self.streams[at];
        let arrived = std::mem::take(&mut stream.body.arrived);
        let begins_at_once = stream.exchange.upload().is_some_and(|upload| upload.has_enough());
        if !arrived.is_empty() || begins_at_once || stream.body.is_complete || stream.body.is_too_long() {
            self.keep(at, &arrived, wire, ctx);
        }
    }

    /// Keeps a part of a wanted body. The request goes on once the body is complete, long enough or too long.
    fn keep(&mut self, at: usize, data: &[u8], wire: &mut Wire, ctx: &mut Context) {
        let stream = &mut self.streams[at];
        let is_complete = stream.body.is_complete;
        let fits = stream.body.take(data.len() as u64);
        let Some(upload) = stream.exchange.upload() else { return };
        let read = match fits && upload.take(data) {
            false => BodyRead::TooLarge,
            true if is_complete => BodyRead::Complete,
            true if upload.has_enough() => BodyRead::Begun,
            true => BodyRead::Part,
        };
        self.connection.consume(stream.id, data.len() as u64);
        match read {
            BodyRead::Part => return,
            // What arrives from now on is passed on.
            BodyRead::Begun => stream.body.lend(),
            BodyRead::Complete | BodyRead::TooLarge => {}
        }
        self.drive(at, wire, ctx, |exchange, env| exchange.handle_body(env, Ok(read)));
        match self.streams[at].exchange.is_answered() {
            true => self.handle_answered(at, wire, ctx),
            false => self.make_due(at),
        }
    }

    /// The application wants more of a body that is passed on.
    pub(in crate::session) fn handle_body_wanted(&mut self, stream: StreamId) {
        if let Some(at) = self.position(stream)
            && let Some(lent) = &mut self.streams[at].lent
        {
            lent.is_wanted = lent.left != Left::Length(0);
        }
    }

    /// The next piece of a body that an application waits for, if it has arrived.
    pub(super) fn pass_body_on(&mut self) -> Option<Need> {
        let stream = self.streams.iter_mut().find(|stream| {
            let has_some = !stream.body.arrived.is_empty() || stream.body.is_complete;
            has_some && stream.lent.as_ref().is_some_and(|lent| lent.is_wanted)
        })?;
        let lent = stream.lent.as_mut()?;
        let len = stream.body.arrived.len().min(BODY_PIECE_BYTES);
        let bytes = Slice::from(stream.body.arrived.drain(..len).collect::<Vec<u8>>());
        lent.is_wanted = false;
        self.connection.consume(stream.id, len as u64);
        let part = match lent.left.take(len as u64) {
            Some(left) => {
                lent.left = left;
                Ok(BodyPart { bytes, is_last: stream.body.is_complete && stream.body.arrived.is_empty() })
            }
            None => Err(FailureReason::BodyTooLong),
        };
        Some(Need::Body(name(stream.id), part))
    }

    /// The client sent nothing more of a body in time that an application waits for.
    pub(super) fn time_out_lent_body(&mut self, at: usize) -> Option<Need> {
        let stream = &mut self.streams[at];
        stream.lent.as_mut()?.is_wanted = false;
        Some(Need::Body(name(stream.id), Err(FailureReason::BodyTimedOut)))
    }
}

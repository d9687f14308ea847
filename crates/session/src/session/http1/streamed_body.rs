//! The rest of a body, which an application or an origin is given while it arrives; and what a client sends into a tunnel.
//!
//! The gateway says when it wants more, and the session then reads one piece from the client: the slower side sets the
//! pace. It never reads more than a body whose length is known: a pipelined request stays in the kernel.

use baton_buf::Slice;
use baton_upstream::FailureReason;

use super::waiting::Lent;
use super::{Http1Driver, Need, Wire};
use crate::context::{BODY_PIECE_BYTES, Context};
use crate::protocol::{BodyRead, Pieces};
use crate::session::need::BodyPart;
use crate::transport::Received;

impl Http1Driver {
    /// The application wants more of the body.
    pub(in crate::session) fn handle_body_wanted(&mut self) {
        if let Some(streamed_body) = &mut self.streamed_body {
            streamed_body.is_wanted = !streamed_body.is_over();
        }
    }

    /// Whether the session waits for the client to send more of that body.
    pub(super) fn awaits_body(&self) -> bool {
        self.streamed_body
            .as_ref()
            .is_some_and(|streamed_body| streamed_body.is_wanted && !streamed_body.is_tunnel())
    }

    /// Reads the next piece of the body, if the gateway wants it and it has arrived.
    pub(super) fn stream_body(&mut self, wire: &mut Wire, ctx: &mut Context) -> Option<Need> {
        let streamed_body = self.streamed_body.as_mut().filter(|streamed_body| streamed_body.is_wanted)?;
        let has_input = wire.transport.is_readable() || !self.inbox.is_empty();
        if !has_input || streamed_body.pieces == PIECES_PER_TURN {
            streamed_body.pieces = 0;
            return has_input.then_some(Need::Turn);
        }
        streamed_body.pieces += 1;
        let part = match streamed_body.lent {
            Lent::Length(left) => match read_piece(wire, ctx, left)? {
                Ok(bytes) => {
                    let left = left - bytes.len() as u64;
                    (streamed_body.lent, streamed_body.may_be_kept_back) = (Lent::Length(left), false);
                    Ok(BodyPart { bytes, is_last: left == 0 })
                }
                Err(why) => Err(why),
            },
            Lent::Chunked(_) => self.read_chunked(wire, ctx)?,
            Lent::Tunnel if !self.inbox.is_empty() => {
                Ok(BodyPart { bytes: Slice::from(std::mem::take(&mut self.inbox)), is_last: false })
            }
            Lent::Tunnel => match read_piece(wire, ctx, u64::MAX)? {
                Ok(bytes) => Ok(BodyPart { bytes, is_last: false }),
                // The client's half has ended; the other goes on.
                Err(_) => {
                    streamed_body.lent = Lent::Over;
                    Ok(BodyPart { bytes: Slice::from(Vec::new()), is_last: true })
                }
            },
            Lent::Over => return None,
        };
        if let Some(streamed_body) = &mut self.streamed_body {
            streamed_body.is_wanted = false;
        }
        Some(Need::Body(self.protocol.stream(), part))
    }

    /// Reads on in a chunked body: first what has been read already. `None`: nothing of it has come.
    fn read_chunked(
        &mut self,
        wire: &mut Wire,
        ctx: &mut Context,
    ) -> Option<Result<BodyPart, FailureReason>> {
        let mut input = std::mem::take(&mut self.inbox);
        if input.is_empty() {
            input = match read_piece(wire, ctx, u64::MAX)? {
                Ok(received) => received.to_vec(),
                Err(why) => return Some(Err(why)),
            };
        }
        let streamed_body = self.streamed_body.as_mut()?;
        let Lent::Chunked(rest) = &mut streamed_body.lent else { return None };
        let mut data = Pieces::default();
        let Ok((taken, read)) = rest.read(&input, &mut data) else {
            return Some(Err(FailureReason::BodyBroken));
        };
        let is_last = read == BodyRead::Complete;
        if is_last {
            streamed_body.lent = Lent::Over;
        }
        self.keep(input, taken);
        match read {
            BodyRead::TooLarge => Some(Err(FailureReason::BodyTooLong)),
            _ if data.0.is_empty() && !is_last => None,
            _ => Some(Ok(BodyPart { bytes: Slice::from(data.0), is_last })),
        }
    }

    /// The client sent nothing more of the body in time. Returns the reason to give the gateway.
    pub(super) fn time_out_body(&mut self) -> FailureReason {
        if let Some(streamed_body) = &mut self.streamed_body {
            streamed_body.is_wanted = false;
        }
        FailureReason::BodyTimedOut
    }

    /// The client speaks another protocol from now on: the gateway gets what it sends, as it is.
    pub(super) fn open_tunnel(&mut self) {
        self.streamed_body = Some(super::waiting::StreamedBody::new(Lent::Tunnel));
    }

    /// The request is answered. Returns how many bytes of its body the session has not read.
    pub(super) fn stop_streaming(&mut self, wire: &mut Wire) -> u64 {
        let left = self.streamed_body.take().map_or(0, |streamed_body| streamed_body.left());
        if left > 0 {
            // More may arrive at any time; the last known readiness may be out of date.
            wire.transport.handle_readable();
        }
        left
    }
}

/// Reads what has arrived, at most `left` bytes. `None`: nothing has.
fn read_piece(wire: &mut Wire, ctx: &mut Context, left: u64) -> Option<Result<Slice, FailureReason>> {
    let mut memory = ctx.bodies.take();
    memory.resize(usize::try_from(left).unwrap_or(usize::MAX).min(BODY_PIECE_BYTES), 0);
    let received = wire.transport.receive(&mut memory);
    if let Received::Bytes(count) = received {
        memory.truncate(count);
    }
    let memory = ctx.bodies.freeze(memory);
    match received {
        Received::Nothing => None,
        Received::End => Some(Err(FailureReason::ClientGone)),
        // A copy, so that a small piece does not hold a large buffer.
        Received::Bytes(count) if count <= COPIED_BYTES_MAX => Some(Ok(Slice::from(memory.to_vec()))),
        Received::Bytes(_) => Some(Ok(memory.into())),
    }
}

/// Pieces of a body that are passed on before other clients have a turn.
const PIECES_PER_TURN: usize = 4;

/// Pieces up to this size are copied, so that unconsumed pieces hold at most four times their size in memory.
const COPIED_BYTES_MAX: usize = BODY_PIECE_BYTES / 4;

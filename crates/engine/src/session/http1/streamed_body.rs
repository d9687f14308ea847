//! The rest of a long body, which an application is given while it arrives.
//!
//! The gateway says when it wants more, and the session then reads one piece from the client: the slower side sets the
//! pace. It never reads more than the body: a pipelined request stays in the kernel.

use baton_buf::Slice;
use baton_gateway::FailureReason;

use super::{Http1Driver, Need, Wire};
use crate::context::{BODY_PIECE_BYTES, Context};
use crate::transport::Received;

impl Http1Driver {
    /// The application wants more of the body.
    pub(in crate::session) fn handle_body_wanted(&mut self) {
        if let Some(streamed_body) = &mut self.streamed_body {
            streamed_body.is_wanted = streamed_body.left > 0;
        }
    }

    /// Whether the session waits for the client to send more of that body.
    pub(super) fn awaits_body(&self) -> bool {
        self.streamed_body.as_ref().is_some_and(|streamed_body| streamed_body.is_wanted)
    }

    /// Reads the next piece of the body, if the gateway wants it and it has arrived.
    pub(super) fn stream_body(&mut self, wire: &mut Wire, ctx: &mut Context) -> Option<Need> {
        let streamed_body = self.streamed_body.as_mut().filter(|streamed_body| streamed_body.is_wanted)?;
        if !wire.transport.is_readable() || streamed_body.pieces == PIECES_PER_TURN {
            streamed_body.pieces = 0;
            return wire.transport.is_readable().then_some(Need::Turn);
        }
        let mut memory = ctx.bodies.take();
        memory.resize(usize::try_from(streamed_body.left).unwrap_or(usize::MAX).min(BODY_PIECE_BYTES), 0);
        let received = wire.transport.receive(&mut memory);
        if let Received::Bytes(count) = received {
            memory.truncate(count);
            streamed_body.left -= count as u64;
            streamed_body.pieces += 1;
        }
        let memory = ctx.bodies.freeze(memory);
        let part = match received {
            Received::Nothing => return None,
            Received::End => Err(FailureReason::ClientGone),
            // A copy, so that a small piece does not hold a large buffer.
            Received::Bytes(count) if count <= COPIED_BYTES_MAX => Ok(Slice::from(memory.to_vec())),
            Received::Bytes(_) => Ok(memory.into()),
        };
        streamed_body.is_wanted = false;
        Some(Need::Body(self.protocol.stream(), part))
    }

    /// The client sent nothing more of the body in time. Returns the reason to give the gateway.
    pub(super) fn time_out_body(&mut self) -> FailureReason {
        if let Some(streamed_body) = &mut self.streamed_body {
            streamed_body.is_wanted = false;
        }
        FailureReason::BodyTimedOut
    }

    /// The request is answered. Returns how many bytes of its body the session has not read.
    pub(super) fn stop_streaming(&mut self, wire: &mut Wire) -> u64 {
        let left = self.streamed_body.take().map_or(0, |streamed_body| streamed_body.left);
        if left > 0 {
            // More may arrive at any time; the last known readiness may be out of date.
            wire.transport.handle_readable();
        }
        left
    }
}

/// Pieces of a body that are passed on before other clients have a turn.
const PIECES_PER_TURN: usize = 4;

/// Pieces up to this size are copied, so that unconsumed pieces hold at most four times their size in memory.
const COPIED_BYTES_MAX: usize = BODY_PIECE_BYTES / 4;

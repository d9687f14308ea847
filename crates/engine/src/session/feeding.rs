//! The rest of a long body, which an application is given while it arrives.
//!
//! The gateway says when it wants more, and the session then reads one piece from the client: the slower side sets the
//! pace. It never reads more than the body: a pipelined request stays in the kernel.

use baton_buf::Slice;
use baton_gateway::Why;

use super::{Need, Session};
use crate::context::{BODY_PIECE_BYTES, Context};
use crate::transport::Received;

impl Session {
    /// The application wants more of the body.
    pub(crate) fn handle_body_wanted(&mut self) {
        if let Some(feeding) = &mut self.feeding {
            feeding.is_wanted = feeding.left > 0;
        }
    }

    /// Whether it is the client's turn to send more of that body.
    pub(super) fn awaits_body(&self) -> bool {
        self.feeding.as_ref().is_some_and(|feeding| feeding.is_wanted)
    }

    /// The next piece of the body, if it is wanted and there.
    pub(super) fn feed(&mut self, ctx: &mut Context) -> Option<Need> {
        let feeding = self.feeding.as_mut().filter(|feeding| feeding.is_wanted)?;
        if !self.transport.is_readable() || feeding.pieces == PIECES_PER_TURN {
            feeding.pieces = 0;
            return self.transport.is_readable().then_some(Need::Turn);
        }
        let mut memory = ctx.bodies.take();
        memory.resize(usize::try_from(feeding.left).unwrap_or(usize::MAX).min(BODY_PIECE_BYTES), 0);
        let received = self.transport.receive(&mut memory);
        if let Received::Bytes(count) = received {
            memory.truncate(count);
            feeding.left -= count as u64;
            feeding.pieces += 1;
        }
        let memory = ctx.bodies.freeze(memory);
        let part = match received {
            Received::Nothing => return None,
            Received::End => Err(Why::ClientGone),
            // Little does not hold as much memory as a lot.
            Received::Bytes(count) if count <= COPIED_BYTES_MAX => Ok(Slice::from(memory.to_vec())),
            Received::Bytes(_) => Ok(memory.into()),
        };
        feeding.is_wanted = false;
        Some(Need::Body(part))
    }

    /// The client has been silent for too long in the middle of the body: why there will be no more of it.
    pub(super) fn time_out_body(&mut self) -> Why {
        if let Some(feeding) = &mut self.feeding {
            feeding.is_wanted = false;
        }
        Why::BodyTimedOut
    }

    /// The request has been answered: how much of its body was not read.
    pub(super) fn stop_feeding(&mut self) -> u64 {
        let left = self.feeding.take().map_or(0, |feeding| feeding.left);
        if left > 0 {
            // More may come at any time; what is known of the socket may be older.
            self.transport.handle_readable();
        }
        left
    }
}

/// Pieces of a body that are passed on before others have their turn.
const PIECES_PER_TURN: usize = 4;

/// Pieces up to this size are copied: what an application does not take never holds more than four times its size.
const COPIED_BYTES_MAX: usize = BODY_PIECE_BYTES / 4;

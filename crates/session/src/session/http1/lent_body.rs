//! The rest of a body, which an application or an origin is given while it arrives; and what a client sends into a tunnel.
//!
//! The gateway says when it wants more, and the session then reads one piece from the client: the slower side sets the
//! pace. It never reads more than a body whose length is known: a pipelined request stays in the kernel.

use baton_buf::{Buffer, Slice};
use baton_upstream::FailureReason;

use super::{ClientConnection, Http1Driver, Need};
use crate::body_memory::place;
use crate::context::{BODY_PIECE_BYTES, Context};
use crate::protocol::BodyRead;
use crate::session::need::{BodyPart, UpstreamNeed};
use crate::transport::Received;

impl Http1Driver {
    /// Whether the session waits for the client to send more of a lent body.
    pub(super) fn awaits_body(&self) -> bool {
        self.wants_body().is_some() && !self.protocol.is_tunnel()
    }

    /// Where the request is whose body the gateway wants more of.
    pub(super) fn wants_body(&self) -> Option<usize> {
        self.exchanges.last().filter(|&at| self.exchanges[at].wants_body)
    }

    /// Reads the next piece of the body, if the gateway wants it and it has arrived.
    pub(super) fn pass_body_on(
        &mut self,
        connection: &mut ClientConnection,
        ctx: &mut Context,
    ) -> Option<Need> {
        let at = self.wants_body()?;
        let has_input = connection.has_input();
        if !has_input || self.pieces == PIECES_PER_TURN {
            self.pieces = 0;
            return has_input.then_some(Need::Turn);
        }
        self.pieces += 1;
        let part = self.read_lent(connection, ctx)?;
        self.exchanges[at].wants_body = false;
        Some(Need::Upstream(UpstreamNeed::Body(self.protocol.stream(), part)))
    }

    /// Reads on in a lent body: first what has been read already. `None`: nothing of it has come.
    fn read_lent(
        &mut self,
        connection: &mut ClientConnection,
        ctx: &mut Context,
    ) -> Option<Result<BodyPart, FailureReason>> {
        let at = self.wants_body()?;
        let input = match std::mem::take(&mut connection.inbox) {
            inbox if inbox.is_empty() => match self.read_piece(at, connection, ctx)? {
                Ok(input) => input,
                // The client's half has ended; the other goes on.
                Err(_) if self.protocol.is_tunnel() => {
                    self.protocol.end_lent();
                    return Some(Ok(BodyPart { bytes: Slice::from(Vec::new()), is_last: true }));
                }
                Err(why) => return Some(Err(why)),
            },
            inbox => place(inbox, || self.exchanges[at].exchange.chunk()),
        };
        let Ok((taken, bytes, read)) = self.protocol.read_lent(&input) else {
            return Some(Err(FailureReason::BodyBroken));
        };
        connection.inbox.extend_from_slice(&input[taken..]);
        let is_last = read == BodyRead::Complete;
        if is_last {
            self.room = None;
        }
        match read {
            BodyRead::TooLarge => Some(Err(FailureReason::BodyTooLong)),
            _ if bytes.is_empty() && !is_last => None,
            _ => Some(Ok(BodyPart { bytes, is_last })),
        }
    }

    /// Reads what has arrived, and no more than the body has. `None`: nothing has.
    fn read_piece(
        &mut self,
        at: usize,
        connection: &mut ClientConnection,
        ctx: &mut Context,
    ) -> Option<Result<Slice, FailureReason>> {
        let left = usize::try_from(self.protocol.lent_bytes_max()).unwrap_or(usize::MAX);
        let Some(mut chunk) = self.room.take().or_else(|| self.exchanges[at].exchange.chunk()) else {
            return read_copied(connection, ctx, left.min(BODY_PIECE_BYTES));
        };
        let room = left.min(chunk.len());
        match connection.transport.receive(&mut chunk[..room]) {
            Received::Bytes(count) => {
                // What is free of the chunk is for what comes next.
                self.room = Some(chunk.split_off(count)).filter(|room| room.len() >= ROOM_BYTES_MIN);
                Some(Ok(Buffer::from(chunk).into()))
            }
            Received::Nothing => {
                self.room = Some(chunk);
                None
            }
            Received::End => Some(Err(FailureReason::ClientGone)),
        }
    }

    /// The gateway takes no more of the request's body.
    pub(super) fn take_back_body(&mut self, at: usize, connection: &mut ClientConnection) {
        self.exchanges[at].wants_body = false;
        self.room = None;
        if self.protocol.take_back_body() {
            // More may arrive at any time; the last known readiness may be out of date.
            connection.transport.handle_readable();
        }
    }
}

/// The same, for an application that gets the bytes themselves: at most so many.
fn read_copied(
    connection: &mut ClientConnection,
    ctx: &mut Context,
    bytes_max: usize,
) -> Option<Result<Slice, FailureReason>> {
    let mut memory = ctx.bodies.take();
    memory.resize(bytes_max, 0);
    let received = connection.transport.receive(&mut memory);
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

/// A chunk with less room than that is not read into any more.
const ROOM_BYTES_MIN: usize = BODY_PIECE_BYTES / 4;

/// Pieces of a body that are passed on before other clients have a turn.
const PIECES_PER_TURN: usize = 4;

/// Pieces up to this size are copied, so that unconsumed pieces hold at most four times their size in memory.
const COPIED_BYTES_MAX: usize = BODY_PIECE_BYTES / 4;

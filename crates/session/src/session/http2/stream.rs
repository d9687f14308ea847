//! One request on a connection of HTTP/2: its exchange, and what the driver knows of it.

use baton_http::{RequestHead, h2};
use baton_telemetry::clock::Clock;

use crate::exchange::Exchange;
use crate::protocol::{ResponseState, StreamBody, StreamId};

/// A stream whose request is not logged yet.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) id: h2::StreamId,
    pub(super) exchange: Exchange,
    pub(super) response: ResponseState,
    pub(super) body: StreamBody,
    /// The rest of the body, if the application was given the request before the body was complete.
    pub(super) lent: Option<Lent>,
    /// It waits for its turn to be advanced.
    pub(super) is_due: bool,
    /// A job works for it: what the job returns needs the stream's number.
    pub(super) has_job: bool,
    /// When the client last sent a part of its body.
    pub(super) received_ms: u64,
    /// Since when the client has been given time to take more of the response, and what it has taken since.
    pub(super) sending_since_ms: u64,
    pub(super) taken: u64,
}

/// The rest of a body that is passed on while it arrives.
#[derive(Debug)]
pub(super) struct Lent {
    pub(super) left: Left,
    /// The application has taken the last piece.
    pub(super) is_wanted: bool,
}

/// How much of a body is still to be passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// So many bytes.
    Length(u64),
    /// What comes until the stream's end, at most so many bytes.
    UntilEnd(u64),
    /// What comes until the stream's end: another protocol's.
    Tunnel,
}

impl Left {
    /// Counts bytes that are passed on. `None`: there are too many.
    pub(super) fn take(self, bytes: u64) -> Option<Self> {
        match self {
            Self::Length(left) => Some(Self::Length(left.saturating_sub(bytes))),
            Self::UntilEnd(room) => room.checked_sub(bytes).map(Self::UntilEnd),
            Self::Tunnel => Some(Self::Tunnel),
        }
    }
}

impl Stream {
    pub(super) fn new(id: h2::StreamId, head: Option<&RequestHead<'_>>, ends: bool, clock: &Clock) -> Self {
        let now_ms = clock.now_ms();
        Self {
            id,
            exchange: Exchange::new(name(id), clock),
            response: ResponseState::of(head),
            body: StreamBody::of(head, ends),
            lent: None,
            is_due: false,
            has_job: false,
            received_ms: now_ms,
            sending_since_ms: now_ms,
            taken: 0,
        }
    }

    /// The client gets the full time to take what is sent from now on.
    pub(super) fn begin_sending(&mut self, now_ms: u64) {
        (self.sending_since_ms, self.taken) = (now_ms, 0);
    }

    /// Whether the request waits for its client to send more of the body.
    pub(super) fn awaits_body(&self) -> bool {
        let is_empty = self.body.arrived.is_empty();
        let is_lent =
            self.lent.as_ref().is_some_and(|lent| lent.is_wanted && is_empty && lent.left != Left::Tunnel);
        is_lent && !self.body.is_complete || self.body.is_awaited() && !self.exchange.is_answered()
    }
}

/// What the rest of the server calls the stream.
pub(super) fn name(id: h2::StreamId) -> StreamId {
    StreamId::of(u64::from(id.number()))
}

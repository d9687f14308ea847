//! What the driver of HTTP/2 knows of a request, besides its exchange.

use baton_http::{RequestHead, h2};
use baton_telemetry::clock::Clock;

use crate::protocol::{ResponseState, StreamBody, StreamId};
use crate::session::exchanges::Underway;

/// A stream whose request is not logged yet.
#[derive(Debug)]
pub(in crate::session) struct Stream {
    pub(super) id: h2::StreamId,
    pub(super) response: ResponseState,
    pub(super) body: StreamBody,
    /// It waits for its turn to be advanced.
    pub(super) is_due: bool,
    /// When the client last sent a part of its body.
    pub(super) received_ms: u64,
    /// Since when the client has been given time to take more of the response, and what it has taken since.
    pub(super) sending_since_ms: u64,
    pub(super) taken: u64,
}

impl Stream {
    pub(super) fn new(id: h2::StreamId, head: Option<&RequestHead<'_>>, ends: bool, clock: &Clock) -> Self {
        let now_ms = clock.now_ms();
        Self {
            id,
            response: ResponseState::of(head),
            body: StreamBody::of(head, ends),
            is_due: false,
            received_ms: now_ms,
            sending_since_ms: now_ms,
            taken: 0,
        }
    }

    /// The client gets the full time to take what is sent from now on.
    pub(super) fn begin_sending(&mut self, now_ms: u64) {
        (self.sending_since_ms, self.taken) = (now_ms, 0);
    }
}

impl Underway<Stream> {
    /// Whether the request waits for its client to send more of the body.
    pub(super) fn awaits_body(&self) -> bool {
        let body = &self.own.body;
        let is_lent = self.wants_body && body.arrived.is_empty() && !body.is_tunnel();
        is_lent && !body.is_complete || body.is_awaited() && !self.exchange.is_answered()
    }
}

/// What the rest of the server calls the stream.
pub(super) fn name(id: h2::StreamId) -> StreamId {
    StreamId::of(u64::from(id.number()))
}

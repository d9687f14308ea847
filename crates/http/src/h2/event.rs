//! What a connection tells its owner.

use super::error::{ErrorCode, Violation};
use super::frame::StreamId;
use super::malformed::Malformed;
use super::priority::Priority;
use crate::{Refusal, RequestHead};

/// What a piece of input means.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "taken apart where it is returned, never kept")]
pub enum Event<'a> {
    /// A request. It counts as open until the owner calls [`finish`](super::Connection::finish).
    Request {
        /// Where it is answered.
        stream: StreamId,
        /// Its head.
        head: RequestHead<'a>,
        /// What an extended CONNECT wants to speak (RFC 8441). Only where [`Settings`](super::Settings) allow it.
        protocol: Option<&'a [u8]>,
        /// Whether the message ends here, without a body.
        ends: bool,
        /// Which response goes first.
        priority: Priority,
    },
    /// A request that is to be answered with an error, and then finished like others.
    Refused {
        /// Where it is answered.
        stream: StreamId,
        /// Why.
        refusal: Refusal,
        /// Whether the message ends here, without a body.
        ends: bool,
    },
    /// A part of a request's body. The client may send more once it is [consumed](super::Connection::consume).
    Data {
        /// Whose.
        stream: StreamId,
        /// Not empty.
        data: &'a [u8],
        /// The body is complete.
        ends: bool,
    },
    /// The body is complete, without further bytes. Trailers are read and dropped.
    End {
        /// Whose.
        stream: StreamId,
    },
    /// The client has reset the stream. What was queued is dropped; the stream counts until it is finished.
    Reset {
        /// Which.
        stream: StreamId,
        /// The client's reason.
        code: ErrorCode,
    },
    /// The server has reset the stream for what the client sent on it. Otherwise like a reset by the client.
    Broken {
        /// Which.
        stream: StreamId,
        /// How.
        violation: Violation,
    },
    /// A malformed request was reset. It needs no answer, and is not to be finished.
    Malformed {
        /// Which.
        stream: StreamId,
        /// How.
        malformed: Malformed,
    },
    /// The client makes no more requests. Those that are under way are answered.
    GoAway {
        /// The client's reason.
        code: ErrorCode,
    },
}

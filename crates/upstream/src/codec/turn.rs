//! What a codec is given, and what it returns.

use baton_fcgi::Declined;

use crate::pending_response::PendingResponse;
use crate::{FailureReason, Request, RequestId};

/// The transport offered with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OfferedTransport {
    Nothing,
    Shm,
    PassFd,
}

/// What became of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OfferOutcome {
    /// The answer says nothing of it.
    Ignored,
    TakenUp,
    /// The application knows it, and has a reason against it for this answer.
    Declined(Declined),
}

/// A request that is about to be sent, and how.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    pub(crate) request_id: RequestId,
    pub(crate) request: &'a Request,
    /// The transport to offer to the application.
    pub(crate) offered: OfferedTransport,
    /// Whether the connection is to be kept behind the response.
    pub(crate) keeps: bool,
    /// Whether the message is sent so that it shows when the application has accepted the connection.
    pub(crate) shows_acceptance: bool,
    /// How long an application that writes to a stalled client shall wait.
    pub(crate) patience_ms: u32,
    /// Scratch memory for parameters.
    pub(crate) block: &'a mut Vec<u8>,
    /// Memory for the response's head.
    pub(crate) memory: Vec<u8>,
}

/// How a message that is complete ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ended {
    /// The response is complete; whether the next request may follow, as far as the codec knows.
    Answered { may_follow: bool },
    /// The application refused the request without an answer.
    Refused,
}

/// What the end of the connection means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    /// The response is complete.
    Complete,
    /// Nothing of a response has come.
    Silent,
    /// The response is cut or invalid.
    Failed(FailureReason),
    /// The other side of a tunnel will send no more, but still takes.
    Half,
}

impl StreamEnd {
    /// The end of a connection in the middle of a message.
    pub(crate) fn abrupt(response: &PendingResponse) -> Self {
        if response.is_silent() { Self::Silent } else { Self::Failed(FailureReason::Ended) }
    }
}

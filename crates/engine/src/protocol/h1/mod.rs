//! HTTP/1.0 and 1.1, one request at a time (RFC 9112).
//!
//! ```text
//!   bytes ──► requests   heads, bodies, what is read past     ──► exchange
//!   bytes ◄── responses  persistence, framing, 100 Continue   ◄── exchange
//! ```

mod requests;
mod responses;

use baton_http::HeadScanner;

use super::stream::StreamId;

use requests::Phase;
pub(crate) use requests::{BodyRead, BodySink, Taken};
use responses::Response;
pub(crate) use responses::{LastClose, Responder};

/// One HTTP/1 connection as a machine.
///
/// Input: [`next`](Self::next) and [`read_body`](Self::read_body) are given what has arrived and is not done with. A request
/// that was taken is answered through its [`Responder`].
#[derive(Debug)]
pub(crate) struct Http1 {
    phase: Phase,
    scanner: HeadScanner,
    /// Requests that were taken.
    requests: u64,
    response: Response,
}

impl Http1 {
    /// A connection before its first request.
    pub(crate) fn new() -> Self {
        Self {
            phase: Phase::Head,
            scanner: HeadScanner::new(),
            requests: 0,
            response: Response::to_no_request(),
        }
    }

    /// The request that was taken last.
    pub(crate) fn stream(&self) -> StreamId {
        StreamId(self.requests)
    }

    /// Takes input in which no request was found for a request, so that it can be refused.
    pub(crate) fn take_unreadable(&mut self) -> StreamId {
        self.requests += 1;
        self.stream()
    }

    /// Requests that were taken.
    pub(crate) fn requests(&self) -> u64 {
        self.requests
    }
}

//! HTTP/1.0 and 1.1, one request at a time (RFC 9112).
//!
//! ```text
//!   bytes ──► requests   heads, bodies, what is read past     ──► exchange
//!   bytes ◄── responses  persistence, framing, 100 Continue   ◄── exchange
//! ```

mod requests;
mod responses;

use baton_http::HeadScanner;

use requests::Phase;
pub(crate) use requests::{Body, BodySink, Request, Taken};
use responses::Response;
pub(crate) use responses::{LastClose, Responder};

/// One HTTP/1 connection as a machine.
///
/// Input: [`next`](Self::next) is given what has arrived and is not done with. Commands:
/// [`read_body`](Self::read_body) when the body is to be read, [`respond`](Self::respond) to answer,
/// [`handle_answered`](Self::handle_answered) or [`handle_given_away`](Self::handle_given_away) when a request is done
/// with.
#[derive(Debug)]
pub(crate) struct Http1 {
    phase: Phase,
    scanner: HeadScanner,
    /// Requests that are done with.
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

    /// Requests that were answered or given away.
    pub(crate) fn requests(&self) -> u64 {
        self.requests
    }
}

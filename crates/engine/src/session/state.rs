//! What a session is at, and what it waits for.

use crate::protocol::LastClose;

/// How far a client is.
#[derive(Debug)]
pub(super) enum State {
    /// Requests are taken, or answered.
    Open,
    /// What is in the outlet is the last.
    Ending(LastClose),
    /// Our side is closed; what the client still sends is thrown away.
    Lingering,
    /// Over.
    Closed,
}

/// What the deadline is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    FirstRequest,
    NextRequest,
    Head,
    Body,
    /// The rest of a body whose request has been answered.
    Unwanted,
    Send,
    Linger,
    Job,
    Application,
}

/// How far the body of a request is that was given away before it was complete.
#[derive(Debug)]
pub(super) struct StreamedBody {
    /// Bytes that have not been read from the client.
    pub(super) left: u64,
    /// The application has taken what it was given.
    pub(super) is_wanted: bool,
    /// Pieces passed on since others had their turn.
    pub(super) pieces: usize,
}

impl StreamedBody {
    pub(super) fn new(left: u64) -> Self {
        Self { left, is_wanted: false, pieces: 0 }
    }
}

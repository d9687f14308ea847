//! What an HTTP/1 session waits for.

/// The wait that the deadline limits.
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

/// The rest of a delegated request's body, which arrives while the application already has the request.
#[derive(Debug)]
pub(super) struct StreamedBody {
    /// Bytes that have not been read from the client.
    pub(super) left: u64,
    /// The gateway wants the next piece: the application has taken the last one.
    pub(super) is_wanted: bool,
    /// Pieces passed on since other clients had a turn.
    pub(super) pieces: usize,
}

impl StreamedBody {
    pub(super) fn new(left: u64) -> Self {
        Self { left, is_wanted: false, pieces: 0 }
    }
}

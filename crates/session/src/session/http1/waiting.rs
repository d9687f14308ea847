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

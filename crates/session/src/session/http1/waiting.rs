//! What an HTTP/1 session waits for.

use crate::protocol::BodyRest;

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
    pub(super) lent: Lent,
    /// The gateway wants the next piece: the application has taken the last one.
    pub(super) is_wanted: bool,
    /// Pieces passed on since other clients had a turn.
    pub(super) pieces: usize,
    /// The client may never send it.
    pub(super) may_be_kept_back: bool,
}

/// How the rest is delimited.
#[derive(Debug)]
pub(super) enum Lent {
    /// By its length: so many bytes have not been read from the client.
    Length(u64),
    /// By chunks.
    Chunked(BodyRest),
    /// By the end of the connection: it is another protocol's.
    Tunnel,
    /// All of it has been read.
    Over,
}

impl StreamedBody {
    pub(super) fn new(lent: Lent) -> Self {
        Self { lent, is_wanted: false, pieces: 0, may_be_kept_back: false }
    }

    /// A body of which the protocol has read the beginning.
    pub(super) fn of_rest(rest: BodyRest) -> Self {
        let may_be_kept_back = rest.may_be_kept_back();
        let lent = match rest.left() {
            Some(left) => Lent::Length(left),
            None => Lent::Chunked(rest),
        };
        Self { may_be_kept_back, ..Self::new(lent) }
    }

    pub(super) fn is_tunnel(&self) -> bool {
        matches!(self.lent, Lent::Tunnel)
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.lent, Lent::Length(0) | Lent::Over)
    }

    /// Bytes that have not been read, at the most.
    pub(super) fn left(&self) -> u64 {
        match self.lent {
            Lent::Length(_) if self.may_be_kept_back => u64::MAX,
            Lent::Length(left) => left,
            Lent::Chunked(_) | Lent::Tunnel => u64::MAX,
            Lent::Over => 0,
        }
    }
}

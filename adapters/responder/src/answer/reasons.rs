//! Why collected output is sent, and why it ends.

use std::fmt;

use rustix::io::Errno;

/// Why output has ended. The application can only [finish](crate::Answer::finish), or close.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The client is gone, and output is dropped. Finish the request as usual.
    ClientGone,
    /// The connection to the server is broken: close it.
    ConnectionLost(Errno),
    /// Only from [`Answer::finish`](crate::Answer::finish): the rest of the response was handed back to the server,
    /// and it ended before its declared length. Close the connection without another record, which tells the server.
    Unfinished,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClientGone => f.write_str("the client is gone"),
            Self::ConnectionLost(errno) => write!(f, "the connection to the server is lost: {errno}"),
            Self::Unfinished => f.write_str("the response is shorter than it had been declared"),
        }
    }
}

impl std::error::Error for Ended {}

impl From<Ended> for std::io::Error {
    fn from(ended: Ended) -> Self {
        let kind = match ended {
            Ended::ClientGone => std::io::ErrorKind::BrokenPipe,
            Ended::ConnectionLost(_) => std::io::ErrorKind::ConnectionReset,
            Ended::Unfinished => std::io::ErrorKind::UnexpectedEof,
        };
        Self::new(kind, ended)
    }
}

/// Why collected output is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// There is no room for more of it, which follows at once.
    Room,
    /// A large write follows.
    Direct,
    /// The application wants it.
    Flush,
    /// Nothing follows, and the request may go on.
    LastOutput,
    /// Nothing follows, and the report to the server does at once.
    Last,
}

impl Why {
    pub(super) const fn is_last(self) -> bool {
        matches!(self, Self::LastOutput | Self::Last)
    }
}

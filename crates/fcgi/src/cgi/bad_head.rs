//! Why a head is refused.

use std::fmt;

/// Why the head of an application's response cannot be sent to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BadHead {
    /// The head is longer than the limit.
    TooLarge {
        /// In bytes.
        limit: usize,
    },
    /// There is no field in it.
    Empty,
    /// The output ended before the blank line that ends a head.
    Incomplete,
    /// A line without a colon.
    NotAField,
    /// A name that is none: empty, with blanks, or continuing another line.
    Name,
    /// A value with control characters.
    Value,
    /// A Status without a code from 200 to 999, or more than one.
    Status,
    /// More than one Location.
    Location,
    /// A Content-Length that is no number, or two that differ.
    Length,
    /// More than one of X-Sendfile, X-Accel-Redirect and X-ZeroCopy, or one that makes no sense.
    Instruction,
}

impl BadHead {
    /// One word for logs and metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "head-too-large",
            Self::Empty => "head-empty",
            Self::Incomplete => "head-incomplete",
            Self::NotAField => "head-not-a-field",
            Self::Name => "head-name",
            Self::Value => "head-value",
            Self::Status => "head-status",
            Self::Location => "head-location",
            Self::Length => "head-length",
            Self::Instruction => "head-instruction",
        }
    }
}

impl fmt::Display for BadHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLarge { limit } => {
                return write!(
                    f,
                    "the head of the response is longer than {limit} bytes, which `limits.response_head_bytes_max` allows"
                );
            }
            Self::Empty => "the response is empty, or begins with a blank line",
            Self::Incomplete => "the response ended inside its head, before the blank line",
            Self::NotAField => "the head of the response has a line without a colon",
            Self::Name => "the head of the response has a field with an impossible name",
            Self::Value => "the head of the response has a field with control characters",
            Self::Status => "the head of the response has no valid Status",
            Self::Location => "the head of the response has more than one Location",
            Self::Length => "the head of the response has no valid Content-Length",
            Self::Instruction => "the head of the response asks for what cannot be done",
        })
    }
}

impl std::error::Error for BadHead {}

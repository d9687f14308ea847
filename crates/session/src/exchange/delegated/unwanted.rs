//! The body of a response that is not passed on.

/// How long the body of an unwanted response is listened to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnwantedRest {
    /// To its end: an application that is cut off may not do what it does behind it.
    Awaited,
    /// As long as it comes at once, for that keeps the connection to an origin; so many bytes were dropped.
    Comes(u64),
    /// It does not end now: the request is to be taken back.
    Lasts,
    /// The request was taken back.
    TakenBack,
}

impl UnwantedRest {
    /// So many bytes more have come.
    pub(super) fn with(self, bytes: u64) -> Self {
        match self {
            Self::Comes(before) if before + bytes <= UNWANTED_BYTES_MAX => Self::Comes(before + bytes),
            other => other.ending(),
        }
    }

    /// It does not come at once any more, or is too long.
    pub(super) fn ending(self) -> Self {
        if let Self::Comes(_) = self { Self::Lasts } else { self }
    }
}

/// Bytes of a body that are read to keep the connection that it comes by.
const UNWANTED_BYTES_MAX: u64 = 64 << 10;

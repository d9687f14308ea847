//! Why an established connection cannot go on.

use std::fmt;

use crate::Alert;

/// Why no more records can be opened or sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// A record is not what the peer sealed, or it was sealed under another key.
    Corrupt,
    /// A record is longer than any may be.
    TooLarge,
    /// A record that has no place on an established connection.
    Unexpected,
    /// The client wants to negotiate anew, which this server never does.
    Renegotiation,
    /// Too many records without data in a row.
    Flood,
    /// The peer has ended the connection with this alert.
    PeerAlert(Alert),
    /// The key has sealed as many records as it may, and TLS 1.2 has no way to another.
    Exhausted,
    /// The caller, or a library below, has broken its contract.
    Internal,
}

impl RecordError {
    /// The reason in one word, for logs and metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::Corrupt => "corrupt-record",
            Self::TooLarge => "record-too-large",
            Self::Unexpected => "unexpected-record",
            Self::Renegotiation => "renegotiation",
            Self::Flood => "empty-records",
            Self::PeerAlert(_) => "peer-alert",
            Self::Exhausted => "key-exhausted",
            Self::Internal => "internal",
        }
    }

    /// What the peer is told; `None`: nothing, it has ended the connection itself.
    pub fn alert(self) -> Option<Alert> {
        Some(match self {
            Self::Corrupt => Alert::BAD_RECORD_MAC,
            Self::TooLarge => Alert::RECORD_OVERFLOW,
            Self::Unexpected | Self::Flood => Alert::UNEXPECTED_MESSAGE,
            Self::Renegotiation => Alert::NO_RENEGOTIATION,
            Self::PeerAlert(_) => return None,
            Self::Exhausted | Self::Internal => Alert::INTERNAL_ERROR,
        })
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PeerAlert(alert) => write!(f, "the peer sent the alert {alert}"),
            other => f.write_str(match other {
                Self::Corrupt => "a record does not decrypt",
                Self::TooLarge => "a record is too large",
                Self::Unexpected => "a record is unexpected",
                Self::Renegotiation => "the client wants to renegotiate",
                Self::Flood => "too many records without data",
                Self::Exhausted => "the key has sealed as many records as it may",
                Self::Internal | Self::PeerAlert(_) => "the record layer failed",
            }),
        }
    }
}

impl std::error::Error for RecordError {}

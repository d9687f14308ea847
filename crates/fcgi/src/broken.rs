//! How the other side can break the protocol.

use std::fmt;

/// A protocol error of the peer of a FastCGI connection, after which the connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Broken {
    /// A record of another version than 1, or no record at all.
    Version(u8),
    /// A record of a type that is invalid in this direction.
    UnexpectedType(u8),
    /// A record whose content has the wrong length for its type.
    ContentLength(u8),
    /// A protocol status that does not exist.
    ProtocolStatus(u8),
    /// A hand-over record (type 66) of an unknown kind, or with impossible content.
    HandOver,
    /// Something of a request after its end.
    AfterEnd,
    /// Records of a request in an order that they cannot have.
    Order,
    /// A block of name-value pairs that ends in the middle of one.
    Params,
    /// An offer that lacks a required word.
    Offer,
}

impl Broken {
    /// One word for logs and metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Version(_) => "record-version",
            Self::UnexpectedType(_) => "record-type",
            Self::ContentLength(_) => "record-length",
            Self::ProtocolStatus(_) => "protocol-status",
            Self::HandOver => "hand-over-record",
            Self::AfterEnd => "after-end",
            Self::Order => "record-order",
            Self::Params => "params",
            Self::Offer => "offer",
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => write!(f, "a record of version {version}, which is not FastCGI"),
            Self::UnexpectedType(kind) => write!(f, "an unexpected record of type {kind}"),
            Self::ContentLength(kind) => write!(f, "a record of type {kind} with content of a wrong length"),
            Self::ProtocolStatus(status) => write!(f, "the unknown protocol status {status}"),
            Self::HandOver => f.write_str("a malformed hand-over record"),
            Self::AfterEnd => f.write_str("records of a request after its end"),
            Self::Order => f.write_str("records of a request out of order"),
            Self::Params => f.write_str("name-value pairs that end in the middle"),
            Self::Offer => f.write_str("a malformed offer"),
        }
    }
}

impl std::error::Error for Broken {}

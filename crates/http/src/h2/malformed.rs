//! What a header block may be found to be, other than a request: over a limit, malformed, or not HPACK.

use super::hpack::CompressionError;
use crate::Refusal;
use std::fmt;

/// Why a block gives no request. The three families have three consequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeadError {
    /// The request is beyond a limit, or one that HTTP/1 would refuse too: it gets an answer with the refusal's status.
    Refused(Refusal),
    /// The request breaks the rules of HTTP/2: its stream ends with PROTOCOL_ERROR (RFC 9113 section 8.1.1).
    Malformed(Malformed),
    /// The block cannot be decoded: the connection ends with COMPRESSION_ERROR (RFC 9113 section 4.3).
    Compression(CompressionError),
}

impl HeadError {
    /// One word for logs and metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Refused(refusal) => refusal.label(),
            Self::Malformed(malformed) => malformed.label(),
            Self::Compression(error) => error.label(),
        }
    }
}

impl fmt::Display for HeadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Malformed(malformed) => malformed.fmt(f),
            Self::Compression(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for HeadError {}

impl From<Refusal> for HeadError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Malformed> for HeadError {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

impl From<CompressionError> for HeadError {
    fn from(error: CompressionError) -> Self {
        Self::Compression(error)
    }
}

crate::reasons! {
    /// Why a head is malformed (RFC 9113 section 8).
    Malformed {
        /// A pseudo-field that requests do not have.
        PseudoUnknown => "pseudo-unknown",
            "the request has a pseudo-header field that no request has";
        /// A pseudo-field comes twice.
        PseudoRepeated => "pseudo-repeated",
            "the request has a pseudo-header field twice";
        /// A pseudo-field behind another field, or in trailers.
        PseudoLate => "pseudo-late",
            "the request has a pseudo-header field behind other fields";
        /// One of `:method`, `:scheme` and `:path` is missing, or `:authority` of a CONNECT.
        PseudoMissing => "pseudo-missing",
            "the request lacks a pseudo-header field that its method needs";
        /// A pseudo-field that the method forbids: `:scheme` or `:path` of a CONNECT, `:protocol` of another method.
        PseudoUnfit => "pseudo-unfit",
            "the request has a pseudo-header field that its method forbids";
        /// `:method` is no token.
        Method => "pseudo-method",
            "the method is not a token";
        /// `:scheme` is no scheme (RFC 3986 section 3.1).
        Scheme => "pseudo-scheme",
            "the scheme is malformed";
        /// `:path` is empty.
        PathEmpty => "pseudo-path-empty",
            "the path is empty";
        /// `:protocol` is no token.
        Protocol => "pseudo-protocol",
            "the protocol of an extended CONNECT is not a token";
        /// `:authority` and Host differ.
        HostDiffers => "host-differs",
            "the Host field is not the authority of the request";
        /// A name is empty, has upper-case letters, or bytes that no token has.
        FieldName => "field-name-malformed",
            "a header field's name is not a token in lower case";
        /// A value has control characters, or blanks around it.
        FieldValue => "field-value-malformed",
            "a header field's value has control characters, or blanks around it";
        /// A field about an HTTP/1 connection.
        ConnectionField => "connection-field",
            "the request has a header field that is about an HTTP/1 connection";
        /// TE with another value than `trailers`.
        Te => "te",
            "the TE field has another value than trailers";
        /// Content-Length announces a body, but the head ends the stream.
        LengthWithoutBody => "length-without-body",
            "the request announces a body and has none";
    }
}

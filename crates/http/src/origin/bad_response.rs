//! Why the response of an origin is refused.

use crate::Refusal;
use std::fmt;

macro_rules! reasons {
    ($($(#[$doc:meta])+ $name:ident $({ $($field:ident),+ })? => $label:literal, $text:literal;)*) => {
        /// Why no client gets this response. The connection to the origin ends after any of them, because the position
        /// of its next response is unknown.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum BadResponse {
            $($(#[$doc])+ $name $({
                $(#[doc = concat!("In bytes: ", stringify!($field), ".")] $field: usize),+
            })?,)*
        }

        impl BadResponse {
            /// One word for logs and metrics.
            pub const fn label(self) -> &'static str {
                match self {
                    $(Self::$name { .. } => $label,)*
                }
            }
        }

        impl fmt::Display for BadResponse {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$name $({ $($field),+ })? => write!(f, $text),)*
                }
            }
        }
    };
}

reasons! {
    // The head as a whole
    /// The head is longer than the limit. `read`: what had arrived by then.
    HeadTooLarge { limit, read } => "head-too-large",
        "the head of the response is longer than {limit} bytes, which `limits.response_head_bytes_max` allows: {read} have come, and not its end";
    /// There are more field lines than [`RESPONSE_FIELDS_MAX`](super::RESPONSE_FIELDS_MAX).
    FieldsTooMany => "fields-too-many",
        "the response has too many header fields";
    /// TLS is spoken on this port.
    Tls => "tls",
        "the origin speaks TLS: use https";
    /// A line ends with LF alone (RFC 9112 section 2.2 lets a recipient accept it; not all do).
    BareLineFeed => "bare-line-feed",
        "a line of the head ends with LF alone";
    /// A CR that no LF follows (RFC 9112 section 2.2).
    BareCarriageReturn => "bare-carriage-return",
        "a CR in the head is not followed by LF";

    // The status line
    /// The first line is not version, blank, three digits, and a phrase or none (RFC 9112 section 4).
    StatusLine => "status-line",
        "the response does not begin with a status line of HTTP/1";
    /// A version other than HTTP/1.
    Version => "version",
        "the origin answers with another version than HTTP/1";
    /// A second status line, where a field should be.
    StatusLineRepeated => "status-line-repeated",
        "the head of the response has a second status line";
    /// A switch of protocols that was not asked for.
    SwitchUnasked => "switch-unasked",
        "the origin switches protocols without having been asked";
    /// A success in place of the switch of protocols that an extended CONNECT asks for (RFC 9110 section 9.3.6).
    SwitchIgnored => "switch-ignored",
        "the origin answers in place of switching protocols, which a client of HTTP/2 would take for a tunnel";
    /// More interim responses than [`INTERIM_HEADS_MAX`](super::INTERIM_HEADS_MAX).
    InterimTooMany => "interim-too-many",
        "the origin sends interim responses without end";

    // Field lines
    /// A field line begins with a blank: an obsolete folded line, or a blank before the first field.
    FoldedLine => "folded-line",
        "a header line begins with white space: folded lines are obsolete";
    /// A field name is empty, has bytes that no token has, or a blank before its colon (RFC 9112 section 5.1).
    FieldName => "field-name",
        "a header field's name is not a token followed by a colon";
    /// A field value has control characters.
    FieldValue => "field-value",
        "a header field's value has control characters";

    // Framing of the body
    /// Content-Length is not a decimal number, or does not fit 64 bits.
    LengthInvalid => "length-invalid",
        "Content-Length is not a number";
    /// Two Content-Lengths that differ.
    LengthDiffers => "length-differs",
        "the response has two Content-Lengths that differ";
    /// Both Content-Length and Transfer-Encoding: the mark of response splitting (RFC 9112 section 6.3).
    LengthAndTransferEncoding => "length-and-transfer-encoding",
        "the response has both Content-Length and Transfer-Encoding";
    /// A transfer coding other than chunked, which no request has allowed.
    TransferEncodingUnknown => "transfer-encoding-unknown",
        "the response has a transfer coding other than chunked";
    /// `chunked` is not the last transfer coding, or comes twice, or the field is empty.
    TransferEncodingInvalid => "transfer-encoding-invalid",
        "Transfer-Encoding must name chunked once, and last";
    /// Transfer-Encoding in a response of HTTP/1.0, whose framing is faulty by definition.
    TransferEncodingInHttp10 => "transfer-encoding-in-http10",
        "a response of HTTP/1.0 has a Transfer-Encoding";

    // The chunked body
    /// A chunk's size is not hexadecimal, does not fit 64 bits, or its line is malformed.
    ChunkSize => "chunk-size",
        "a chunk's size is malformed";
    /// The chunk extensions of a body are longer than the limit or malformed.
    ChunkExtension => "chunk-extension",
        "the chunk extensions are malformed or larger than the limit";
    /// A chunk's data is not followed by CR LF.
    ChunkEnd => "chunk-end",
        "a chunk's data does not end where its size says";
    /// A trailer line is malformed.
    TrailerInvalid => "trailer-invalid",
        "a trailer field is malformed";
    /// The trailer section is longer than the limit.
    TrailerTooLarge => "trailer-too-large",
        "the trailer section is larger than the limit";
}

impl std::error::Error for BadResponse {}

impl BadResponse {
    /// What the reader of chunks found. It has no other refusals.
    pub(super) fn of_chunks(refusal: Refusal) -> Self {
        match refusal {
            Refusal::ChunkExtension => Self::ChunkExtension,
            Refusal::ChunkEnd => Self::ChunkEnd,
            Refusal::TrailerInvalid => Self::TrailerInvalid,
            Refusal::TrailerTooLarge => Self::TrailerTooLarge,
            _ => Self::ChunkSize,
        }
    }
}

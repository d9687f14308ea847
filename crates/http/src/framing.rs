//! The length of a request's body (RFC 9112 section 6.3, RFC 9113 section 8.1); ambiguous framing is refused.

use crate::decimal::parse_decimal;
use crate::fields::{field_lines, list_members};
use crate::{Refusal, Version};

/// How the body of a request is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// There is no body.
    None,
    /// The body has as many bytes as Content-Length says: in HTTP/2 the sum of the DATA frames, or the stream is malformed.
    Length(u64),
    /// Chunks (RFC 9112 section 7.1).
    Chunked,
    /// The DATA frames of an HTTP/2 stream, of unknown length.
    Frames,
}

impl BodyFraming {
    /// Decides from the two fields that frame; `section` is looked at again only to refuse it. A request with neither
    /// has the body `without`.
    pub(crate) fn decide(
        version: Version,
        content_length: Option<&[u8]>,
        transfer_encoding: Option<&[u8]>,
        section: &[u8],
        without: Self,
    ) -> Result<Self, Refusal> {
        match (content_length, transfer_encoding) {
            (None, None) => Ok(without),
            (Some(length), None) => parse_decimal(length).map(Self::Length).ok_or(Refusal::LengthInvalid),
            (Some(_), Some(_)) => Err(Refusal::LengthAndTransferEncoding),
            (None, Some(_)) if version == Version::Http10 => Err(Refusal::TransferEncodingInHttp10),
            (None, Some(coding)) if coding.eq_ignore_ascii_case(b"chunked") => Ok(Self::Chunked),
            (None, Some(_)) => Err(judge_codings(section)),
        }
    }

    /// Whether there is nothing to read.
    pub const fn is_empty(self) -> bool {
        matches!(self, Self::None | Self::Length(0))
    }
}

/// The refusal of Transfer-Encoding fields other than `chunked`: misuse of `chunked` is the client's error, another
/// coding is not implemented (RFC 9112 section 6.1).
#[cold]
fn judge_codings(section: &[u8]) -> Refusal {
    let codings = field_lines(section)
        .filter(|(name, _)| name.eq_ignore_ascii_case("Transfer-Encoding"))
        .flat_map(|(_, value)| list_members(value));
    let (mut last_is_chunked, mut other_seen) = (false, false);
    for coding in codings {
        if last_is_chunked {
            return Refusal::TransferEncodingInvalid;
        }
        last_is_chunked = coding.eq_ignore_ascii_case(b"chunked");
        other_seen |= !last_is_chunked;
    }
    // Without another coding this is an empty list, or `chunked` among empty members, or in a second line:
    // not every recipient reads those alike.
    if other_seen { Refusal::TransferEncodingUnknown } else { Refusal::TransferEncodingInvalid }
}

//! The request line, by the letter (RFC 9112 section 3).

use crate::Refusal;
use crate::fields::is_token_byte;

/// The three words of a request line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestLine<'a> {
    pub(crate) method: &'a [u8],
    pub(crate) target: &'a [u8],
    /// The minor version of HTTP/1. A server of 1.1 answers higher ones as 1.1 (RFC 9110 section 2.5).
    pub(crate) minor: u8,
}

impl<'a> RequestLine<'a> {
    /// Splits a line, which has no CR LF.
    pub(crate) fn split(line: &'a [u8]) -> Result<Self, Refusal> {
        let mut words = line.split(|byte| *byte == b' ');
        let method = words.next().unwrap_or_default();
        if method.is_empty() || !method.iter().copied().all(is_token_byte) {
            return Err(Refusal::Method);
        }
        let (Some(target @ [_, ..]), Some(version), None) = (words.next(), words.next(), words.next()) else {
            return Err(Refusal::RequestLine);
        };
        if !target.iter().all(|byte| byte.is_ascii_graphic() || !byte.is_ascii()) {
            return Err(Refusal::TargetBytes);
        }
        match version {
            [b'H', b'T', b'T', b'P', b'/', b'1', b'.', minor @ b'0'..=b'9'] => {
                Ok(Self { method, target, minor: minor - b'0' })
            }
            [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'] => Err(Refusal::Version),
            _ => Err(Refusal::RequestLine),
        }
    }
}

//! The pseudo-fields of a request (RFC 9113 section 8.3.1, RFC 8441 section 4).

use super::{HeadError, Malformed};
use crate::Refusal;
use crate::fields::is_token_byte;
use std::ops::Range;

/// What has come of them. Their order is the client's, so they wait here until the request line can be written.
#[derive(Debug, Default)]
pub(super) struct PseudoFields {
    text: Vec<u8>,
    spans: [Option<Range<usize>>; COUNT],
}

impl PseudoFields {
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.spans = Default::default();
    }

    pub(super) fn add(&mut self, name: &[u8], value: &[u8]) -> Result<(), Malformed> {
        let index = NAMES.iter().position(|known| *known == name).ok_or(Malformed::PseudoUnknown)?;
        let span = self.text.len()..self.text.len() + value.len();
        if self.spans[index].replace(span).is_some() {
            return Err(Malformed::PseudoRepeated);
        }
        self.text.extend_from_slice(value);
        Ok(())
    }

    /// What an extended CONNECT wants to speak.
    pub(super) fn protocol(&self) -> Option<&[u8]> {
        self.spans[PROTOCOL].clone().map(|span| &self.text[span])
    }

    /// Checks them together, when all have come. `:authority` is judged with the Host field, as in HTTP/1.
    pub(super) fn complete(&self) -> Result<RequestPseudo<'_>, HeadError> {
        let [method, scheme, authority, path, protocol] =
            self.spans.each_ref().map(|span| span.clone().map(|span| &self.text[span]));
        let method = method.ok_or(Malformed::PseudoMissing)?;
        if !is_token(method) {
            return Err(Malformed::Method.into());
        }
        if method == b"CONNECT" && protocol.is_none() {
            if scheme.is_some() || path.is_some() {
                return Err(Malformed::PseudoUnfit.into());
            }
            // The authority form of HTTP/1: judged as a target.
            let target = authority.ok_or(Malformed::PseudoMissing)?;
            return Ok(RequestPseudo { method, target: target_bytes(target)?, authority });
        }
        if protocol.is_some() && method != b"CONNECT" {
            return Err(Malformed::PseudoUnfit.into());
        }
        if protocol.is_some_and(|protocol| !is_token(protocol)) {
            return Err(Malformed::Protocol.into());
        }
        let (Some(scheme), Some(path)) = (scheme, path) else {
            return Err(Malformed::PseudoMissing.into());
        };
        if protocol.is_some() && authority.is_none() {
            return Err(Malformed::PseudoMissing.into());
        }
        if !is_scheme(scheme) {
            return Err(Malformed::Scheme.into());
        }
        match path {
            [] => Err(Malformed::PathEmpty.into()),
            [b'/', ..] | b"*" => Ok(RequestPseudo { method, target: target_bytes(path)?, authority }),
            // Without this an absolute target could name another host than `:authority`.
            _ => Err(Refusal::TargetForm.into()),
        }
    }
}

/// The pseudo-fields of a request that is well-formed so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestPseudo<'p> {
    pub(super) method: &'p [u8],
    /// The target as HTTP/1 writes it.
    pub(super) target: &'p [u8],
    pub(super) authority: Option<&'p [u8]>,
}

/// A target that can stand in a request line.
fn target_bytes(target: &[u8]) -> Result<&[u8], Refusal> {
    let is_line = !target.is_empty() && target.iter().all(|byte| byte.is_ascii_graphic() || !byte.is_ascii());
    if is_line { Ok(target) } else { Err(Refusal::TargetBytes) }
}

fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().copied().all(is_token_byte)
}

/// RFC 3986 section 3.1. Which scheme it is decides nothing: a proxy may have translated it.
fn is_scheme(text: &[u8]) -> bool {
    text.first().is_some_and(u8::is_ascii_alphabetic)
        && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
}

const COUNT: usize = 5;
const NAMES: [&[u8]; COUNT] = [b":method", b":scheme", b":authority", b":path", b":protocol"];
const PROTOCOL: usize = 4;

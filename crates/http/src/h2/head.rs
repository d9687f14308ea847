//! The head of a request, out of its header block.
//!
//! A block becomes the text that HTTP/1 would have sent, with HTTP/2's rules checked on the way, so that everything
//! behind knows one form of head: a request line for logs, and lines of fields.

use super::hpack::{Decoder, Field};
use super::pseudo::PseudoFields;
use super::response_head::is_of_the_connection;
use super::{HeadError, Malformed, Priority};
use crate::fields::{is_token_byte, is_value_byte};
use crate::request::HeadParts;
use crate::{BodyFraming, FIELDS_CAP, HeadLimits, Refusal, RequestHead, TRAILER_BYTES_MAX, Version};
use std::ops::Range;

/// A request as its header block says it.
#[derive(Clone, Copy, Debug)]
pub struct Request<'t> {
    /// The head, as if it had come in lines.
    pub head: RequestHead<'t>,
    /// `:protocol`: what an extended CONNECT wants to speak (RFC 8441). Malformed unless the setting that allows it was
    /// sent.
    pub protocol: Option<&'t [u8]>,
    /// The field Priority, if the request has one.
    pub priority: Option<Priority>,
}

/// Where heads are written, one after the other: a buffer that all connections of a loop can share, because a block is
/// decoded at once. Once it has grown, a head costs no allocation.
#[derive(Debug, Default)]
pub struct HeadText {
    /// Where strings are decompressed.
    scratch: Vec<u8>,
    draft: Draft,
}

impl HeadText {
    /// Decodes the complete block of a request. `ends`: the request has no body, END_STREAM was set.
    ///
    /// # Errors
    /// See [`HeadError`]. Unless it is an error of compression, the block was decoded to its end, so that the next one
    /// can be; after the first error its fields are skipped. The caller bounds the length of a block.
    pub fn decode(
        &mut self,
        decoder: &mut Decoder,
        block: &[u8],
        ends: bool,
        limits: &HeadLimits,
    ) -> Result<Request<'_>, HeadError> {
        let draft = &mut self.draft;
        draft.clear();
        each_field(decoder, block, &mut self.scratch, |field| draft.add(&field, limits))?;
        draft.finish(ends, limits)
    }

    /// Decodes the complete block of trailers, which are checked and discarded.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn decode_trailers(&mut self, decoder: &mut Decoder, block: &[u8]) -> Result<(), HeadError> {
        let mut bytes = 0;
        each_field(decoder, block, &mut self.scratch, |field| {
            bytes += field.size();
            if bytes > TRAILER_BYTES_MAX {
                return Err(Refusal::TrailerTooLarge.into());
            }
            if field.name.first() == Some(&b':') {
                return Err(Malformed::PseudoLate.into());
            }
            Ok(check_field(&field)?)
        })
    }
}

/// Gives every field to `take`, until that fails. Decodes the others all the same, for the state of the table.
fn each_field(
    decoder: &mut Decoder,
    block: &[u8],
    scratch: &mut Vec<u8>,
    mut take: impl FnMut(Field<'_>) -> Result<(), HeadError>,
) -> Result<(), HeadError> {
    let mut verdict = Ok(());
    let mut fields = decoder.fields(block, scratch);
    while let Some(field) = fields.next_field()? {
        if verdict.is_ok() {
            verdict = take(field);
        }
    }
    verdict
}

/// A head that is being written.
#[derive(Debug, Default)]
struct Draft {
    pseudo: PseudoFields,
    /// The request line, CR LF, lines of fields.
    text: Vec<u8>,
    /// The fields in the text.
    spans: Vec<FieldSpan>,
    /// The crumbs of the Cookie field, joined.
    cookie: Vec<u8>,
    crumbs: usize,
    /// Bytes of the list so far, as SETTINGS_MAX_HEADER_LIST_SIZE counts them.
    list_bytes: usize,
    /// Where the words of the request line end; set when it is written.
    line: Option<Line>,
    priority: Option<Priority>,
}

#[derive(Clone, Copy, Debug)]
struct Line {
    method_end: usize,
    target_end: usize,
    end: usize,
    /// The first field is Host, from `:authority`.
    has_authority: bool,
}

#[derive(Clone, Debug)]
struct FieldSpan {
    name: Range<usize>,
    value: Range<usize>,
}

impl Draft {
    fn clear(&mut self) {
        self.pseudo.clear();
        self.text.clear();
        self.spans.clear();
        self.cookie.clear();
        (self.crumbs, self.list_bytes) = (0, 0);
        (self.line, self.priority) = (None, None);
    }

    fn add(&mut self, field: &Field<'_>, limits: &HeadLimits) -> Result<(), HeadError> {
        let Field { name, value } = *field;
        if name == b":path" && value.len() > limits.target_bytes_max {
            return Err(Refusal::TargetTooLong.into());
        }
        self.list_bytes += field.size();
        if self.list_bytes > limits.head_bytes_max {
            return Err(Refusal::HeadTooLarge.into());
        }
        if name.first() == Some(&b':') {
            if self.line.is_some() {
                return Err(Malformed::PseudoLate.into());
            }
            return Ok(self.pseudo.add(name, value)?);
        }
        let line = self.line()?;
        check_field(field)?;
        match name {
            b"cookie" => return self.add_crumb(value),
            b"host" if line.has_authority => {
                let authority = &self.text[self.spans[0].value.clone()];
                // Two recipients could otherwise see requests for two sites (RFC 9113 section 8.3.1).
                return if authority.eq_ignore_ascii_case(value) {
                    Ok(())
                } else {
                    Err(Malformed::HostDiffers.into())
                };
            }
            b"priority" => self.priority = Some(Priority::parse(value)),
            _ => {}
        }
        if self.spans.len() - usize::from(line.has_authority) == limits.fields_max.min(FIELDS_CAP) {
            return Err(Refusal::FieldsTooMany.into());
        }
        self.push(name, value);
        Ok(())
    }

    /// The request line, which is written when the pseudo-fields are complete: before the first other field.
    fn line(&mut self) -> Result<Line, HeadError> {
        if let Some(line) = self.line {
            return Ok(line);
        }
        let pseudo = self.pseudo.complete()?;
        let text = &mut self.text;
        text.extend_from_slice(pseudo.method);
        let method_end = text.len();
        text.push(b' ');
        text.extend_from_slice(pseudo.target);
        let target_end = text.len();
        text.push(b' ');
        text.extend_from_slice(Version::Http2.as_str().as_bytes());
        let end = text.len();
        text.extend_from_slice(b"\r\n");
        let line = Line { method_end, target_end, end, has_authority: pseudo.authority.is_some() };
        self.line = Some(line);
        if let Some(authority) = pseudo.authority {
            check_field(&Field { name: b"host", value: authority })?;
            push_field(text, &mut self.spans, b"host", authority);
        }
        Ok(line)
    }

    /// Adds a piece of the Cookie field, which the client may divide so that its parts are indexed (RFC 9113 section
    /// 8.2.3).
    fn add_crumb(&mut self, value: &[u8]) -> Result<(), HeadError> {
        if self.crumbs == CRUMBS_MAX {
            return Err(Refusal::FieldsTooMany.into());
        }
        // No value of a field ends with a blank (section 8.2.1), nor does this one behind an empty crumb.
        if !self.cookie.is_empty() && !value.is_empty() {
            self.cookie.extend_from_slice(b"; ");
        }
        self.crumbs += 1;
        self.cookie.extend_from_slice(value);
        Ok(())
    }

    fn push(&mut self, name: &[u8], value: &[u8]) {
        push_field(&mut self.text, &mut self.spans, name, value);
    }

    /// The head, when the block is at its end.
    fn finish(&mut self, ends: bool, limits: &HeadLimits) -> Result<Request<'_>, HeadError> {
        let line = self.line()?;
        if self.crumbs > 0 {
            push_field(&mut self.text, &mut self.spans, b"cookie", &self.cookie);
        }
        let text = &self.text;
        let parts = HeadParts {
            version: Version::Http2,
            line: &text[..line.end],
            method: &text[..line.method_end],
            target: &text[line.method_end + 1..line.target_end],
            section: &text[line.end + "\r\n".len()..],
            unframed: if ends { BodyFraming::None } else { BodyFraming::Frames },
        };
        let fields = self.spans.iter().map(|span| (&text[span.name.clone()], &text[span.value.clone()]));
        let head = RequestHead::judge(&parts, fields, limits)?;
        if ends && !head.framing.is_empty() {
            return Err(Malformed::LengthWithoutBody.into());
        }
        Ok(Request { head, protocol: self.pseudo.protocol(), priority: self.priority })
    }
}

/// Appends a line.
fn push_field(text: &mut Vec<u8>, spans: &mut Vec<FieldSpan>, name: &[u8], value: &[u8]) {
    let name_start = text.len();
    text.extend_from_slice(name);
    text.extend_from_slice(b": ");
    let value_start = text.len();
    text.extend_from_slice(value);
    spans.push(FieldSpan { name: name_start..name_start + name.len(), value: value_start..text.len() });
    text.extend_from_slice(b"\r\n");
}

/// Checks a field that is no pseudo-field (RFC 9113 sections 8.2.1 and 8.2.2).
fn check_field(field: &Field<'_>) -> Result<(), Malformed> {
    let Field { name, value } = *field;
    let is_name_byte = |byte: u8| is_token_byte(byte) && !byte.is_ascii_uppercase();
    if name.is_empty() || !name.iter().copied().all(is_name_byte) {
        return Err(Malformed::FieldName);
    }
    let is_blank = |end: Option<&u8>| matches!(end, Some(b' ' | b'\t'));
    if is_blank(value.first()) || is_blank(value.last()) || !value.iter().copied().all(is_value_byte) {
        return Err(Malformed::FieldValue);
    }
    if is_of_the_connection(name) {
        return Err(Malformed::ConnectionField);
    }
    if name == b"te" && !value.eq_ignore_ascii_case(b"trailers") {
        return Err(Malformed::Te);
    }
    Ok(())
}

/// Most pieces of the Cookie field. They count apart from the other fields, because browsers send one for each cookie, up
/// to 90 for real sites; attackers send thousands of one byte each.
pub const CRUMBS_MAX: usize = 100;

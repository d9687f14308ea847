//! Which responses the server sends in a content coding, as far as status and fields decide it. A library that answers
//! on a client's socket leaves these to the server: an offer says in one line which they are
//! (`docs/handover-protocol.md`, section 2).
//!
//! ```text
//!   ~1024 text/* *+json application/json      coded from 1,024 bytes on, for this client
//!   ~- text/* *+json application/json         coded for other clients only: the head says `Vary`
//! ```

use crate::{list_members, parse_decimal};

/// Whether responses like one of these are coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codable {
    /// Never, for no client.
    Never,
    /// It stands for a response that may be coded: a 304 that names no type.
    Represents,
    /// For clients that take a coding, if the body is long enough.
    Covered,
}

impl Codable {
    /// Judges a response by its status and the values of its fields. `covers`: whether bodies of a media type are coded.
    pub fn of<'f, V: Iterator<Item = &'f [u8]>>(
        status: u16,
        values: impl Fn(&'static str) -> V,
        covers: impl Fn(&[u8]) -> bool,
    ) -> Self {
        let is_whole = !matches!(status, 100..=199 | 204..=206 | 304 | 416);
        let media_type = values("Content-Type").next();
        let has = |name| values(name).next().is_some();
        if status == 304 && media_type.is_none() {
            return Self::Represents;
        }
        let is_covered = is_whole && media_type.is_some_and(covers);
        if !is_covered
            || has("Content-Encoding")
            || has("Content-Range")
            || values("Cache-Control").any(says_no_transform)
        {
            return Self::Never;
        }
        Self::Covered
    }
}

/// Whether one of the `patterns` means a media type, which may have parameters. One `*` in each stands for any run of
/// characters.
///
/// A stream of events is meant by its own name alone: it lasts for hours, with an encoder's memory for each client.
pub fn is_type_among<'p>(media_type: &[u8], mut patterns: impl Iterator<Item = &'p [u8]>) -> bool {
    let essence = media_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let is_of_events = essence.eq_ignore_ascii_case(EVENT_STREAM);
    patterns.any(|pattern| matches(pattern, essence) && !(is_of_events && pattern.contains(&b'*')))
}

/// Whether a media type, in any case, is what a pattern means.
fn matches(pattern: &[u8], essence: &[u8]) -> bool {
    match pattern.iter().position(|byte| *byte == b'*') {
        None => pattern.eq_ignore_ascii_case(essence),
        Some(star) => {
            let (before, after) = (&pattern[..star], &pattern[star + 1..]);
            essence.len() >= before.len() + after.len()
                && essence[..before.len()].eq_ignore_ascii_case(before)
                && essence[essence.len() - after.len()..].eq_ignore_ascii_case(after)
        }
    }
}

/// Whether a `Cache-Control` asks all on the way to leave the bytes as they are (RFC 9111 section 5.2.2.6).
pub fn says_no_transform(value: &[u8]) -> bool {
    list_members(value).any(|member| member.eq_ignore_ascii_case(b"no-transform"))
}

/// What an offer says of codings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodingTerms<'a> {
    /// Shorter bodies, in bytes, are sent as they are; `None`: all are, to this client.
    min_bytes: Option<u64>,
    /// Patterns of media types, separated by blanks.
    types: &'a [u8],
}

/// What becomes of one response by the [`CodingTerms`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodedFor {
    /// No client gets it in a coding.
    None,
    /// Other clients may: the head says `Vary: Accept-Encoding`.
    Others,
    /// This client does.
    ThisOne,
}

impl<'a> CodingTerms<'a> {
    /// Reads the line, without what marks it.
    pub(super) fn parse(line: &'a [u8]) -> Self {
        let end = memchr::memchr(b' ', line).unwrap_or(line.len());
        let min_bytes = match &line[..end] {
            b"-" => None,
            // What is no number leaves all bodies to the server.
            number => Some(parse_decimal(number).unwrap_or(0)),
        };
        Self { min_bytes, types: line.get(end + 1..).unwrap_or_default() }
    }

    /// Judges a response by its status, its fields and the length of its body in bytes, if that is known.
    pub fn judge<'f>(
        self,
        status: u16,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])> + Clone,
        body_len: Option<u64>,
    ) -> CodedFor {
        let values = |name: &'static str| {
            let is_it = move |field: &(&[u8], &[u8])| field.0.eq_ignore_ascii_case(name.as_bytes());
            fields.clone().filter(is_it).map(|field| field.1)
        };
        let patterns = || self.types.split(|byte| *byte == b' ').filter(|pattern| !pattern.is_empty());
        let is_short = || self.min_bytes.is_none_or(|min| body_len.is_some_and(|bytes| bytes < min));
        match Codable::of(status, values, |media_type| is_type_among(media_type, patterns())) {
            Codable::Never => CodedFor::None,
            Codable::Represents => CodedFor::Others,
            Codable::Covered if is_short() => CodedFor::Others,
            Codable::Covered => CodedFor::ThisOne,
        }
    }
}

/// Server-sent events.
const EVENT_STREAM: &[u8] = b"text/event-stream";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field_parts;

    #[test]
    fn a_star_stands_for_any_run() {
        assert!(matches(b"*", b"image/png") && matches(b"*", b""));
        assert!(matches(b"a*a", b"aa") && !matches(b"a*a", b"a"));
        assert!(!matches(b"text/*", b"text"));
    }

    #[test]
    fn an_offers_line_decides_as_the_server_does() {
        use CodedFor::{None as Never, Others, ThisOne};
        let html = "Content-Type: text/html; charset=utf-8\r\n";
        for (min_bytes, status, lines, body_len, expected) in [
            (Some(1024), 200, html, None, ThisOne),
            (Some(1024), 404, html, Some(1024), ThisOne),
            (Some(1024), 200, html, Some(1023), Others),
            (None, 200, html, None, Others),
            (Some(1024), 200, "content-type: application/problem+JSON\r\n", None, ThisOne),
            (Some(1024), 200, "Content-Type: image/png\r\n", None, Never),
            (Some(1024), 200, "Content-Type: text/event-stream\r\n", None, Never),
            (Some(1024), 200, "Content-Type: text/css\r\nContent-Encoding: br\r\n", None, Never),
            (Some(1024), 200, "Content-Type: text/css\r\nCache-Control: a, no-transform\r\n", None, Never),
            (Some(1024), 200, "", None, Never),
            (Some(1024), 206, html, None, Never),
            (Some(1024), 304, html, None, Never),
            (Some(1024), 304, "", None, Others),
        ] {
            let line = min_bytes.map_or("-".to_owned(), |bytes: u64| bytes.to_string()) + " text/* *+json";
            let terms = CodingTerms::parse(line.as_bytes());
            let judged = terms.judge(status, field_parts(lines.as_bytes()), body_len);
            assert_eq!(judged, expected, "{min_bytes:?} {status} {lines} {body_len:?}");
        }
        let broken = CodingTerms::parse(b"many text/*");
        assert_eq!(broken.judge(200, field_parts(html.as_bytes()), Some(1)), ThisOne, "the server decides");
        assert_eq!(CodingTerms::parse(b"1024").judge(200, field_parts(html.as_bytes()), None), Never);
    }
}

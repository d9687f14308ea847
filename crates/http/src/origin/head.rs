//! Judges the head of an origin's response, and decides how its body is delimited (RFC 9112 sections 4 to 6).

use super::hop_by_hop::{NominatedFields, is_of_the_connection};
use super::{BadResponse, ResponseHead};
use crate::decimal::parse_decimal;
use crate::fields::{is_token_byte, is_value, is_value_byte, list_members};
use crate::names::Names;
use crate::{Status, Version};

/// The longest head of a response in bytes, its blank line included, if no setting says otherwise.
pub const RESPONSE_HEAD_BYTES_MAX: usize = 64 * 1024;

/// Most field lines in the head of a response. Real ones have less than a hundred; each lookup walks over all.
pub const RESPONSE_FIELDS_MAX: usize = 1000;

/// What the response depends on, besides its own bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// A request whose response has a body.
    Usual,
    /// A HEAD.
    Head,
    /// A request that offers to switch protocols.
    Upgrade,
    /// A request that offers to switch protocols for an extended CONNECT of HTTP/2.
    /// The client of that takes any 2xx for a tunnel.
    Tunnel,
}

/// A head that was understood.
#[derive(Debug)]
pub(super) struct ParsedHead {
    pub(super) head: ResponseHead,
    pub(super) body: BodyEnd,
    /// Whether another request may follow on the connection, behind this response.
    pub(super) persists: bool,
    /// `timeout` of Keep-Alive, in seconds: how long the origin keeps the connection open.
    pub(super) idle_s: Option<u64>,
}

/// Where a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyEnd {
    /// There is none.
    None,
    Length(u64),
    Chunked,
    /// With the connection.
    Close,
    /// Another protocol follows, in both directions.
    Switch,
}

/// Judges the head at the beginning of `text`, and returns its length, too. `None`: its blank line is not there yet. `buffer`
/// gives its memory to the result.
///
/// # Errors
/// Why two readers might take it for different responses.
pub(super) fn parse(
    text: &[u8],
    asked: RequestKind,
    buffer: &mut Vec<u8>,
) -> Result<Option<(usize, ParsedHead)>, BadResponse> {
    let Some(line_feed) = memchr::memchr(b'\n', text) else { return Ok(None) };
    let (line, fields) = text.split_at(line_feed + 1);
    let StatusLine { version, status, reason } = StatusLine::split(strip_line_end(line)?)?;
    let is_switch = status == Status::SWITCHING_PROTOCOLS;
    let (mut known, mut names) = (FramingFields::default(), Names::default());
    buffer.clear();
    // Lines that stay are copied together: those between two that do not.
    let (mut at, mut copied, mut count) = (0, 0, 0);
    let end = loop {
        let Some(len) = memchr::memchr(b'\n', &fields[at..]) else { return Ok(None) };
        let line = fields[at..at + len].strip_suffix(b"\r").ok_or(BadResponse::BareLineFeed)?;
        let next = at + len + 1;
        if line.is_empty() {
            break next;
        }
        if count == RESPONSE_FIELDS_MAX {
            return Err(BadResponse::FieldsTooMany);
        }
        count += 1;
        let (name, value) = split_field(line)?;
        known.note(name, value)?;
        let ends_here = name.eq_ignore_ascii_case(b"Content-Length")
            || (is_of_the_connection(name) && !(is_switch && name.eq_ignore_ascii_case(b"Upgrade")));
        if ends_here {
            buffer.extend_from_slice(&fields[copied..at]);
            copied = next;
        } else {
            names.note(name);
        }
        at = next;
    };
    buffer.extend_from_slice(&fields[copied..at]);
    let body = known.body(version, status, asked)?;
    let persists = known.persists(version, status, body);
    let kept = std::mem::take(buffer);
    let mut head = ResponseHead::of_checked(kept, names, status, reason, known.content_length);
    // Connection may come behind what it names.
    if !known.nominated.is_empty() && !is_switch {
        head.retain(|name, _| !known.nominated.has(name));
    }
    let parsed = ParsedHead { head: head.with_version(version), body, persists, idle_s: known.idle_s };
    Ok(Some((line.len() + end, parsed)))
}

/// Whether `text` may be the beginning of a response of HTTP/1.
///
/// # Errors
/// What it is instead.
pub(super) fn check_beginning(text: &[u8]) -> Result<(), BadResponse> {
    const BEGINNING: &[u8] = b"HTTP/1.";
    let len = text.len().min(BEGINNING.len());
    if text[..len] == BEGINNING[..len] {
        return Ok(());
    }
    Err(match text {
        // An alert: to a TLS server a request in clear is a malformed record (RFC 8446 section 6).
        [0x15, ..] => BadResponse::Tls,
        [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', ..] => BadResponse::Version,
        _ => BadResponse::StatusLine,
    })
}

/// The first line.
struct StatusLine<'a> {
    version: Version,
    status: Status,
    reason: &'a [u8],
}

impl<'a> StatusLine<'a> {
    fn split(line: &'a [u8]) -> Result<Self, BadResponse> {
        check_beginning(line)?;
        let rest = line.get("HTTP/1.".len()..).ok_or(BadResponse::StatusLine)?;
        let [minor @ b'0'..=b'9', b' ', a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', reason @ ..] =
            rest
        else {
            return Err(BadResponse::StatusLine);
        };
        let code = [*a, *b, *c].iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0'));
        let reason = match reason {
            [] => b"",
            [b' ', reason @ ..] if reason.iter().copied().all(is_value_byte) => reason.trim_ascii(),
            _ => return Err(BadResponse::StatusLine),
        };
        // A client of 1.1 reads higher minor versions as 1.1 (RFC 9110 section 2.5).
        let version = if *minor == b'0' { Version::Http10 } else { Version::Http11 };
        Ok(Self { version, status: Status::new(code), reason })
    }
}

/// A line without its CR LF.
fn strip_line_end(line: &[u8]) -> Result<&[u8], BadResponse> {
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    let text = text.strip_suffix(b"\r").ok_or(BadResponse::BareLineFeed)?;
    if memchr::memchr(b'\r', text).is_some() { Err(BadResponse::BareCarriageReturn) } else { Ok(text) }
}

/// Name and value, without the blanks around it.
fn split_field(line: &[u8]) -> Result<(&[u8], &[u8]), BadResponse> {
    let name_len = line.iter().position(|byte| !is_token_byte(*byte));
    if let Some(colon @ 1..) = name_len
        && let [b':', value @ ..] = &line[colon..]
        && is_value(value)
    {
        return Ok((&line[..colon], value.trim_ascii()));
    }
    Err(why_no_field(line))
}

#[cold]
fn why_no_field(line: &[u8]) -> BadResponse {
    match line {
        _ if memchr::memchr(b'\r', line).is_some() => BadResponse::BareCarriageReturn,
        [b' ' | b'\t', ..] => BadResponse::FoldedLine,
        _ if line
            .iter()
            .position(|byte| !is_token_byte(*byte))
            .is_some_and(|at| at > 0 && line[at] == b':') =>
        {
            BadResponse::FieldValue
        }
        [b'H', b'T', b'T', b'P', b'/', ..] => BadResponse::StatusLineRepeated,
        _ => BadResponse::FieldName,
    }
}

/// The fields that decide something.
#[derive(Default)]
struct FramingFields<'a> {
    content_length: Option<u64>,
    codings: Codings,
    nominated: NominatedFields<'a>,
    closes: bool,
    keeps_alive: bool,
    idle_s: Option<u64>,
}

/// What Transfer-Encoding says so far.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Codings {
    #[default]
    None,
    /// A field without a coding.
    Empty,
    Chunked,
    /// Chunked, with others in front or behind.
    Unknown,
    /// Something behind `chunked`, or twice.
    Invalid,
}

impl<'a> FramingFields<'a> {
    fn note(&mut self, name: &[u8], value: &'a [u8]) -> Result<(), BadResponse> {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        match name.len() {
            10 if is("Connection") => {
                let (closes, keeps_alive) = (&mut self.closes, &mut self.keeps_alive);
                self.nominated.note(value, |option| {
                    *closes |= option.eq_ignore_ascii_case(b"close");
                    *keeps_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                });
            }
            10 if is("Keep-Alive") => self.idle_s = self.idle_s.or_else(|| timeout_of(value)),
            14 if is("Content-Length") => self.length(value)?,
            17 if is("Transfer-Encoding") => self.codings = self.codings.with(value),
            _ => {}
        }
        Ok(())
    }

    /// Equal lengths, as lines or in a list, are one (RFC 9112 section 6.3).
    fn length(&mut self, value: &[u8]) -> Result<(), BadResponse> {
        for member in value.split(|byte| *byte == b',') {
            let length = parse_decimal(member.trim_ascii()).ok_or(BadResponse::LengthInvalid)?;
            if self.content_length.replace(length).is_some_and(|other| other != length) {
                return Err(BadResponse::LengthDiffers);
            }
        }
        Ok(())
    }

    /// RFC 9112 section 6.3. The framing fields are judged even where there is no body: the next reader may not know
    /// that.
    fn body(&self, version: Version, status: Status, asked: RequestKind) -> Result<BodyEnd, BadResponse> {
        let framed = match (self.codings, self.content_length) {
            (Codings::None, None) => BodyEnd::Close,
            (Codings::None, Some(length)) => BodyEnd::Length(length),
            (_, Some(_)) => return Err(BadResponse::LengthAndTransferEncoding),
            _ if version == Version::Http10 => return Err(BadResponse::TransferEncodingInHttp10),
            (Codings::Chunked, None) => BodyEnd::Chunked,
            (Codings::Unknown, None) => return Err(BadResponse::TransferEncodingUnknown),
            (Codings::Empty | Codings::Invalid, None) => return Err(BadResponse::TransferEncodingInvalid),
        };
        match (asked, status.code()) {
            (RequestKind::Upgrade | RequestKind::Tunnel, 101) => Ok(BodyEnd::Switch),
            (_, 101) => Err(BadResponse::SwitchUnasked),
            (RequestKind::Tunnel, 200..=299) => Err(BadResponse::SwitchIgnored),
            (RequestKind::Head, _) => Ok(BodyEnd::None),
            _ if status.forbids_content() => Ok(BodyEnd::None),
            _ => Ok(framed),
        }
    }

    /// RFC 9112 section 9.3. Where a body is announced that must not come, it might come all the same, and be taken for
    /// the next response.
    fn persists(&self, version: Version, status: Status, body: BodyEnd) -> bool {
        let announces_body = match status.code() {
            204 => self.codings != Codings::None || self.content_length.is_some_and(|length| length > 0),
            304 => self.codings != Codings::None,
            _ => false,
        };
        let may_persist = !self.closes && (version != Version::Http10 || self.keeps_alive);
        may_persist && !announces_body && !matches!(body, BodyEnd::Close | BodyEnd::Switch)
    }
}

impl Codings {
    fn with(self, value: &[u8]) -> Self {
        let mut codings = if self == Self::None { Self::Empty } else { self };
        for coding in list_members(value) {
            let is_chunked = coding.eq_ignore_ascii_case(b"chunked");
            codings = match (codings, is_chunked) {
                (Self::None | Self::Empty, true) => Self::Chunked,
                (Self::None | Self::Empty | Self::Unknown, _) => Self::Unknown,
                (Self::Chunked | Self::Invalid, _) => Self::Invalid,
            };
        }
        codings
    }
}

/// `timeout=5, max=100`: the former.
fn timeout_of(value: &[u8]) -> Option<u64> {
    list_members(value).find_map(|parameter| {
        let (name, value) = parameter.split_at_checked("timeout=".len())?;
        name.eq_ignore_ascii_case(b"timeout=").then(|| parse_decimal(value))?
    })
}

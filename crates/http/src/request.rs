//! The head of a request, judged and taken apart without a copy.

use crate::authority::Authority;
use crate::diagnose::diagnose;
use crate::fields::{field_lines, is_same_field};
use crate::known::KnownFields;
use crate::line::RequestLine;
use crate::names::Names;
use crate::target::Target;
use crate::{BodyFraming, Conditions, Method, Refusal, Version};
use httparse::Status::Complete;
use std::mem::MaybeUninit;

/// Bounds on the head of a request. A request beyond one gets 414 or 431.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// Longest target, in bytes; default 8192.
    pub target_bytes_max: usize,
    /// Longest head, its blank line included, in bytes; default 32768.
    pub head_bytes_max: usize,
    /// Most field lines; default 100, at most [`FIELDS_CAP`].
    pub fields_max: usize,
    /// Whether [`RequestHead::fields`] has those with an underscore in their names; default `false`.
    pub keeps_underscores: bool,
}

impl Default for HeadLimits {
    fn default() -> Self {
        Self { target_bytes_max: 8192, head_bytes_max: 32_768, fields_max: 100, keeps_underscores: false }
    }
}

impl HeadLimits {
    /// Checks whether an incomplete head may still grow, when [`HeadScanner::find_end`](crate::HeadScanner::find_end)
    /// has found no end in `input`.
    ///
    /// # Errors
    /// The refusal of a head that is too long already.
    pub fn check_incomplete(&self, input: &[u8]) -> Result<(), Refusal> {
        if input.len() < self.head_bytes_max {
            return Ok(());
        }
        Err(self.refuse_long(input))
    }

    /// Distinguishes a target that is too long from fields that are.
    #[cold]
    fn refuse_long(&self, head: &[u8]) -> Refusal {
        let line = head.trim_ascii_start().split(|byte| *byte == b'\n').next().unwrap_or_default();
        let target = line.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
        if target.len() > self.target_bytes_max { Refusal::TargetTooLong } else { Refusal::HeadTooLarge }
    }
}

/// The head of a request: everything that decides how it is answered. Borrows the bytes it was parsed from.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    /// The method.
    pub method: Method,
    /// The version.
    pub version: Version,
    /// The request line without its CR LF, for logs: visible ASCII, blanks, and bytes that [`as_uri`](crate::as_uri)
    /// encodes.
    pub line: &'a [u8],
    /// The target as sent. Bytes above 0x7f mean their percent-encoding: show or forward [`as_uri`](crate::as_uri) of
    /// it, and of `path` and `query`.
    pub target: &'a [u8],
    /// The path of the target, neither decoded nor normalised. Begins with `/`, or is `*` (OPTIONS only),
    /// or empty (CONNECT only).
    pub path: &'a [u8],
    /// The target after its first `?`.
    pub query: Option<&'a [u8]>,
    /// The requested host: that of an absolute target, else that of the Host field (RFC 9112 section 3.2.2). A valid
    /// name or address, in the client's spelling (compare it without regard to case), an IPv6 address in brackets.
    /// `None` if Host is empty or missing in HTTP/1.0.
    pub host: Option<&'a str>,
    /// The port after the host, if any.
    pub port: Option<u16>,
    /// Whether the client allows the connection to persist.
    pub keep_alive: bool,
    /// How the body is delimited.
    pub framing: BodyFraming,
    /// The client waits for `100 Continue` before it sends the body. Never set without a body, nor in
    /// HTTP/1.0, where the expectation means nothing (RFC 9110 section 10.1.1).
    pub expects_continue: bool,
    /// The Range field of a GET; with other methods it means nothing (RFC 9110 section 14.2).
    pub range: Option<&'a [u8]>,
    /// The conditions under which to answer.
    pub conditions: Conditions<'a>,
    /// The first Accept field line.
    pub accept: Option<&'a [u8]>,
    /// The first Accept-Encoding field line. Clients send one; a second is not read, at the price of an
    /// answer that is less compressed than it could be.
    pub accept_encoding: Option<&'a [u8]>,
    /// The first Referer field line, for logs: not to be trusted, may have bytes above 0x7f.
    pub referer: Option<&'a [u8]>,
    /// The first User-Agent field line, for logs: not to be trusted, may have bytes above 0x7f.
    pub user_agent: Option<&'a [u8]>,
    /// All field lines.
    pub(crate) section: &'a [u8],
    /// Which fields these may be.
    pub(crate) names: Names,
    /// Whether those count that have an underscore in their names.
    pub(crate) keeps_underscores: bool,
}

impl<'a> RequestHead<'a> {
    /// Parses a head: the bytes that [`HeadScanner::find_end`](crate::HeadScanner::find_end) delimited.
    ///
    /// # Errors
    /// Any [`Refusal`] up to [`Refusal::ExpectationUnknown`].
    pub fn parse(head: &'a [u8], limits: &HeadLimits) -> Result<Self, Refusal> {
        if head.len() > limits.head_bytes_max {
            return Err(limits.refuse_long(head));
        }
        // httparse accepts a bare LF as a line end; the next recipient may not.
        let fields_max = limits.fields_max.min(FIELDS_CAP);
        if has_bare_line_feed(head) {
            return Err(diagnose(head, fields_max));
        }
        let mut slots = [const { MaybeUninit::uninit() }; FIELDS_CAP];
        let mut request = httparse::Request::new(&mut []);
        let outcome = request.parse_with_uninit_headers(head, &mut slots[..fields_max]);
        if let (Ok(Complete(len)), Some(token), Some(target), Some(minor)) =
            (outcome, request.method, request.path, request.version)
            && len == head.len()
        {
            let line = RequestLine { method: token.as_bytes(), target: target.as_bytes(), minor };
            return Self::judge_http1(head, &line, request.headers, limits);
        }
        Self::parse_unusual(head, fields_max, limits)
    }

    /// Heads that httparse refuses: a minor version above 1 (RFC 9110 section 2.5), and a target that is not UTF-8.
    #[cold]
    fn parse_unusual(head: &'a [u8], fields_max: usize, limits: &HeadLimits) -> Result<Self, Refusal> {
        let start = head.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or_default();
        let end = memchr::memmem::find(&head[start..], b"\r\n").map(|len| start + len);
        let mut slots = [httparse::EMPTY_HEADER; FIELDS_CAP];
        if let Some(end) = end
            && head[..start].chunks(CRLF_LEN).all(|pair| pair == b"\r\n")
            && let Ok(line) = RequestLine::split(&head[start..end])
            && let Ok(Complete((len, fields))) =
                httparse::parse_headers(&head[end + CRLF_LEN..], &mut slots[..fields_max])
            && end + CRLF_LEN + len == head.len()
        {
            return Self::judge_http1(head, &line, fields, limits);
        }
        Err(diagnose(head, fields_max))
    }

    fn judge_http1(
        head: &'a [u8],
        line: &RequestLine<'a>,
        fields: &[httparse::Header<'a>],
        limits: &HeadLimits,
    ) -> Result<Self, Refusal> {
        let RequestLine { method, target, minor } = *line;
        let start = head.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or_default();
        let end = start + method.len() + target.len() + "  HTTP/1.1".len();
        let parts = HeadParts {
            version: if minor == 0 { Version::Http10 } else { Version::Http11 },
            line: &head[start..end],
            method,
            target,
            section: &head[end + CRLF_LEN..head.len() - CRLF_LEN],
            unframed: BodyFraming::None,
        };
        Self::judge(&parts, fields.iter().map(|field| (field.name.as_bytes(), field.value)), limits)
    }

    /// Judges parts that are well-formed each, together.
    pub(crate) fn judge(
        parts: &HeadParts<'a>,
        fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        limits: &HeadLimits,
    ) -> Result<Self, Refusal> {
        let HeadParts { version, line, method: token, target, section, unframed } = *parts;
        if target.len() > limits.target_bytes_max {
            return Err(Refusal::TargetTooLong);
        }
        let method = Method::of_token(token);
        let mut names = Names::default();
        let known = KnownFields::select(fields.inspect(|(name, _)| names.note(name)), section)?;
        let Target { path, query, authority } = Target::parse(version, method, target)?;
        let host = judge_host(version, known.host)?;
        let authority = authority.or(host);
        // RFC 9110 section 4.2.1: without a host the URI is invalid. A client of HTTP/1.0 need not name one.
        if authority.is_none() && version != Version::Http10 {
            return Err(Refusal::HostInvalid);
        }
        let (length, coding) = (known.content_length, known.transfer_encoding);
        let framing = BodyFraming::decide(version, length, coding, section, unframed)?;

        Ok(Self {
            method,
            version,
            line,
            target,
            path,
            query,
            host: authority.map(|authority| authority.host),
            port: authority.and_then(|authority| authority.port),
            keep_alive: !known.closes && (version != Version::Http10 || known.keeps_alive),
            framing,
            expects_continue: known.expects_continue && version != Version::Http10 && !framing.is_empty(),
            range: known.range.filter(|_| method == Method::Get),
            conditions: known.conditions,
            accept: known.accept,
            accept_encoding: known.accept_encoding,
            referer: known.referer,
            user_agent: known.user_agent,
            section,
            names,
            keeps_underscores: limits.keeps_underscores,
        })
    }

    /// False: it has no line [of this field](is_same_field).
    pub fn may_have(&self, name: impl AsRef<[u8]>) -> bool {
        self.names.may_have(name.as_ref())
    }

    /// The value of the first line [of this field](is_same_field). Parses the head again, unless it cannot be there.
    pub fn field(&self, name: &str) -> Option<&'a [u8]> {
        self.fields_of(name).next()
    }

    /// The values of all lines [of this field](is_same_field), in order.
    pub fn fields_of<'n, N: AsRef<[u8]> + ?Sized>(
        &self,
        name: &'n N,
    ) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n, N> {
        let name = name.as_ref();
        let section = if self.may_have(name) { self.section } else { b"" };
        let lines = Self { section, ..*self }.fields();
        lines.filter(move |(field, _)| is_same_field(field, name)).map(|(_, value)| value)
    }

    /// The value of the field with this name, if there is one such line and it is text.
    pub fn only_field(&self, name: &str) -> Option<&'a str> {
        let mut values = self.fields_of(name);
        let first = values.next()?;
        values.next().is_none().then(|| std::str::from_utf8(first).ok()).flatten()
    }

    /// Path and query as the client has asked for them, also where `path` and `query` were rewritten.
    pub fn asked(&self) -> (&'a [u8], Option<&'a [u8]>) {
        match Target::parse(self.version, self.method, self.target) {
            Ok(Target { path, query, .. }) => (path, query),
            Err(_) => (self.path, self.query),
        }
    }

    /// The head with another path and query; the target stays what the client has asked for.
    #[must_use]
    pub fn with_target<'b>(self, path: &'b [u8], query: Option<&'b [u8]>) -> RequestHead<'b>
    where
        'a: 'b,
    {
        RequestHead { path, query, ..self }
    }

    /// Whether the server has given it another target than the client.
    pub fn is_rewritten(&self) -> bool {
        self.asked() != (self.path, self.query)
    }

    /// All field lines in order, names as spelt, values without surrounding blanks. Parses the head again.
    ///
    /// Names with an underscore are not among them, unless [`HeadLimits::keeps_underscores`] says so: what makes variables
    /// of names would take `X_Real_IP` for `X-Real-IP`.
    pub fn fields(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + use<'a> {
        let keeps_underscores = self.keeps_underscores;
        field_lines(self.section).filter(move |(name, _)| keeps_underscores || !name.contains('_'))
    }
}

/// The parts of a head that was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadParts<'a> {
    pub(crate) version: Version,
    /// The request line without its CR LF. The section follows behind those, in one piece of memory.
    pub(crate) line: &'a [u8],
    pub(crate) method: &'a [u8],
    pub(crate) target: &'a [u8],
    /// All field lines.
    pub(crate) section: &'a [u8],
    /// The body if no field frames it.
    pub(crate) unframed: BodyFraming,
}

/// Looks at every byte instead of stopping at the first, which compiles to a few vector instructions.
fn has_bare_line_feed(head: &[u8]) -> bool {
    let pairs = head.iter().zip(head.iter().skip(1));
    let bare = pairs.fold(false, |bare, (before, byte)| bare | (*byte == b'\n' && *before != b'\r'));
    bare || head.starts_with(b"\n")
}

/// RFC 9112 section 3.2: required in HTTP/1.1; empty beside a target that names the authority.
fn judge_host(version: Version, host: Option<&[u8]>) -> Result<Option<Authority<'_>>, Refusal> {
    match host {
        Some(b"") => Ok(None),
        Some(host) => Authority::parse(host).map(Some).ok_or(Refusal::HostInvalid),
        None if version == Version::Http10 => Ok(None),
        None => Err(Refusal::HostMissing),
    }
}

/// Most field lines that can be parsed: they are collected in an array on the stack.
pub const FIELDS_CAP: usize = 256;

const CRLF_LEN: usize = 2;

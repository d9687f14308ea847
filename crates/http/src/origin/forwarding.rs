//! Writes the head of a request for an origin.
//!
//! Nothing of the client's head goes on but what was understood: the method, the routed target, and fields that do not
//! end at this hop. The server's own fields come behind those, so a client cannot have them taken away by naming them in
//! `Connection`.

use super::claims::{is_claim, is_told_anew};
use super::forwarded_fields::{ClientFacts, ForwardedClient, push_host, push_via, times_in_via};
use super::hop_by_hop::{NominatedFields, is_of_the_connection};
use super::target::PathRule;
use crate::decimal::push_decimal;
use crate::fields::{is_same_field, list_members};
use crate::{FieldRules, Method, PathRefusal, RequestHead, Status, VariableSource, Version};
use std::fmt;

/// How the requests of a route go on.
#[derive(Clone, Debug)]
pub struct Forwarding {
    /// Which Host the origin reads.
    pub host: HostRule,
    /// Host and port of the origin, as its URL has them.
    pub authority: String,
    /// What replaces the beginning of paths.
    pub path: PathRule,
    /// The name of this server in `Via`: a token that no other server has, or loops are seen where there are none.
    pub pseudonym: String,
    /// Rules for the fields, of the client and of the server alike. They never concern Host, nor what frames a message or
    /// is about the connection.
    pub rules: FieldRules,
}

/// Which Host an origin reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HostRule {
    /// The one that the client asked for; the origin's, if the client named none.
    #[default]
    Client,
    /// The origin's.
    Origin,
    /// This host, with an optional port.
    Fixed(String),
}

/// A request on its way to an origin.
#[derive(Clone, Copy, Debug)]
pub struct ForwardedRequest<'a> {
    /// The head that goes on: the client's, or the one with which the shared cache asks.
    pub head: &'a RequestHead<'a>,
    /// The head that the client has sent, for what a trusted proxy says in it.
    pub claims: &'a RequestHead<'a>,
    /// The client.
    pub client: ForwardedClient,
    /// How its body is framed on the new connection.
    pub body: ForwardedBody,
    /// The client waits for `100 Continue`, and the origin shall send it.
    pub awaits_continue: bool,
    /// Whether the connection to the origin may persist.
    pub keeps: bool,
    /// What it asks to switch to: see [`upgrade_of`]. For the extended CONNECT of HTTP/2, its `:protocol`.
    pub upgrade: Option<&'a [u8]>,
    /// `Sec-WebSocket-Key` in place of the client's: an extended CONNECT has none (RFC 8441 section 5). 16 random bytes in
    /// base64.
    pub websocket_key: Option<&'a str>,
    /// What the variables of the rules stand for.
    pub variables: &'a dyn VariableSource,
}

/// The body of a forwarded request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardedBody {
    /// There is none.
    None,
    /// Its length in bytes is known.
    Length(u64),
    /// The body comes in chunks.
    Chunked,
}

/// Why a request does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotForwarded {
    /// The request has come through this server [`PASSES_MAX`] times.
    Loop,
    /// CONNECT, which asks for a tunnel to anywhere, or TRACE, which would show the client the fields that the server adds.
    Method,
    /// Its path does not fit the route.
    Path(PathRefusal),
}

impl NotForwarded {
    /// The status that the client gets.
    pub const fn status(self) -> Status {
        match self {
            Self::Loop => Status::LOOP_DETECTED,
            Self::Method => Status::METHOD_NOT_ALLOWED,
            Self::Path(_) => Status::BAD_REQUEST,
        }
    }

    /// One word for logs and metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Loop => "loop",
            Self::Method => "method-not-forwarded",
            Self::Path(refusal) => refusal.label(),
        }
    }
}

impl fmt::Display for NotForwarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loop => write!(f, "the request has come through this server {PASSES_MAX} times"),
            Self::Method => f.write_str("the method is not passed on"),
            Self::Path(refusal) => refusal.fmt(f),
        }
    }
}

impl std::error::Error for NotForwarded {}

impl Forwarding {
    /// Appends the head of the request, its blank line included.
    ///
    /// # Errors
    /// The request must not go on. What was appended is of no use then.
    pub fn push_head(&self, out: &mut Vec<u8>, request: &ForwardedRequest<'_>) -> Result<(), NotForwarded> {
        let head = request.head;
        out.extend_from_slice(method_of(request)?);
        out.push(b' ');
        self.path.push_target(out, head.path, head.query).map_err(NotForwarded::Path)?;
        out.extend_from_slice(b" HTTP/1.1\r\nHost: ");
        self.push_host(out, head);
        out.extend_from_slice(b"\r\n");

        let fields_at = out.len();
        let wants_trailers = self.push_fields(out, request)?;
        for (name, value) in
            self.rules.fields_beside(|name| has_field(&out[fields_at..], name)).collect::<Vec<_>>()
        {
            let value = value.field(request.variables);
            if !value.is_empty() {
                push_pair(out, name, value);
            }
        }

        match request.body {
            // HTTP/2 says so by the end of the stream.
            ForwardedBody::None if head.method.anticipates_content() => {
                out.extend_from_slice(b"Content-Length: 0\r\n");
            }
            ForwardedBody::None => {}
            ForwardedBody::Length(length) => {
                out.extend_from_slice(b"Content-Length: ");
                push_decimal(out, length);
                out.extend_from_slice(b"\r\n");
            }
            ForwardedBody::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        }
        if request.awaits_continue {
            out.extend_from_slice(b"Expect: 100-continue\r\n");
        }
        push_connection(out, request, wants_trailers);
        out.extend_from_slice(b"\r\n");
        Ok(())
    }

    /// The target that the origin is asked for where the client asks for this path and query.
    ///
    /// # Errors
    /// The path does not fit the route.
    pub fn target(&self, path: &[u8], query: Option<&[u8]>) -> Result<Vec<u8>, PathRefusal> {
        let mut target = Vec::new();
        self.path.push_target(&mut target, path, query)?;
        Ok(target)
    }

    fn push_host(&self, out: &mut Vec<u8>, head: &RequestHead<'_>) {
        match &self.host {
            HostRule::Client if head.host.is_some() => push_host(out, head),
            HostRule::Client | HostRule::Origin => out.extend_from_slice(self.authority.as_bytes()),
            HostRule::Fixed(host) => out.extend_from_slice(host.as_bytes()),
        }
    }

    /// Appends the client's fields, and those that tell of it. Returns whether the client takes trailers.
    fn push_fields(&self, out: &mut Vec<u8>, request: &ForwardedRequest<'_>) -> Result<bool, NotForwarded> {
        let (head, rules) = (request.head, &self.rules);
        let mut nominated = NominatedFields::default();
        head.fields_of("Connection").for_each(|value| nominated.note(value, |_| {}));
        let is_trusted = request.client.is_trusted;
        let (mut passes, mut wants_trailers) = (0, false);
        for (name, value) in head.fields() {
            let is = |other: &str| is_same_field(name, other);
            match name.len() {
                2 if is("TE") => {
                    wants_trailers |=
                        list_members(value).any(|coding| coding.eq_ignore_ascii_case(b"trailers"));
                }
                3 if is("Via") => passes += times_in_via(value, &self.pseudonym),
                _ => {}
            }
            let is_key = is("Sec-WebSocket-Key");
            let ends_here = is_of_the_connection(name.as_bytes())
                || is_written_anew(name)
                || is_key && request.websocket_key.is_some()
                || nominated.has(name.as_bytes())
                || is_told_anew(name.as_bytes())
                || (is_claim(name.as_bytes()) && (!is_trusted || name.contains('_')))
                || rules.drops(name.as_bytes());
            if !ends_here {
                push_pair(out, name, value);
            }
        }
        if passes >= PASSES_MAX {
            return Err(NotForwarded::Loop);
        }
        if let Some(key) = request.websocket_key {
            push_pair(out, "Sec-WebSocket-Key", key);
        }
        let ours_at = out.len();
        push_via(out, head.version, &self.pseudonym);
        ClientFacts::of(request.claims, head, request.client).push(out);
        self.remove_dropped(out, ours_at);
        Ok(wants_trailers)
    }

    /// The rules hold for the server's fields, too.
    fn remove_dropped(&self, out: &mut Vec<u8>, from: usize) {
        if self.rules.dropped().next().is_some() {
            let mut ours = out.split_off(from);
            super::response_head::remove_lines(&mut ours, |name, _| !self.rules.drops(name));
            out.append(&mut ours);
        }
    }
}

/// Whether a rule may concern fields of this name: it neither frames a message, nor names its host, nor is about a
/// connection.
pub fn field_may_be_ruled(name: &str) -> bool {
    !is_of_the_connection(name.as_bytes()) && !is_written_anew(name)
}

/// The protocols that a request of HTTP/1.1 asks to switch to, if it may: it has no body, and does not ask for HTTP/2,
/// whose requests would then run through the tunnel without being routed.
pub fn upgrade_of<'a>(head: &RequestHead<'a>) -> Option<&'a [u8]> {
    if head.version != Version::Http11 || !head.framing.is_empty() || head.method == Method::Connect {
        return None;
    }
    let upgrade = head.field("Upgrade")?;
    let asks = |(name, value): (&str, &'a [u8])| {
        name.eq_ignore_ascii_case("Connection")
            && list_members(value).any(|option| option.eq_ignore_ascii_case(b"Upgrade"))
    };
    let is_http = |protocol: &[u8]| {
        let name = protocol.split(|byte| *byte == b'/').next().unwrap_or_default();
        [&b"h2c"[..], b"h2", b"HTTP", b"TLS"].iter().any(|other| name.eq_ignore_ascii_case(other))
    };
    let once = head.fields().filter(|(name, _)| name.eq_ignore_ascii_case("Upgrade")).count() == 1;
    let may = once && list_members(upgrade).next().is_some() && !list_members(upgrade).any(is_http);
    (may && head.fields().any(asks)).then_some(upgrade)
}

/// The method's token, in the client's spelling.
fn method_of<'a>(request: &ForwardedRequest<'a>) -> Result<&'a [u8], NotForwarded> {
    let head = request.head;
    match head.method {
        // A switch of protocols, as HTTP/1.1 asks for it.
        Method::Connect if head.version == Version::Http2 && request.upgrade.is_some() => Ok(b"GET"),
        Method::Connect | Method::Trace => Err(NotForwarded::Method),
        _ => Ok(head.line.split(|byte| *byte == b' ').next().unwrap_or_default()),
    }
}

/// Fields that are written anew, from what was understood.
fn is_written_anew(name: &str) -> bool {
    let is = |other: &str| is_same_field(name, other);
    match name.len() {
        4 => is("Host"),
        6 => is("Expect"),
        // The latter is for a switch to HTTP/2, which is not passed on.
        14 => is("Content-Length") || is("HTTP2-Settings"),
        _ => false,
    }
}

/// Appends `Connection`, and the fields that it names.
fn push_connection(out: &mut Vec<u8>, request: &ForwardedRequest<'_>, wants_trailers: bool) {
    let options = [
        (request.upgrade.is_some(), &b"Upgrade"[..]),
        (wants_trailers, b"TE"),
        (!request.keeps && request.upgrade.is_none(), b"close"),
    ];
    let mut separator: &[u8] = b"Connection: ";
    for (_, option) in options.iter().filter(|(is_set, _)| *is_set) {
        out.extend_from_slice(separator);
        out.extend_from_slice(option);
        separator = b", ";
    }
    if separator == b", " {
        out.extend_from_slice(b"\r\n");
    }
    if let Some(upgrade) = request.upgrade {
        out.extend_from_slice(b"Upgrade: ");
        out.extend_from_slice(upgrade);
        out.extend_from_slice(b"\r\n");
    }
    if wants_trailers {
        out.extend_from_slice(b"TE: trailers\r\n");
    }
}

fn push_pair(out: &mut Vec<u8>, name: &str, value: impl AsRef<[u8]>) {
    crate::reply::push_line(out, name.as_bytes(), value.as_ref());
}

fn has_field(lines: &[u8], name: &str) -> bool {
    crate::fields::field_parts(lines).any(|(own, _)| is_same_field(own, name))
}

/// How often a request may come through this server: a site may send it to another site of the same server, which is no
/// loop. One that is costs this many turns.
pub const PASSES_MAX: usize = 4;

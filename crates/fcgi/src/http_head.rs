//! From the head of an application to the head that the client gets (`docs/handover-protocol.md`, section 4).

use crate::cgi::{CgiHead, Edits};
use crate::offer::Client;
use crate::text::push_decimal;

/// How the client learns where the body ends (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// No body and no length.
    None,
    /// By its length in bytes. In an answer to `HEAD` the length of the body that is not sent.
    Length(u64),
    /// By chunks.
    Chunked,
    /// By the end of the connection.
    Close,
}

/// A head to be written, as an application or an origin server has composed it.
#[derive(Clone, Copy, Debug)]
pub struct HeadParts<'a, F> {
    /// The status, 200 to 999.
    pub status: u16,
    /// The reason phrase, possibly empty.
    pub reason: &'a [u8],
    /// The fields for the client, names and values: none that frames the body or is about a connection.
    pub fields: F,
}

impl Framing {
    /// `body_len`: the length of the body in bytes, if all of it is known when the head is written.
    pub const fn choose(head: &CgiHead, body_len: Option<u64>, client: Client) -> Self {
        Self::of(head.status(), head.content_length(), body_len, client)
    }

    /// The same for any head; `declared`: the length that it declares.
    pub const fn of(status: u16, declared: Option<u64>, body_len: Option<u64>, client: Client) -> Self {
        if let Some(framing) = Self::without_body(status) {
            return framing;
        }
        match (declared, body_len) {
            (Some(length), _) => Self::Length(length),
            // The application may have omitted the body, so its length is unknown (RFC 9110 section 8.6).
            _ if client.head => Self::None,
            (None, Some(length)) => Self::Length(length),
            (None, None) if client.minor == 0 => Self::Close,
            (None, None) => Self::Chunked,
        }
    }

    /// The framing for a status without a body, even if the application writes one. `None`: it may have one.
    pub const fn without_body(status: u16) -> Option<Self> {
        match status {
            204 | 304 => Some(Self::None),
            // Clients expect a body here, so its zero length must be sent (RFC 9110 section 15.3.6).
            205 => Some(Self::Length(0)),
            _ => None,
        }
    }

    /// Whether the connection can go on after an answer that is framed like this.
    pub const fn may_go_on(self, client: Client) -> bool {
        client.keep && !matches!(self, Self::Close)
    }
}

/// Appends the HTTP head of an answer, its blank line included: the status line, `offer_fields` (complete lines,
/// preceded by [`Edits`] of the application's fields), the application's fields, the framing, and `Connection`.
pub fn push_http_head(
    out: &mut Vec<u8>,
    head: &CgiHead,
    framing: Framing,
    client: Client,
    offer_fields: &[u8],
) {
    let (status, reason, fields) = (head.status(), head.reason(), head.forwarded());
    push_head_parts(out, HeadParts { status, reason, fields }, framing, client, offer_fields);
}

/// The same for a head that is in parts.
pub fn push_head_parts<'a, F: Iterator<Item = (&'a [u8], &'a [u8])> + Clone>(
    out: &mut Vec<u8>,
    head: HeadParts<'a, F>,
    framing: Framing,
    client: Client,
    offer_fields: &[u8],
) {
    out.extend_from_slice(b"HTTP/1.1 ");
    push_decimal(out, u64::from(head.status));
    // The blank stays where the phrase is missing (RFC 9112 section 4).
    out.push(b' ');
    out.extend_from_slice(head.reason);
    out.extend_from_slice(b"\r\n");
    let (edits, fields) = Edits::split(offer_fields);
    out.extend_from_slice(fields);
    let drops_any = edits.drops_any();
    for (name, value) in head.fields.clone().filter(|(name, _)| !drops_any || !edits.drop(name)) {
        out.extend_from_slice(name);
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }
    edits.push_defaults(head.fields, out);
    match framing {
        Framing::None | Framing::Close => {}
        Framing::Length(length) => {
            out.extend_from_slice(b"Content-Length: ");
            push_decimal(out, length);
            out.extend_from_slice(b"\r\n");
        }
        Framing::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
    }
    if !framing.may_go_on(client) {
        out.extend_from_slice(b"Connection: close\r\n");
    } else if client.minor == 0 {
        out.extend_from_slice(b"Connection: keep-alive\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends the head of a chunk of `len` bytes, which is not 0; a CR LF follows the bytes (RFC 9112 section 7.1).
pub fn push_chunk_head(out: &mut Vec<u8>, len: u64) {
    let digits = (u64::BITS - len.leading_zeros()).div_ceil(4).max(1);
    for digit in (0..digits).rev() {
        out.push(b"0123456789abcdef"[(len >> (4 * digit)) as usize & 0xf]);
    }
    out.extend_from_slice(b"\r\n");
}

/// The end of a chunked body.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

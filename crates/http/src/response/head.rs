//! The head of a response that an application or an origin has composed, as the client gets it.

use super::{Client, Edits, Framing};
use crate::Status;
use crate::decimal::push_decimal;
use crate::origin::ResponseHead;

/// A head to be sent: its status, and its fields as lines.
#[derive(Clone, Copy, Debug)]
pub struct HeadLines<'a> {
    /// Its status.
    pub status: Status,
    /// The reason phrase of HTTP/1, possibly empty.
    pub reason: &'a [u8],
    /// Complete lines for the client, each with CR LF: none that frames the body or is about a connection.
    pub text: &'a [u8],
}

impl<'a> HeadLines<'a> {
    /// The status and the lines of this head.
    pub fn of(head: &'a ResponseHead) -> Self {
        Self { status: head.status(), reason: head.reason(), text: head.text() }
    }
}

/// Appends the HTTP head of a response, its blank line included: the status line, `own_fields` (complete lines, preceded by
/// [`Edits`] of the other fields), the other fields, the framing, and `Connection`.
pub fn push_head(
    out: &mut Vec<u8>,
    head: HeadLines<'_>,
    framing: Framing,
    client: Client,
    own_fields: &[u8],
) {
    let edits = push_beginning(out, head.status, head.reason, own_fields);
    edits.push_lines(head.text, out);
    push_end(out, framing, client);
}

/// Appends a head like [`push_head`], of names and values.
pub fn push_head_of_fields<'a>(
    out: &mut Vec<u8>,
    (status, reason): (Status, &[u8]),
    fields: impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone,
    framing: Framing,
    client: Client,
    own_fields: &[u8],
) {
    push_beginning(out, status, reason, own_fields).push_fields(fields, out);
    push_end(out, framing, client);
}

fn push_beginning<'a>(out: &mut Vec<u8>, status: Status, reason: &[u8], own_fields: &'a [u8]) -> Edits<'a> {
    out.extend_from_slice(b"HTTP/1.1 ");
    push_decimal(out, u64::from(status.code()));
    // The blank stays where the phrase is missing (RFC 9112 section 4).
    out.push(b' ');
    out.extend_from_slice(reason);
    out.extend_from_slice(b"\r\n");
    let (edits, fields) = Edits::split(own_fields);
    out.extend_from_slice(fields);
    edits
}

fn push_end(out: &mut Vec<u8>, framing: Framing, client: Client) {
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

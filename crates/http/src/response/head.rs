//! The head of a response that an application or an origin has composed, as the client gets it.

use super::{Client, Edits, Framing};
use crate::decimal::push_decimal;

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

/// Appends the HTTP head of a response, its blank line included: the status line, `own_fields` (complete lines, preceded by
/// [`Edits`] of the other fields), the other fields, the framing, and `Connection`.
pub fn push_head_parts<'a, F: Iterator<Item = (&'a [u8], &'a [u8])> + Clone>(
    out: &mut Vec<u8>,
    head: HeadParts<'a, F>,
    framing: Framing,
    client: Client,
    own_fields: &[u8],
) {
    out.extend_from_slice(b"HTTP/1.1 ");
    push_decimal(out, u64::from(head.status));
    // The blank stays where the phrase is missing (RFC 9112 section 4).
    out.push(b' ');
    out.extend_from_slice(head.reason);
    out.extend_from_slice(b"\r\n");
    let (edits, fields) = Edits::split(own_fields);
    out.extend_from_slice(fields);
    let moves_any = edits.moves_any();
    for (name, value) in head.fields.clone().filter(|(name, _)| !moves_any || edits.leaves(name)) {
        out.extend_from_slice(name);
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }
    if moves_any {
        edits.push_joined(head.fields.clone(), out);
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

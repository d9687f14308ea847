//! Heads that others have written, of applications and of origins, as lines for the client.

use baton_http::Status;
use baton_http::origin::ResponseHead;
use baton_http::response::{Client, Framing, HeadParts, push_head_parts};

/// How the client learns where the body ends. `body_len`: its length in bytes, if all of it is known.
pub(super) fn framing(head: &ResponseHead, body_len: Option<u64>, client: Client) -> Framing {
    Framing::of(head.status().code(), head.content_length(), body_len, client)
}

/// Appends the head, its blank line included, with `fields` of the server.
pub(super) fn push(out: &mut Vec<u8>, head: &ResponseHead, framing: Framing, client: Client, fields: &[u8]) {
    let (status, reason) = (head.status().code(), head.reason());
    push_head_parts(out, HeadParts { status, reason, fields: head.fields() }, framing, client, fields);
}

/// Appends a head in front of the head, its blank line included.
pub(super) fn push_interim(out: &mut Vec<u8>, head: &ResponseHead) {
    push_status_line(out, head.status(), head.reason());
    push_fields(out, head.fields());
    out.extend_from_slice(b"\r\n");
}

/// Appends the head of a response that switches protocols, with `fields` of the server.
pub(super) fn push_switch(out: &mut Vec<u8>, head: &ResponseHead, fields: &[u8]) {
    let client = Client { minor: 1, keep: true, head: false };
    push(out, head, Framing::None, client, fields);
    // In front of the blank line.
    out.truncate(out.len() - 2);
    out.extend_from_slice(b"Connection: Upgrade\r\n\r\n");
}

/// Appends the head with which HTTP/2 accepts an extended CONNECT (RFC 8441 section 5): what proves the switch of HTTP/1
/// means nothing there.
pub(super) fn push_accepted(out: &mut Vec<u8>, head: &ResponseHead, fields: &[u8]) {
    let is_of_http1 = |name: &[u8]| {
        ["Upgrade", "Sec-WebSocket-Accept"].iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
    };
    let client = Client { minor: 1, keep: true, head: false };
    let kept = head.fields().filter(|(name, _)| !is_of_http1(name));
    let parts = HeadParts { status: Status::OK.code(), reason: b"OK", fields: kept };
    push_head_parts(out, parts, Framing::None, client, fields);
}

/// Appends fields as lines.
pub(super) fn push_fields<'a>(out: &mut Vec<u8>, fields: impl Iterator<Item = (&'a [u8], &'a [u8])>) {
    for (name, value) in fields {
        for part in [name, b": ", value, b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
}

fn push_status_line(out: &mut Vec<u8>, status: Status, reason: &[u8]) {
    let code = status.code().to_string();
    for part in [b"HTTP/1.1 ", code.as_bytes(), b" ", reason, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

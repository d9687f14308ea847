//! Heads as lines for the client.

use baton_buf::{Aggregate, Piece};
use baton_http::origin::ResponseHead;
use baton_http::response::{Client, Framing, HeadParts, push_head_parts};
use baton_http::{Status, field_parts};

/// A head to be sent: its status, and its fields as lines.
#[derive(Clone, Copy, Debug)]
pub struct HeadLines<'a> {
    /// Its status.
    pub status: Status,
    /// The reason phrase of HTTP/1.
    pub reason: &'a [u8],
    /// Complete lines.
    pub text: &'a [u8],
}

impl<'a> HeadLines<'a> {
    /// The status and the lines of this head.
    pub fn of(head: &'a ResponseHead) -> Self {
        Self { status: head.status(), reason: head.reason(), text: head.text() }
    }
}

/// What there is of a body when its head is sent.
#[derive(Debug)]
pub enum Beginning {
    /// One piece, which needs no list: so a range of a cached file costs no allocation.
    One(Piece),
    /// Any number of pieces.
    Several(Aggregate),
}

impl Beginning {
    /// Its length in bytes.
    pub fn length(&self) -> u64 {
        match self {
            Self::One(piece) => piece.len(),
            Self::Several(pieces) => pieces.len(),
        }
    }

    /// All of it, if it is in the server's memory, in one piece and short.
    pub fn short(&self, bytes_max: usize) -> Option<&[u8]> {
        let front = match self {
            Self::One(piece) => piece,
            Self::Several(pieces) => pieces.front()?,
        };
        match front {
            Piece::Memory(bytes) if bytes.len() <= bytes_max && bytes.len() as u64 == self.length() => {
                Some(bytes)
            }
            _ => None,
        }
    }
}

impl Default for Beginning {
    fn default() -> Self {
        Self::Several(Aggregate::new())
    }
}

impl From<Beginning> for Aggregate {
    fn from(beginning: Beginning) -> Self {
        match beginning {
            Beginning::Several(pieces) => pieces,
            Beginning::One(piece) => {
                let mut pieces = Self::new();
                pieces.push(piece);
                pieces
            }
        }
    }
}

/// Appends the head, its blank line included, with `fields` of the server.
pub fn push(out: &mut Vec<u8>, head: HeadLines<'_>, framing: Framing, client: Client, fields: &[u8]) {
    let parts = HeadParts { status: head.status.code(), reason: head.reason, fields: field_parts(head.text) };
    push_head_parts(out, parts, framing, client, fields);
}

/// Appends a head in front of the head, its blank line included.
pub fn push_interim(out: &mut Vec<u8>, head: &ResponseHead) {
    push_status_line(out, head.status(), head.reason());
    push_fields(out, head.fields());
    out.extend_from_slice(b"\r\n");
}

/// Appends the head of a response that switches protocols, with `fields` of the server.
pub fn push_switch(out: &mut Vec<u8>, head: &ResponseHead, fields: &[u8]) {
    let client = Client { minor: 1, keep: true, head: false };
    push(out, HeadLines::of(head), Framing::None, client, fields);
    // In front of the blank line.
    out.truncate(out.len() - 2);
    out.extend_from_slice(b"Connection: Upgrade\r\n\r\n");
}

/// Appends the head with which HTTP/2 accepts an extended CONNECT (RFC 8441 section 5): what proves the switch of HTTP/1
/// means nothing there.
pub fn push_accepted(out: &mut Vec<u8>, head: &ResponseHead, fields: &[u8]) {
    let is_of_http1 = |name: &[u8]| {
        ["Upgrade", "Sec-WebSocket-Accept"].iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
    };
    let client = Client { minor: 1, keep: true, head: false };
    let kept = head.fields().filter(|(name, _)| !is_of_http1(name));
    let parts = HeadParts { status: Status::OK.code(), reason: b"OK", fields: kept };
    push_head_parts(out, parts, Framing::None, client, fields);
}

/// Appends fields as lines.
pub fn push_fields<'a>(out: &mut Vec<u8>, fields: impl Iterator<Item = (&'a [u8], &'a [u8])>) {
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

//! Heads as lines for the client.

use baton_buf::{Aggregate, Piece};
use baton_http::origin::ResponseHead;
use baton_http::response::{Client, Framing, HeadLines, push_head};
use baton_http::{Status, push_line};

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

/// Appends a head in front of the head, its blank line included.
pub fn push_interim(out: &mut Vec<u8>, head: &ResponseHead) {
    push_status_line(out, head.status(), head.reason());
    push_fields(out, head.fields());
    out.extend_from_slice(b"\r\n");
}

/// Appends the head of a response that switches protocols, with `fields` of the server.
pub fn push_switch(out: &mut Vec<u8>, head: &ResponseHead, fields: &[u8]) {
    let client = Client { minor: 1, keep: true, head: false };
    push_head(out, HeadLines::of(head), Framing::None, client, fields);
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
    let mut accepted = head.clone();
    accepted.set_status(Status::OK);
    accepted.retain(|name, _| !is_of_http1(name));
    let client = Client { minor: 1, keep: true, head: false };
    push_head(out, HeadLines::of(&accepted), Framing::None, client, fields);
}

/// Appends fields as lines.
pub fn push_fields<'a>(out: &mut Vec<u8>, fields: impl Iterator<Item = (&'a [u8], &'a [u8])>) {
    fields.for_each(|(name, value)| push_line(out, name, value));
}

fn push_status_line(out: &mut Vec<u8>, status: Status, reason: &[u8]) {
    let code = status.code().to_string();
    for part in [b"HTTP/1.1 ", code.as_bytes(), b" ", reason, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

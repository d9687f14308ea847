//! A client made by hand: writes frames, well formed or not, and reads those of a connection.

use std::collections::VecDeque;

use baton_buf::{Aggregate, Piece, Slice};
use baton_http::HeadLimits;
use baton_http::h2::{
    Bound, Connection, ConnectionError, ErrorCode, Event, Framed, HeadText, PREFACE, Packer, Priority,
    Settings, StreamId, Violation,
};

/// Types and flags of frames, as in RFC 9113 section 6.
pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PUSH_PROMISE: u8 = 5;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;
pub(crate) const PRIORITY_UPDATE: u8 = 16;
pub(crate) const ACK: u8 = 1;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
pub(crate) const PADDED: u8 = 8;
pub(crate) const WITH_PRIORITY: u8 = 0x20;

/// A frame on the wire.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// A header block of literals without indexing.
pub(crate) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        assert!(name.len() < 127 && value.len() < 127, "one octet says the length");
        block.push(0);
        block.push(name.len() as u8);
        block.extend_from_slice(name.as_bytes());
        block.push(value.len() as u8);
        block.extend_from_slice(value.as_bytes());
    }
    block
}

/// The header block of a request, with more fields.
pub(crate) fn request_block(method: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let pseudo = [(":method", method), (":scheme", "http"), (":authority", "h"), (":path", path)];
    block(&[&pseudo[..], more].concat())
}

/// A GET without a body.
pub(crate) fn get(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_STREAM | END_HEADERS, stream, &request_block("GET", "/", &[]))
}

/// A GET of a priority.
pub(crate) fn get_with_priority(stream: u32, priority: &str) -> Vec<u8> {
    frame(HEADERS, END_STREAM | END_HEADERS, stream, &request_block("GET", "/", &[("priority", priority)]))
}

/// A POST whose body follows.
pub(crate) fn post(stream: u32, more: &[(&str, &str)]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, &request_block("POST", "/", more))
}

/// WINDOW_UPDATE.
pub(crate) fn window_update(stream: u32, increment: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &increment.to_be_bytes())
}

/// RST_STREAM with CANCEL.
pub(crate) fn cancel(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &8u32.to_be_bytes())
}

/// SETTINGS.
pub(crate) fn settings(pairs: &[(u16, u32)]) -> Vec<u8> {
    let payload: Vec<u8> =
        pairs.iter().flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat()).collect();
    frame(SETTINGS, 0, 0, &payload)
}

/// An event with bytes of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Request { stream: u32, line: String, ends: bool, priority: Priority },
    Refused { stream: u32, label: &'static str, ends: bool },
    Data { stream: u32, data: Vec<u8>, ends: bool },
    End { stream: u32 },
    Reset { stream: u32, code: ErrorCode },
    Broken { stream: u32, violation: Violation },
    Malformed { stream: u32, label: &'static str },
    GoAway { code: ErrorCode },
}

impl From<Event<'_>> for Seen {
    fn from(event: Event<'_>) -> Self {
        match event {
            Event::Request { stream, head, ends, priority, .. } => {
                let line = [head.method.as_str().as_bytes(), b" ", head.target].concat();
                Self::Request {
                    stream: stream.number(),
                    line: String::from_utf8(line).unwrap(),
                    ends,
                    priority,
                }
            }
            Event::Refused { stream, refusal, ends } => {
                Self::Refused { stream: stream.number(), label: refusal.label(), ends }
            }
            Event::Data { stream, data, ends } => {
                Self::Data { stream: stream.number(), data: data.to_vec(), ends }
            }
            Event::End { stream } => Self::End { stream: stream.number() },
            Event::Reset { stream, code } => Self::Reset { stream: stream.number(), code },
            Event::Broken { stream, violation } => Self::Broken { stream: stream.number(), violation },
            Event::Malformed { stream, malformed } => {
                Self::Malformed { stream: stream.number(), label: malformed.label() }
            }
            Event::GoAway { code } => Self::GoAway { code },
        }
    }
}

/// A frame that the connection sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl Sent {
    /// The number at the end of the payload, of 32 bits.
    pub(crate) fn number(&self) -> u32 {
        u32::from_be_bytes(*self.payload.last_chunk().expect("four bytes"))
    }

    pub(crate) fn ends(&self) -> bool {
        matches!(self.kind, DATA | HEADERS) && self.flags & END_STREAM != 0
    }
}

/// A connection and what its owner needs to drive it.
pub(crate) struct Pair {
    pub(crate) server: Connection,
    pub(crate) packer: Packer,
    pub(crate) ledger: Vec<Framed>,
    pub(crate) now_ms: u64,
    ids: VecDeque<StreamId>,
    unread: Vec<u8>,
    text: HeadText,
}

impl Pair {
    /// A connection that the client has not begun.
    pub(crate) fn silent(settings: &Settings) -> Self {
        Self {
            server: Connection::new(settings, 0),
            packer: Packer::new(),
            ledger: Vec::new(),
            now_ms: 0,
            ids: VecDeque::new(),
            unread: Vec::new(),
            text: HeadText::default(),
        }
    }

    /// A connection after the exchange of settings.
    pub(crate) fn open() -> Self {
        Self::open_with(&[])
    }

    /// The same, with settings of the client.
    pub(crate) fn open_with(pairs: &[(u16, u32)]) -> Self {
        let mut pair = Self::silent(&Settings::default());
        let hello = [PREFACE, &settings(pairs), &frame(SETTINGS, ACK, 0, &[])].concat();
        assert_eq!(pair.receive(&hello), Ok(vec![]));
        let kinds: Vec<_> = pair.transmit().iter().map(|sent| (sent.kind, sent.flags)).collect();
        assert_eq!(kinds, [(SETTINGS, 0), (WINDOW_UPDATE, 0), (SETTINGS, ACK)]);
        pair
    }

    /// Gives the connection input, and returns its events.
    pub(crate) fn receive(&mut self, input: &[u8]) -> Result<Vec<Seen>, ConnectionError> {
        self.unread.extend_from_slice(input);
        let mut events = Vec::new();
        let mut read = 0;
        loop {
            let limits = HeadLimits::default();
            let text = &mut self.text;
            let (count, event) = self.server.receive(&self.unread[read..], text, &limits, self.now_ms)?;
            read += count;
            if let Some(event) = event {
                if let Event::Request { stream, .. } | Event::Refused { stream, .. } = &event {
                    self.ids.push_back(*stream);
                }
                events.push(event.into());
            } else if count == 0 {
                self.unread.drain(..read);
                return Ok(events);
            }
        }
    }

    /// Gives the connection input that ends it, and returns the word for why.
    pub(crate) fn fail(&mut self, input: &[u8]) -> &'static str {
        let error = self.receive(input).expect_err("the connection ends");
        assert!(self.server.has_failed());
        let last = self.transmit().pop().expect("GOAWAY");
        assert_eq!(
            (last.kind, last.payload[4..8].to_vec()),
            (GOAWAY, (error.code as u32).to_be_bytes().to_vec())
        );
        assert_eq!(last.payload[8..], *error.label().as_bytes());
        assert!(!self.server.wants_to_send());
        error.label()
    }

    /// The same for a bound.
    pub(crate) fn exceed(&mut self, input: &[u8]) -> Bound {
        let label = self.fail(input);
        *Bound::ALL.iter().find(|bound| bound.label() == label).expect("a bound")
    }

    /// The stream of this number, of which a request has come.
    pub(crate) fn stream(&self, number: u32) -> StreamId {
        *self.ids.iter().find(|id| id.number() == number).expect("a request")
    }

    /// Begins streams, and returns their numbers as the connection knows them.
    pub(crate) fn begin(&mut self, requests: &[Vec<u8>]) -> Vec<StreamId> {
        let count = self.ids.len();
        self.receive(&requests.concat()).expect("requests");
        self.ids.iter().skip(count).copied().collect()
    }

    /// A response with a body in memory.
    pub(crate) fn answer(&mut self, stream: StreamId, body: &[u8]) {
        self.server.respond(stream, Slice::from(block(&[(":status", "200")])), false);
        self.push(stream, body);
        self.server.end(stream);
        self.server.finish(stream);
    }

    pub(crate) fn push(&mut self, stream: StreamId, body: &[u8]) {
        let mut aggregate = Aggregate::new();
        aggregate.push(Slice::from(body.to_vec()));
        self.server.push(stream, aggregate);
    }

    /// All frames that the connection sends now.
    pub(crate) fn transmit(&mut self) -> Vec<Sent> {
        let mut sent = Vec::new();
        while self.server.wants_to_send() {
            sent.append(&mut self.transmit_once(u64::MAX));
        }
        sent
    }

    /// The frames of one batch.
    pub(crate) fn transmit_once(&mut self, room: u64) -> Vec<Sent> {
        let mut out = Aggregate::new();
        let from = self.ledger.len();
        let ledger = &mut |framed| self.ledger.push(framed);
        self.server.poll_transmit(&mut out, room, &mut self.packer, ledger, &mut |_, _| true);
        let accounted: u64 = self.ledger[from..].iter().map(Framed::total_bytes).sum();
        assert_eq!(accounted, out.len(), "the ledger adds up");
        frames_of(&flatten(&out))
    }
}

/// The bytes of an aggregate without files.
pub(crate) fn flatten(aggregate: &Aggregate) -> Vec<u8> {
    aggregate
        .pieces()
        .flat_map(|piece| match piece {
            Piece::Memory(slice) => slice.to_vec(),
            _ => panic!("not in memory"),
        })
        .collect()
}

/// Whole frames.
pub(crate) fn frames_of(mut bytes: &[u8]) -> Vec<Sent> {
    let mut frames = Vec::new();
    while let Some(([a, b, c, kind, flags, stream @ ..], rest)) = bytes.split_first_chunk::<9>() {
        let len = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        let (payload, rest) = rest.split_at(len);
        let stream = u32::from_be_bytes(*stream);
        frames.push(Sent { kind: *kind, flags: *flags, stream, payload: payload.to_vec() });
        bytes = rest;
    }
    assert!(bytes.is_empty(), "half a frame");
    frames
}

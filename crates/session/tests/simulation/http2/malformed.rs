//! Requests whose heads break the rules of HTTP/2 (RFC 9113 section 8): the server resets their streams, and the connection
//! goes on.

use super::Http2Client;
use super::frame::Frame;
use super::state::Malformed;
use crate::choices::Choices;

impl Http2Client {
    /// Opens a stream with such a head.
    pub(super) fn open_malformed(&mut self, choices: &mut Choices) {
        let id = self.next_id;
        self.next_id += 2;
        let fields: Vec<(String, String)> =
            choices.one(&HEADS).iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let block = self.encoder.encode(&fields, choices);
        self.malformed.insert(id, Malformed::default());
        self.push_block(id, &block, true, choices);
    }

    /// A frame on such a stream: only a reset may come, and only once.
    pub(super) fn handle_malformed_reset(&mut self, frame: &Frame<'_>) {
        let stream = self.malformed.get_mut(&frame.stream).expect("a stream with a malformed head");
        assert!(stream.is_read && !stream.is_reset, "{frame:?}: {stream:?}");
        assert_eq!(frame.number(), PROTOCOL_ERROR, "for a malformed request");
        stream.is_reset = true;
    }

    /// Whether every such stream that was taken has been reset.
    pub(super) fn are_malformed_reset(&self) -> bool {
        let is_pending =
            |(id, stream): (&u32, &Malformed)| stream.is_read && !stream.is_reset && !self.is_ignored(*id);
        !self.malformed.iter().any(is_pending)
    }

    /// How many lines the log may have for them, at least and at most.
    pub(super) fn malformed_lines(&self) -> std::ops::RangeInclusive<usize> {
        let read = self.malformed.iter().filter(|(id, stream)| stream.is_read && !self.is_ignored(**id));
        let reset = self.malformed.values().filter(|stream| stream.is_reset);
        reset.count()..=read.count()
    }
}

/// Lists of fields, each wrong in its own way.
const HEADS: [&[(&str, &str)]; 9] = [
    &[(":method", "GET"), (":scheme", "http"), (":path", "/"), ("Upper", "case")],
    &[(":method", "GET"), (":scheme", "http")],
    &[(":method", "GET"), (":scheme", "http"), (":path", "")],
    &[(":method", "GET"), (":scheme", "http"), (":path", "/"), ("connection", "close")],
    &[(":method", "GET"), (":scheme", "http"), (":path", "/"), ("te", "gzip")],
    &[(":method", "GET"), (":scheme", "http"), ("host", "simulated"), (":path", "/")],
    &[(":method", "GET"), (":method", "GET"), (":scheme", "http"), (":path", "/")],
    &[(":method", "GET"), (":scheme", "http"), (":authority", "a"), (":path", "/"), ("host", "b")],
    &[(":method", "POST"), (":scheme", "http"), (":authority", "a"), (":path", "/"), ("content-length", "5")],
];

const PROTOCOL_ERROR: u32 = 0x1;

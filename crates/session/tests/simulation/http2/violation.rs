//! Clients that break the protocol, or go over a bound: what they send, and how the server is to end the connection.

use super::Http2Client;
use super::frame::{
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE,
    PADDED, PAYLOAD_BYTES_MAX, PING, PRIORITY, PRIORITY_UPDATE, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame,
    settings,
};
use super::hpack::push_integer;
use super::outbox::Mark;
use super::state::Violation;
use super::stream::Stream;
use crate::choices::Choices;

impl Http2Client {
    /// Does something wrong.
    pub(super) fn violate(&mut self, choices: &mut Choices) {
        let begins_at = self.outbox.push(&[], None);
        let stream = self.next_id;
        let (is_excusable, (code, word, bytes)) = match choices.number(0..10) {
            0 => (false, self.flood(choices)),
            1..=3 => (false, self.broken_block(choices)),
            4 | 5 => (true, self.wrong_stream(choices)),
            _ => (false, self.simple(choices)),
        };
        let ends_at = self.outbox.push(&bytes, None);
        let stream = if word == "block-compression" { stream } else { 0 };
        self.violation = Some(Violation { code, word, begins_at, ends_at, stream, is_excusable });
    }

    /// A frame on a stream on which there can be none. What depends on numbers that were not used is no violation behind
    /// the server's GOAWAY.
    fn wrong_stream(&self, choices: &mut Choices) -> Wrong {
        let idle = self.next_id + 100;
        let is_closed = |(_, stream): &(&u32, &Stream)| {
            stream.is_complete && stream.is_head_only && stream.cancelled_at.is_none()
        };
        match choices.number(0..6) {
            0 => (PROTOCOL, "idle-stream", frame(DATA, 0, idle, b"x")),
            1 => (PROTOCOL, "idle-stream", frame(RST_STREAM, 0, idle, &[0; 4])),
            2 => (PROTOCOL, "idle-stream", frame(WINDOW_UPDATE, 0, idle, &[0, 0, 0, 1])),
            3 => match self.streams.iter().find(is_closed) {
                Some((id, _)) => (STREAM_CLOSED, "closed-stream", frame(DATA, 0, *id, b"x")),
                None => (PROTOCOL, "push", frame(PUSH_PROMISE, END_HEADERS, idle, &[0; 4])),
            },
            _ => (
                PROTOCOL,
                "stream-number",
                frame(HEADERS, END_HEADERS | END_STREAM, idle + 1, &[0x82, 0x84, 0x86]),
            ),
        }
    }

    /// A header block that lacks its end, or that refers to nothing.
    fn broken_block(&self, choices: &mut Choices) -> Wrong {
        let id = self.next_id;
        let whole = |block: &[u8]| frame(HEADERS, END_HEADERS | END_STREAM, id, block);
        match choices.number(0..8) {
            0 => {
                let frames = [frame(HEADERS, 0, id, &[]), frame(PING, 0, 0, &[0; 8])];
                (PROTOCOL, "block-interrupted", frames.concat())
            }
            1 => (PROTOCOL, "padding", frame(HEADERS, END_HEADERS | PADDED, id, &[200, 0x82])),
            2 => {
                let mut frames = frame(HEADERS, 0, id, &[]);
                (0..9).for_each(|_| frames.extend(frame(CONTINUATION, 0, id, &[])));
                (ENHANCE_YOUR_CALM, "continuations", frames)
            }
            3 => (COMPRESSION, "block-compression", whole(&[0x40, 0x05, b'a'])),
            _ => {
                let mut block = Vec::new();
                push_integer(&mut block, 0x80, 7, self.encoder.index_beyond());
                (COMPRESSION, "block-compression", whole(&block))
            }
        }
    }

    /// More frames than an honest client has a reason for.
    fn flood(&mut self, choices: &mut Choices) -> Wrong {
        let (word, one): (_, Vec<u8>) = match choices.number(0..4) {
            0 => {
                (0..FLOOD_FRAMES).for_each(|_| self.push_ping(choices));
                return (ENHANCE_YOUR_CALM, "pings", Vec::new());
            }
            1 => ("priority-frames", frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 15])),
            2 => ("idle-frames", frame(0xfa, 0, 0, b"")),
            _ => {
                for _ in 0..5 * FLOOD_FRAMES {
                    self.outbox.push(&frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]), Some(Mark::Window(0, 1)));
                }
                return (ENHANCE_YOUR_CALM, "window-updates", Vec::new());
            }
        };
        (ENHANCE_YOUR_CALM, word, one.repeat(FLOOD_FRAMES))
    }

    /// Frames that are wrong at any time.
    fn simple(&mut self, choices: &mut Choices) -> Wrong {
        let size = |bytes: Vec<u8>| (FRAME_SIZE, "frame-length", bytes);
        let wrong_stream = |bytes: Vec<u8>| (PROTOCOL, "frame-stream", bytes);
        match choices.number(0..20) {
            0 => wrong_stream(frame(DATA, 0, 0, b"x")),
            1 => wrong_stream(frame(HEADERS, END_HEADERS, 0, &[0x82])),
            2 => wrong_stream(frame(SETTINGS, 0, 1, &[])),
            3 => wrong_stream(frame(PING, 0, 3, &[0; 8])),
            4 => wrong_stream(frame(PRIORITY_UPDATE, 0, 0, &[0; 4])),
            5 => size(frame(PING, 0, 0, &[0; 7])),
            6 => size(frame(RST_STREAM, 0, 1, &[0; 3])),
            7 => size(frame(WINDOW_UPDATE, 0, 0, &[0; 5])),
            8 => size(frame(SETTINGS, 0, 0, &[0; 5])),
            9 => size(frame(SETTINGS, ACK, 0, &[0; 6])),
            10 => size(frame(GOAWAY, 0, 0, &[0; 7])),
            11 => size(frame(PRIORITY, 0, 1, &[0; 4])),
            12 => (FRAME_SIZE, "frame-too-long", frame(DATA, 0, 1, &[0; PAYLOAD_BYTES_MAX + 1])),
            13 => (PROTOCOL, "window-increment", frame(WINDOW_UPDATE, 0, 0, &[0; 4])),
            14 => (PROTOCOL, "block-interrupted", frame(CONTINUATION, END_HEADERS, 1, &[])),
            15 => (PROTOCOL, "push", frame(PUSH_PROMISE, END_HEADERS, 1, &[0; 4])),
            16 => (PROTOCOL, "setting-value", settings(&[(ENABLE_PUSH, 2)])),
            17 => (PROTOCOL, "setting-value", settings(&[(MAX_FRAME_SIZE, 100)])),
            18 => (FLOW_CONTROL, "initial-window", settings(&[(INITIAL_WINDOW_SIZE, 1 << 31)])),
            _ => {
                // A window that is used up takes the first one.
                let most = frame(WINDOW_UPDATE, 0, 0, &WINDOW_MAX.to_be_bytes());
                self.outbox.push(&most, Some(Mark::Window(0, WINDOW_MAX)));
                (FLOW_CONTROL, "window-overflow", most)
            }
        }
    }
}

/// Code and word of the GOAWAY, and the frames.
type Wrong = (u32, &'static str, Vec<u8>);

/// More than the budget that a client has, and than it can earn back on the way.
const FLOOD_FRAMES: usize = 600;

const PUSH_PROMISE: u8 = 0x5;
const ENABLE_PUSH: u16 = 0x2;

/// Codes of errors (RFC 9113 section 7).
const PROTOCOL: u32 = 0x1;
const FLOW_CONTROL: u32 = 0x3;
const STREAM_CLOSED: u32 = 0x5;
const FRAME_SIZE: u32 = 0x6;
const COMPRESSION: u32 = 0x9;
const ENHANCE_YOUR_CALM: u32 = 0xb;

/// The largest window.
const WINDOW_MAX: u32 = 0x7fff_ffff;

//! Frames: their heads, and the few payloads that the server writes (RFC 9113 sections 4 and 6).

use super::error::ErrorCode;

/// What a client sends first (RFC 9113 section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Longest payload of a frame in either direction, in bytes: the default, and the least that a peer may allow. Larger
/// ones would delay what is more urgent, and browsers keep to it.
pub const PAYLOAD_BYTES_MAX: u32 = 16_384;

/// Bytes of a frame's head.
pub(crate) const FRAME_HEAD_BYTES: usize = 9;

/// Longest input that must be at hand in one piece: a whole frame other than DATA.
pub const FRAME_BYTES_MAX: usize = FRAME_HEAD_BYTES + PAYLOAD_BYTES_MAX as usize;

/// The number of a stream; clients' are odd and rise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub(crate) u32);

impl StreamId {
    /// The number on the wire.
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// Types of frames.
pub(crate) mod kind {
    pub(crate) const DATA: u8 = 0x0;
    pub(crate) const HEADERS: u8 = 0x1;
    pub(crate) const PRIORITY: u8 = 0x2;
    pub(crate) const RST_STREAM: u8 = 0x3;
    pub(crate) const SETTINGS: u8 = 0x4;
    pub(crate) const PUSH_PROMISE: u8 = 0x5;
    pub(crate) const PING: u8 = 0x6;
    pub(crate) const GOAWAY: u8 = 0x7;
    pub(crate) const WINDOW_UPDATE: u8 = 0x8;
    pub(crate) const CONTINUATION: u8 = 0x9;
    /// RFC 9218 section 7.1.
    pub(crate) const PRIORITY_UPDATE: u8 = 0x10;
}

/// Flags of frames.
pub(crate) mod flag {
    pub(crate) const ACK: u8 = 0x1;
    pub(crate) const END_STREAM: u8 = 0x1;
    pub(crate) const END_HEADERS: u8 = 0x4;
    pub(crate) const PADDED: u8 = 0x8;
    pub(crate) const PRIORITY: u8 = 0x20;
}

/// The first nine bytes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHead {
    /// Bytes of the payload.
    pub(crate) len: u32,
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    /// 0 for the connection.
    pub(crate) stream: u32,
}

impl FrameHead {
    /// The head in front of `input`, if all of it is there.
    pub(crate) fn parse(input: &[u8]) -> Option<Self> {
        let [a, b, c, kind, flags, stream @ ..] = *input.first_chunk::<FRAME_HEAD_BYTES>()?;
        let len = u32::from_be_bytes([0, a, b, c]);
        Some(Self { len, kind, flags, stream: u31(stream) })
    }

    /// The head as it is sent.
    pub(crate) fn bytes(self) -> [u8; FRAME_HEAD_BYTES] {
        let [_, a, b, c] = self.len.to_be_bytes();
        let [d, e, f, g] = self.stream.to_be_bytes();
        [a, b, c, self.kind, self.flags, d, e, f, g]
    }

    pub(crate) const fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// A number of 31 bits behind a reserved one, which is ignored.
pub(crate) fn u31(bytes: [u8; 4]) -> u32 {
    u32::from_be_bytes(bytes) & 0x7fff_ffff
}

/// Appends a whole frame.
pub(crate) fn push_frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let head = FrameHead { len: payload.len() as u32, kind, flags, stream };
    out.extend_from_slice(&head.bytes());
    out.extend_from_slice(payload);
}

/// Bytes of RST_STREAM.
pub(crate) const RESET_BYTES: usize = FRAME_HEAD_BYTES + 4;

/// Appends RST_STREAM.
pub(crate) fn push_reset(out: &mut Vec<u8>, stream: u32, code: ErrorCode) {
    push_frame(out, kind::RST_STREAM, 0, stream, &(code as u32).to_be_bytes());
}

/// Appends WINDOW_UPDATE; stream 0 is the connection.
pub(crate) fn push_window_update(out: &mut Vec<u8>, stream: u32, increment: u32) {
    push_frame(out, kind::WINDOW_UPDATE, 0, stream, &increment.to_be_bytes());
}

/// Appends GOAWAY. `why` is for people who read a trace.
pub(crate) fn push_goaway(out: &mut Vec<u8>, last: u32, code: ErrorCode, why: &str) {
    let payload = [&last.to_be_bytes(), &(code as u32).to_be_bytes(), why.as_bytes()].concat();
    push_frame(out, kind::GOAWAY, 0, 0, &payload);
}

/// Whether the first bytes of a connection are the preface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefaceMatch {
    /// They are.
    Whole,
    /// They are the beginning of it: more bytes decide.
    Partial,
    /// They are something else.
    No,
}

/// Compares the first bytes of a connection with [`PREFACE`], for a port that speaks HTTP/1 too. No request of HTTP/1
/// that is answered begins with `PRI * HTTP/2.0`.
pub fn match_preface(input: &[u8]) -> PrefaceMatch {
    let len = input.len().min(PREFACE.len());
    match input[..len] == PREFACE[..len] {
        false => PrefaceMatch::No,
        true if len == PREFACE.len() => PrefaceMatch::Whole,
        true => PrefaceMatch::Partial,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_survives_the_way_out_and_back() {
        let head = FrameHead { len: 0x01_02_03, kind: 4, flags: 5, stream: 0x7607_0809 };
        assert_eq!(head.bytes(), [1, 2, 3, 4, 5, 0x76, 7, 8, 9]);
        assert_eq!(FrameHead::parse(&head.bytes()), Some(head));
        assert_eq!(FrameHead::parse(&head.bytes()[..8]), None);
        let reserved = [0, 0, 0, 0, 0, 0x80, 0, 0, 1];
        assert_eq!(FrameHead::parse(&reserved).unwrap().stream, 1, "the reserved bit is ignored");
    }

    #[test]
    fn the_preface_is_recognised_in_pieces() {
        for len in 0..PREFACE.len() {
            assert_eq!(match_preface(&PREFACE[..len]), PrefaceMatch::Partial);
        }
        assert_eq!(match_preface(&[PREFACE, b"more"].concat()), PrefaceMatch::Whole);
        assert_eq!(match_preface(b"PRI * HTTP/1"), PrefaceMatch::No);
        assert_eq!(match_preface(b"GET"), PrefaceMatch::No);
    }
}

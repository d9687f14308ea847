//! Frames as they are on the wire (RFC 9113 sections 4 and 6), written and read without the server's code.

/// Types of frames.
pub(super) const DATA: u8 = 0x0;
pub(super) const HEADERS: u8 = 0x1;
pub(super) const PRIORITY: u8 = 0x2;
pub(super) const RST_STREAM: u8 = 0x3;
pub(super) const SETTINGS: u8 = 0x4;
pub(super) const PING: u8 = 0x6;
pub(super) const GOAWAY: u8 = 0x7;
pub(super) const WINDOW_UPDATE: u8 = 0x8;
pub(super) const CONTINUATION: u8 = 0x9;
pub(super) const PRIORITY_UPDATE: u8 = 0x10;

/// Flags.
pub(super) const ACK: u8 = 0x1;
pub(super) const END_STREAM: u8 = 0x1;
pub(super) const END_HEADERS: u8 = 0x4;
pub(super) const PADDED: u8 = 0x8;

/// Numbers of settings.
pub(super) const HEADER_TABLE_SIZE: u16 = 0x1;
pub(super) const INITIAL_WINDOW_SIZE: u16 = 0x4;
pub(super) const MAX_FRAME_SIZE: u16 = 0x5;

/// What a client sends first.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Windows are this large until something changes them.
pub(super) const WINDOW_USUAL: u32 = 65_535;

/// Longest payload that was allowed in either direction.
pub(super) const PAYLOAD_BYTES_MAX: usize = 1 << 14;

/// A frame that the server sent.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
    pub(super) payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The frame at the beginning of `input`, and its length, if all of it is there.
    ///
    /// # Panics
    /// If it is longer than is allowed.
    pub(super) fn read(input: &'a [u8]) -> Option<(Self, usize)> {
        let (head, rest) = Head::read(input)?;
        let payload = rest.get(..head.len)?;
        let Head { kind, flags, stream, .. } = head;
        Some((Self { kind, flags, stream, payload }, HEAD_BYTES + head.len))
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The payload of a frame that is a number.
    pub(super) fn number(&self) -> u32 {
        u32::from_be_bytes(self.payload.try_into().unwrap_or_else(|_| panic!("no number: {self:?}")))
    }
}

/// The stream of the DATA frame at the beginning of `input`, and how much of its payload is there.
pub(super) fn partial_data(input: &[u8]) -> Option<(u32, usize)> {
    let (head, rest) = Head::read(input).filter(|(head, _)| head.kind == DATA)?;
    Some((head.stream, rest.len().min(head.len)))
}

#[derive(Debug)]
struct Head {
    len: usize,
    kind: u8,
    flags: u8,
    stream: u32,
}

impl Head {
    fn read(input: &[u8]) -> Option<(Self, &[u8])> {
        let (&[a, b, c, kind, flags, d, e, f, g], rest) = input.split_first_chunk::<HEAD_BYTES>()?;
        let len = u32::from_be_bytes([0, a, b, c]) as usize;
        let stream = u32::from_be_bytes([d, e, f, g]);
        assert!(len <= PAYLOAD_BYTES_MAX, "{len} bytes are too many for a frame");
        assert!(stream >> 31 == 0, "the reserved bit is set");
        Some((Self { len, kind, flags, stream }, rest))
    }
}

/// A frame of a client.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// SETTINGS of a client.
pub(super) fn settings(pairs: &[(u16, u32)]) -> Vec<u8> {
    let pair = |(id, value): &(u16, u32)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
    frame(SETTINGS, 0, 0, &pairs.iter().flat_map(pair).collect::<Vec<_>>())
}

const HEAD_BYTES: usize = 9;

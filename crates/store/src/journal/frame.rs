//! The bytes around entries: header, mark, frames with checksums. Without I/O.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::journal::entry::{ENTRY_BYTES_MAX, Entry};

/// Longest record of an object, in bytes.
pub const RECORD_BYTES_MAX: usize = 64 << 10;

/// What the header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// No two journals have the same.
    pub id: u64,
    /// Size of the smallest slots, and of the largest: another layout has other slots.
    pub slot_bytes: (u32, u32),
}

/// Bytes of header and mark: where frames begin.
pub const HEAD_BYTES: usize = 48;

/// Where the mark is.
pub const MARK_OFFSET: u64 = 32;

const MAGIC: [u8; 8] = *b"batonJ\r\n";
const VERSION: u32 = 1;

impl Header {
    /// Header and mark of a journal that is durable up to the byte `durable`.
    pub fn encode(&self, durable: u64) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.slot_bytes.0.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.slot_bytes.1.to_le_bytes());
        bytes[20..28].copy_from_slice(&self.id.to_le_bytes());
        let check = xxh3_64(&bytes[..28]) as u32;
        bytes[28..32].copy_from_slice(&check.to_le_bytes());
        bytes[32..].copy_from_slice(&encode_mark(self.id, durable));
        bytes
    }

    /// Reads a header; `None` if it is damaged or of another version.
    pub fn decode(bytes: &[u8; HEAD_BYTES]) -> Option<Self> {
        let id = u64::from_le_bytes(*bytes[20..].first_chunk()?);
        let number = |at: usize| bytes[at..].first_chunk().copied().map(u32::from_le_bytes);
        let header = Self { id, slot_bytes: (number(12)?, number(16)?) };
        (header.encode(0)[..32] == bytes[..32]).then_some(header)
    }
}

/// The bytes of a mark.
pub fn encode_mark(id: u64, durable: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&durable.to_le_bytes());
    bytes[8..].copy_from_slice(&xxh3_64_with_seed(&durable.to_le_bytes(), id).to_le_bytes());
    bytes
}

/// Up to which byte the journal is durable; `None` if the mark is damaged.
pub fn decode_mark(id: u64, bytes: &[u8; 16]) -> Option<u64> {
    let durable = u64::from_le_bytes(*bytes.first_chunk()?);
    (encode_mark(id, durable) == *bytes).then_some(durable)
}

/// Appends the frame of an entry that begins at byte `offset` of journal `id`; returns its length.
pub fn push_frame(out: &mut Vec<u8>, id: u64, offset: u64, entry: &Entry<'_>) -> u32 {
    let start = out.len();
    out.extend_from_slice(&[0; FRAME_HEAD_BYTES]);
    entry.encode(out);
    let len = (out.len() - start - FRAME_HEAD_BYTES) as u32;
    out[start + 8..start + FRAME_HEAD_BYTES].copy_from_slice(&len.to_le_bytes());
    let check = xxh3_64_with_seed(&out[start + 8..], seed(id, offset));
    out[start..start + 8].copy_from_slice(&check.to_le_bytes());
    FRAME_HEAD_BYTES as u32 + len
}

/// What `bytes`, which begin at byte `offset` of journal `id`, begin with.
pub fn read_frame(bytes: &[u8], id: u64, offset: u64) -> Frame<'_> {
    let Some((head, _)) = bytes.split_first_chunk::<FRAME_HEAD_BYTES>() else { return Frame::Cut };
    let len = u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize;
    if len > ENTRY_BYTES_MAX + RECORD_BYTES_MAX {
        return Frame::Damaged;
    }
    let Some(framed) = bytes.get(..FRAME_HEAD_BYTES + len) else { return Frame::Cut };
    let is_intact = head[..8] == xxh3_64_with_seed(&framed[8..], seed(id, offset)).to_le_bytes();
    match Entry::decode(&framed[FRAME_HEAD_BYTES..]) {
        Some(entry) if is_intact => Frame::Whole(entry, framed.len() as u32),
        _ => Frame::Damaged,
    }
}

/// What a frame turns out to be.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// An entry, and the frame's length.
    Whole(Entry<'a>, u32),
    /// The bytes end before the frame does.
    Cut,
    /// No frame.
    Damaged,
}

/// The checksum, and the length of the entry.
const FRAME_HEAD_BYTES: usize = 12;

/// Longest frame in bytes.
pub const FRAME_BYTES_MAX: usize = FRAME_HEAD_BYTES + ENTRY_BYTES_MAX + RECORD_BYTES_MAX;

fn seed(id: u64, offset: u64) -> u64 {
    id.wrapping_add(offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;

    #[test]
    fn a_head_of_another_version_or_a_damaged_one_is_none() {
        let header = Header { id: 0x1234_5678_9abc_def0, slot_bytes: (4096, 262_144) };
        let bytes = header.encode(99);
        assert_eq!(Header::decode(&bytes), Some(header));
        let mark =
            |bytes: &[u8; HEAD_BYTES]| decode_mark(header.id, bytes[MARK_OFFSET as usize..].first_chunk()?);
        assert_eq!(mark(&bytes), Some(99));
        for at in 0..HEAD_BYTES {
            let mut damaged = bytes;
            damaged[at] ^= 1;
            assert!(Header::decode(&damaged) != Some(header) || mark(&damaged).is_none(), "byte {at}");
        }
    }

    #[test]
    fn a_frame_is_valid_in_its_place_only() {
        let entry =
            Entry::Object { key: Key::from(7), generation: 1, kind: 2, replaces: true, record: b"head" };
        let mut bytes = b"before".to_vec();
        let len = push_frame(&mut bytes, 5, 100, &entry);
        let frame = &bytes[6..];
        assert_eq!(read_frame(frame, 5, 100), Frame::Whole(entry, len));
        assert_eq!(read_frame(frame, 5, 101), Frame::Damaged);
        assert_eq!(read_frame(frame, 6, 100), Frame::Damaged);
        for end in 0..frame.len() {
            assert_eq!(read_frame(&frame[..end], 5, 100), Frame::Cut);
        }
        for at in 0..frame.len() {
            let mut damaged = frame.to_vec();
            damaged[at] ^= 0x80;
            assert!(!matches!(read_frame(&damaged, 5, 100), Frame::Whole(..)), "byte {at}");
        }
    }
}

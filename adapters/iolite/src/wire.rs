//! What two ends say to each other: markers between the bytes of a pipe, and messages on the channel beside it.
//!
//! A marker stands for bytes that are somewhere else. It is written at once, as pipes promise for
//! [`MARKER_BYTES`], so that it is never torn apart by another writer. It begins with a constant and with the number that its
//! writer has drawn and told the reader on the channel: other bytes are never taken for one.

use memchr::memmem;

/// Bytes of a marker. So many of them fill a pipe that about 2 MiB are on their way at a time: a writer that is faster
/// than its reader waits there, as it does with bytes.
pub const MARKER_BYTES: usize = 2048;

/// Most references of a marker.
pub const REFERENCES_MAX: usize = (MARKER_BYTES - HEAD_BYTES) / REFERENCE_BYTES;

/// What a writer's markers are known by.
pub type WriterNumber = [u8; 16];

/// Some bytes of a memory that the reader was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// By which it is returned.
    pub id: u32,
    /// Which memory: the first that was shown is 0.
    pub memory: u32,
    /// In bytes from the beginning of the memory.
    pub offset: u64,
    /// In bytes, at least one.
    pub len: u32,
}

/// References of one writer, in the order of their bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// Who wrote it.
    pub writer: WriterNumber,
    /// At least one, at most [`REFERENCES_MAX`].
    pub references: Vec<Reference>,
}

/// What is next in the bytes from a pipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// So many bytes that are no marker.
    Bytes(usize),
    /// A marker: the first [`MARKER_BYTES`] bytes.
    Marker(Marker),
    /// Perhaps the beginning of a marker: more is needed.
    Part,
}

impl Marker {
    /// As it is written.
    ///
    /// # Panics
    /// If it has more than [`REFERENCES_MAX`] references.
    pub fn to_bytes(&self) -> [u8; MARKER_BYTES] {
        let mut bytes = [0; MARKER_BYTES];
        bytes[..16].copy_from_slice(&MAGIC);
        bytes[16..32].copy_from_slice(&self.writer);
        bytes[32..HEAD_BYTES].copy_from_slice(&(self.references.len() as u32).to_le_bytes());
        let places = bytes[HEAD_BYTES..].chunks_exact_mut(REFERENCE_BYTES);
        assert!(self.references.len() <= REFERENCES_MAX, "{} references", self.references.len());
        for (place, reference) in places.zip(&self.references) {
            place[..4].copy_from_slice(&reference.id.to_le_bytes());
            place[4..8].copy_from_slice(&reference.memory.to_le_bytes());
            place[8..16].copy_from_slice(&reference.offset.to_le_bytes());
            place[16..].copy_from_slice(&reference.len.to_le_bytes());
        }
        bytes
    }

    /// Reads one; `None`: these bytes are something else.
    pub fn from_bytes(bytes: &[u8; MARKER_BYTES]) -> Option<Self> {
        let count = u32_at(bytes, 32) as usize;
        if bytes[..16] != MAGIC || count == 0 || count > REFERENCES_MAX {
            return None;
        }
        let reference = |place: &[u8]| Reference {
            id: u32_at(place, 0),
            memory: u32_at(place, 4),
            offset: u64::from(u32_at(place, 8)) | u64::from(u32_at(place, 12)) << 32,
            len: u32_at(place, 16),
        };
        let references: Vec<_> =
            bytes[HEAD_BYTES..].chunks_exact(REFERENCE_BYTES).take(count).map(reference).collect();
        let is_possible =
            |one: &Reference| one.len > 0 && one.offset.checked_add(u64::from(one.len)).is_some();
        references
            .iter()
            .all(is_possible)
            .then(|| Self { writer: bytes[16..32].try_into().unwrap(), references })
    }
}

/// What `input`, which is not empty, begins with. `is_cut`: the reader's buffer was too small for what may follow.
pub fn next(input: &[u8], is_cut: bool) -> Found {
    let begin = match memmem::find(input, &MAGIC) {
        Some(begin) => begin,
        None if is_cut => input.len() - cut_magic(input),
        None => return Found::Bytes(input.len()),
    };
    match input.first_chunk() {
        _ if begin > 0 => Found::Bytes(begin),
        Some(bytes) => Marker::from_bytes(bytes).map_or(Found::Bytes(MAGIC.len()), Found::Marker),
        None if is_cut => Found::Part,
        // Markers come whole.
        None => Found::Bytes(MAGIC.len()),
    }
}

/// Bytes at the end of `input` that a marker may begin with.
fn cut_magic(input: &[u8]) -> usize {
    (1..MAGIC.len()).rev().find(|count| input.ends_with(&MAGIC[..*count])).unwrap_or(0)
}

/// A message of a writer on the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToReader {
    /// The first message.
    Hello(WriterNumber),
    /// Comes with the descriptor of a pool of so many bytes, of which nothing changes that is referred to.
    Pool(u64),
    /// Comes with the descriptor of a file.
    File,
}

/// Bytes of a message to a reader.
pub const TO_READER_BYTES: usize = 17;

impl ToReader {
    /// As it is sent.
    pub fn to_bytes(self) -> [u8; TO_READER_BYTES] {
        let mut bytes = [0; TO_READER_BYTES];
        match self {
            Self::Hello(number) => bytes[1..].copy_from_slice(&number),
            Self::Pool(size) => {
                bytes[0] = 1;
                bytes[1..9].copy_from_slice(&size.to_le_bytes());
            }
            Self::File => bytes[0] = 2,
        }
        bytes
    }

    /// Reads one; `None`: it is none.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; TO_READER_BYTES] = bytes.try_into().ok()?;
        match bytes[0] {
            0 => Some(Self::Hello(bytes[1..].try_into().unwrap())),
            1 => Some(Self::Pool(u64::from_le_bytes(bytes[1..9].try_into().unwrap()))),
            2 => Some(Self::File),
            _ => None,
        }
    }
}

/// How many memories a reader remembers: those that were shown last. A marker refers to no more than these.
pub const SHOWN_MAX: usize = 64;

/// Most references that a reader returns with one message.
pub const RETURNED_MAX: usize = 64;

/// A reader's message: it does not look any more at what has these ids.
pub fn returned_to_bytes(ids: &[u32]) -> Vec<u8> {
    ids.iter().flat_map(|id| id.to_le_bytes()).collect()
}

/// Reads the ids of such a message; `None`: it is none.
pub fn returned_from_bytes(bytes: &[u8]) -> Option<impl Iterator<Item = u32>> {
    bytes.len().is_multiple_of(4).then(|| bytes.chunks_exact(4).map(|id| u32_at(id, 0)))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

const HEAD_BYTES: usize = 36;
const REFERENCE_BYTES: usize = 20;

/// What every marker begins with: no text, and random, so that it hardly ever stands in other bytes.
const MAGIC: [u8; 16] = *b"\xf9\xc1\x8d\x10\xe2\x07\xb4\x9b\xff\x52\xa6\x1c\xd3\x88\x6f\xee";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn marker() -> impl Strategy<Value = Marker> {
        let reference = (any::<u32>(), any::<u32>(), 0..1_u64 << 60, 1..u32::MAX)
            .prop_map(|(id, memory, offset, len)| Reference { id, memory, offset, len });
        (any::<WriterNumber>(), proptest::collection::vec(reference, 1..=REFERENCES_MAX))
            .prop_map(|(writer, references)| Marker { writer, references })
    }

    #[derive(Clone, Debug)]
    enum Written {
        Bytes(Vec<u8>),
        Marker(Marker),
    }

    fn written() -> impl Strategy<Value = Written> {
        let like_a_marker = (0..=MAGIC.len()).prop_map(|count| MAGIC[..count].to_vec());
        prop_oneof![
            proptest::collection::vec(any::<u8>(), 1..5000).prop_map(Written::Bytes),
            like_a_marker.prop_map(Written::Bytes),
            marker().prop_map(Written::Marker),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 128 }))]

        /// Goal: markers and bytes of any writers come out in the order and as they were written. Method: a reader whose
        /// buffer has any size sees the stream as it comes, and keeps what may be the beginning of a marker.
        #[test]
        fn markers_are_found_between_any_bytes(
            all in proptest::collection::vec(written(), 0..8),
            buffer_bytes in MARKER_BYTES + 1..4 * MARKER_BYTES,
        ) {
            let mut stream = Vec::new();
            let (mut bytes, mut markers) = (Vec::new(), Vec::new());
            for one in &all {
                match one {
                    Written::Bytes(some) => { bytes.extend(some); stream.extend(some); }
                    Written::Marker(marker) => { markers.push(marker.clone()); stream.extend(marker.to_bytes()); }
                }
            }
            let (mut seen_bytes, mut seen_markers, mut held) = (Vec::new(), Vec::new(), Vec::new());
            let mut stream = &stream[..];
            while !stream.is_empty() {
                let count = stream.len().min(buffer_bytes - held.len());
                let is_cut = held.len() + count == buffer_bytes;
                held.extend(&stream[..count]);
                stream = &stream[count..];
                while !held.is_empty() {
                    let taken = match next(&held, is_cut) {
                        Found::Bytes(count) => { seen_bytes.extend(&held[..count]); count }
                        Found::Marker(marker) => { seen_markers.push(marker); MARKER_BYTES }
                        Found::Part => break,
                    };
                    held.drain(..taken);
                }
            }
            prop_assert!(held.is_empty() || MAGIC.starts_with(&held[..held.len().min(16)]));
            seen_bytes.extend(held);
            prop_assert!(seen_bytes == bytes);
            prop_assert_eq!(seen_markers, markers);
        }

        #[test]
        fn messages_are_read_as_written(number in any::<WriterNumber>(), size in any::<u64>(), ids in proptest::collection::vec(any::<u32>(), 0..=RETURNED_MAX)) {
            for message in [ToReader::Hello(number), ToReader::Pool(size), ToReader::File] {
                prop_assert_eq!(ToReader::from_bytes(&message.to_bytes()), Some(message));
            }
            let read: Vec<u32> = returned_from_bytes(&returned_to_bytes(&ids)).unwrap().collect();
            prop_assert_eq!(read, ids);
        }
    }
}

//! The journal of a store.

use baton_store::journal::entry::Entry;
use baton_store::journal::frame::{Frame, HEAD_BYTES, Header, push_frame, read_frame};

/// Any bytes as what a journal may contain. Frames are read without panic; an entry is the same after it was written
/// and read, and no other one can be made of its frame by changing a byte or by moving it.
pub fn journal(input: &[u8]) {
    let Some((&[place, change], bytes)) = input.split_first_chunk() else { return };
    if let Some(head) = bytes.first_chunk::<HEAD_BYTES>()
        && let Some(header) = Header::decode(head)
    {
        assert_eq!(Header::decode(&header.encode(0)), Some(header));
        let mut rest = &bytes[HEAD_BYTES..];
        while let Frame::Whole(entry, len) = read_frame(rest, header.id, (bytes.len() - rest.len()) as u64) {
            written_and_read(&entry, place, change);
            rest = &rest[len as usize..];
        }
    }
    // Without a checksum, which no fuzzer guesses.
    if let Some(entry) = Entry::decode(bytes) {
        let mut again = Vec::new();
        entry.encode(&mut again);
        assert_eq!(again, bytes, "an entry has one spelling");
        written_and_read(&entry, place, change);
    }
}

fn written_and_read(entry: &Entry<'_>, place: u8, change: u8) {
    const ID: u64 = 7;
    let offset = u64::from(place) << 8;
    let mut frame = Vec::new();
    let len = push_frame(&mut frame, ID, offset, entry);
    assert_eq!(len as usize, frame.len());
    assert_eq!(read_frame(&frame, ID, offset), Frame::Whole(entry.clone(), len));
    assert!(!matches!(read_frame(&frame, ID, offset + 1), Frame::Whole(..)), "a frame has one place");
    assert_eq!(read_frame(&frame[..frame.len() - 1], ID, offset), Frame::Cut);
    if change != 0 {
        let at = usize::from(place) * frame.len() / 256;
        frame[at] ^= change;
        assert!(!matches!(read_frame(&frame, ID, offset), Frame::Whole(..)), "byte {at} was changed");
    }
}

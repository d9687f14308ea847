//! The framing that both directions share: headers collected, everything else passed through.

use crate::Broken;
use crate::record::{HEADER_BYTES, RecordHeader};

/// Finds the records in a stream that arrives in any pieces. A copy saves the position.
#[derive(Clone, Copy, Debug)]
pub struct FrameReader {
    header: [u8; HEADER_BYTES],
    /// Bytes of `header` read: all from a record's `Opened` to its `Closed`.
    header_len: usize,
    content_left: usize,
    padding_left: usize,
}

/// The next event of the input. Each record is `Opened`, has any number of `Content`s and then `Padding`s, and is
/// `Closed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A record begins.
    Opened(RecordHeader),
    /// Some of its content, not empty.
    Content(&'a [u8]),
    /// Some of its padding, not empty.
    Padding(&'a [u8]),
    /// The stream has ended.
    Closed,
}

impl Default for FrameReader {
    fn default() -> Self {
        Self::new()
    }
}

impl FrameReader {
    /// Before the first record.
    pub const fn new() -> Self {
        Self { header: [0; HEADER_BYTES], header_len: 0, content_left: 0, padding_left: 0 }
    }

    /// Whether the stream could end here: no record is half read, though the last one may not be `Closed`.
    pub const fn is_between_records(&self) -> bool {
        let is_open = self.header_len == HEADER_BYTES;
        self.header_len == 0 || (is_open && self.content_left == 0 && self.padding_left == 0)
    }

    /// The part read of an incomplete header.
    pub fn header_begun(&self) -> &[u8] {
        if self.header_len == HEADER_BYTES { &[] } else { &self.header[..self.header_len] }
    }

    /// Takes the next event from the front of `input`; `None` at its end.
    ///
    /// # Errors
    /// The input is no record.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Frame<'a>>, Broken> {
        if self.header_len == HEADER_BYTES {
            return Ok(self.next_of_record(input));
        }
        let missing = &mut self.header[self.header_len..];
        let some = take(input, missing.len());
        missing[..some.len()].copy_from_slice(some);
        self.header_len += some.len();
        if self.header_len < HEADER_BYTES {
            return Ok(None);
        }
        let header = RecordHeader::parse(&self.header)?;
        self.content_left = usize::from(header.content_len);
        self.padding_left = usize::from(header.padding_len);
        Ok(Some(Frame::Opened(header)))
    }

    fn next_of_record<'a>(&mut self, input: &mut &'a [u8]) -> Option<Frame<'a>> {
        if self.content_left > 0 {
            let content = take(input, self.content_left);
            self.content_left -= content.len();
            return Some(Frame::Content(content)).filter(|_| !content.is_empty());
        }
        if self.padding_left > 0 {
            let padding = take(input, self.padding_left);
            self.padding_left -= padding.len();
            return Some(Frame::Padding(padding)).filter(|_| !padding.is_empty());
        }
        self.header_len = 0;
        Some(Frame::Closed)
    }
}

/// Takes at most `bytes_max` bytes from the front of `input`.
fn take<'a>(input: &mut &'a [u8], bytes_max: usize) -> &'a [u8] {
    let (taken, rest) = input.split_at(input.len().min(bytes_max));
    *input = rest;
    taken
}

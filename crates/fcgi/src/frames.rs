//! The framing that both directions share: headers collected, contents passed through, padding dropped.

use crate::Broken;
use crate::record::{HEADER_BYTES, RecordHeader};
use std::ops::Range;

/// Finds the records in a stream of bytes, whatever pieces it comes in.
#[derive(Debug)]
pub(crate) struct FrameReader {
    header: [u8; HEADER_BYTES],
    /// How much of `header` is there: all of it from a record's `Opened` to its `Closed`.
    header_len: usize,
    content_left: u16,
    padding_left: u8,
}

/// What comes next in the input. Each record is `Opened`, has any number of `Content`s, and is `Closed`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// All of the input was consumed.
    NeedMore,
    /// A record begins.
    Opened(RecordHeader),
    /// Some of its content: a range of the input, not empty.
    Content(Range<usize>),
    /// It has ended, its padding included.
    Closed,
}

impl FrameReader {
    pub(crate) const fn new() -> Self {
        Self { header: [0; HEADER_BYTES], header_len: 0, content_left: 0, padding_left: 0 }
    }

    /// Whether the stream could end here.
    pub(crate) const fn is_between_records(&self) -> bool {
        self.header_len == 0 || (self.header_len == HEADER_BYTES && self.record_left() == 0)
    }

    const fn record_left(&self) -> usize {
        self.content_left as usize + self.padding_left as usize
    }

    /// Looks at `input[*at..]`, and moves `*at` behind what it consumed.
    pub(crate) fn next(&mut self, input: &[u8], at: &mut usize) -> Result<Frame, Broken> {
        let rest = &input[*at..];
        if self.header_len < HEADER_BYTES {
            let taken = rest.len().min(HEADER_BYTES - self.header_len);
            self.header[self.header_len..self.header_len + taken].copy_from_slice(&rest[..taken]);
            self.header_len += taken;
            *at += taken;
            if self.header_len < HEADER_BYTES {
                return Ok(Frame::NeedMore);
            }
            let header = RecordHeader::parse(&self.header)?;
            self.content_left = header.content_len;
            self.padding_left = header.padding_len;
            return Ok(Frame::Opened(header));
        }
        if self.content_left > 0 {
            let taken = clamp_u16(rest.len()).min(self.content_left);
            if taken == 0 {
                return Ok(Frame::NeedMore);
            }
            self.content_left -= taken;
            let start = *at;
            *at += usize::from(taken);
            return Ok(Frame::Content(start..*at));
        }
        let taken = clamp_u16(rest.len()).min(u16::from(self.padding_left)) as u8;
        self.padding_left -= taken;
        *at += usize::from(taken);
        if self.padding_left > 0 {
            return Ok(Frame::NeedMore);
        }
        self.header_len = 0;
        Ok(Frame::Closed)
    }
}

fn clamp_u16(length: usize) -> u16 {
    u16::try_from(length).unwrap_or(u16::MAX)
}

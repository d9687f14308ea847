//! The records of a program's output, in any pieces: php-fpm writes a header at the end of one call and its content,
//! from the memory of the script, in the next.

use baton_fcgi::Broken;
use baton_fcgi::record::{HEADER_BYTES, RecordHeader};

/// The position in a stream of records. A copy saves it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Records {
    header: [u8; HEADER_BYTES],
    header_len: usize,
    content_left: usize,
    padding_left: usize,
    /// A header is complete, and its record is not.
    is_open: bool,
}

/// The next piece.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// A record begins, with this header.
    Opened(RecordHeader, [u8; HEADER_BYTES]),
    /// Some of its content, not empty.
    Content(&'a [u8]),
    /// Some of its padding, not empty.
    Padding(&'a [u8]),
    /// It has ended.
    Closed,
}

impl Records {
    /// Whether the stream is between two records.
    pub(crate) const fn is_between(&self) -> bool {
        self.header_len == 0 && !self.is_open
    }

    /// The part of a header that has been read.
    pub(crate) fn header_begun(&self) -> &[u8] {
        &self.header[..self.header_len]
    }

    /// Takes the next piece from the front of `input`; None when there is nothing left to take.
    ///
    /// # Errors
    /// These are not records.
    pub(crate) fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Piece<'a>>, Broken> {
        if self.is_open {
            return Ok(self.next_of_record(input));
        }
        let missing = &mut self.header[self.header_len..];
        let taken = input.len().min(missing.len());
        missing[..taken].copy_from_slice(&input[..taken]);
        self.header_len += taken;
        *input = &input[taken..];
        if self.header_len < HEADER_BYTES {
            return Ok(None);
        }
        let header = RecordHeader::parse(&self.header)?;
        self.header_len = 0;
        self.content_left = usize::from(header.content_len);
        self.padding_left = usize::from(header.padding_len);
        self.is_open = true;
        Ok(Some(Piece::Opened(header, self.header)))
    }

    fn next_of_record<'a>(&mut self, input: &mut &'a [u8]) -> Option<Piece<'a>> {
        if self.content_left + self.padding_left == 0 {
            self.is_open = false;
            return Some(Piece::Closed);
        }
        if input.is_empty() {
            return None;
        }
        let is_content = self.content_left > 0;
        let left = if is_content { &mut self.content_left } else { &mut self.padding_left };
        let (piece, rest) = input.split_at(input.len().min(*left));
        *left -= piece.len();
        *input = rest;
        Some(if is_content { Piece::Content(piece) } else { Piece::Padding(piece) })
    }
}

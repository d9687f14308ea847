//! The content of an answer with several ranges: `multipart/byteranges` (RFC 9110 section 14.6).
//!
//! A part is its head, the bytes of its range, and nothing: the line break that ends it belongs to the next
//! delimiter. So the caller can put slices of a file between heads, and knows the length of it all before.

use crate::ByteRange;
use crate::decimal::{decimal_len, push_decimal};

/// How the parts of one answer are written.
#[derive(Clone, Copy, Debug)]
pub struct Multipart<'a> {
    /// Separates the parts: 1 to 70 letters and digits that occur in no part, such as random ones.
    pub boundary: &'a str,
    /// The media type of the representation that the parts are of.
    pub media_type: &'a str,
    /// The length of that representation, in bytes.
    pub length: u64,
}

impl Multipart<'_> {
    /// Appends the value of the answer's Content-Type.
    pub fn push_content_type(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"multipart/byteranges; boundary=");
        out.extend_from_slice(self.boundary.as_bytes());
    }

    /// Appends the head of a part.
    pub fn push_part_head(&self, out: &mut Vec<u8>, range: ByteRange) {
        for piece in [DELIMITER, self.boundary, CONTENT_TYPE, self.media_type, CONTENT_RANGE] {
            out.extend_from_slice(piece.as_bytes());
        }
        push_content_range(out, range, self.length);
        out.extend_from_slice(PART_HEAD_END.as_bytes());
    }

    /// Appends the final boundary.
    pub fn push_tail(&self, out: &mut Vec<u8>) {
        for piece in [DELIMITER, self.boundary, TAIL_END] {
            out.extend_from_slice(piece.as_bytes());
        }
    }

    /// The Content-Length of an answer with these parts.
    pub fn content_length(&self, ranges: &[ByteRange]) -> u64 {
        let fixed = (DELIMITER.len() + self.boundary.len()) as u64;
        let head_fixed = fixed
            + (CONTENT_TYPE.len() + self.media_type.len() + CONTENT_RANGE.len() + PART_HEAD_END.len()) as u64;
        let parts: u64 = ranges
            .iter()
            .map(|range| head_fixed + content_range_len(*range, self.length) + range.len())
            .sum();
        parts + fixed + TAIL_END.len() as u64
    }
}

/// Appends the value of Content-Range for one range (RFC 9110 section 14.4).
pub(crate) fn push_content_range(out: &mut Vec<u8>, range: ByteRange, length: u64) {
    out.extend_from_slice(b"bytes ");
    push_decimal(out, range.first);
    out.push(b'-');
    push_decimal(out, range.last);
    out.push(b'/');
    push_decimal(out, length);
}

const fn content_range_len(range: ByteRange, length: u64) -> u64 {
    "bytes -/".len() as u64 + decimal_len(range.first) + decimal_len(range.last) + decimal_len(length)
}

const DELIMITER: &str = "\r\n--";
const CONTENT_TYPE: &str = "\r\nContent-Type: ";
const CONTENT_RANGE: &str = "\r\nContent-Range: ";
const PART_HEAD_END: &str = "\r\n\r\n";
const TAIL_END: &str = "--\r\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_is_that_of_what_is_written() {
        let multipart = Multipart { boundary: "B0undary", media_type: "text/plain", length: 12_345 };
        let ranges = [
            ByteRange { first: 0, last: 0 },
            ByteRange { first: 9, last: 10 },
            ByteRange { first: 99, last: 12_344 },
        ];
        let mut out = Vec::new();
        for range in ranges {
            multipart.push_part_head(&mut out, range);
            out.resize(out.len() + range.len() as usize, b'.');
        }
        multipart.push_tail(&mut out);
        assert_eq!(out.len() as u64, multipart.content_length(&ranges));
        let first = "\r\n--B0undary\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-0/12345\r\n\r\n.\r\n--B0undary\r\n";
        assert!(out.starts_with(first.as_bytes()));
        assert!(out.ends_with(b".\r\n--B0undary--\r\n"));
        let mut content_type = Vec::new();
        multipart.push_content_type(&mut content_type);
        assert_eq!(content_type, b"multipart/byteranges; boundary=B0undary");
    }
}

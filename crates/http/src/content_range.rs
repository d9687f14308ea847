//! The Content-Range of a part (RFC 9110 section 14.4).

use crate::{ByteRange, parse_decimal};

/// What the field of a 206 says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentRange {
    /// Which bytes the part has.
    pub range: ByteRange,
    /// The length of the whole representation in bytes, if its server knows it: more than `range.last`.
    pub length: Option<u64>,
}

impl ContentRange {
    /// Reads the field of a 206. `None` for other units, for the form of a 416 (`bytes */10`), for a range that ends
    /// before it begins or behind the end, and for numbers beyond 64 bits.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (unit, rest) = value.split_at_checked(b"bytes ".len())?;
        if !unit.eq_ignore_ascii_case(b"bytes ") {
            return None;
        }
        let slash = memchr::memchr(b'/', rest)?;
        let dash = memchr::memchr(b'-', &rest[..slash])?;
        let first = parse_decimal(&rest[..dash])?;
        // The last position that there can be: the length behind it is a number, too.
        let last = parse_decimal(&rest[dash + 1..slash]).filter(|last| *last < u64::MAX && first <= *last)?;
        let length = match &rest[slash + 1..] {
            b"*" => None,
            digits => Some(parse_decimal(digits).filter(|length| last < *length)?),
        };
        Some(Self { range: ByteRange { first, last }, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc9110_14_4_a_part_lies_within_the_whole() {
        let of = |first, last, length| Some(ContentRange { range: ByteRange { first, last }, length });
        for (text, expected) in [
            ("bytes 0-0/1", of(0, 0, Some(1))),
            ("bytes 42-1233/1234", of(42, 1233, Some(1234))),
            ("Bytes 42-1233/*", of(42, 1233, None)),
            ("bytes */10", None),
            ("bytes 1-0/10", None),
            ("bytes 0-10/10", None),
            ("bytes=0-1/10", None),
            ("bytes 0-1", None),
            ("bytes 0-1/", None),
            ("bytes -1/10", None),
            ("bytes 0-/10", None),
            ("bytes 0 - 1/10", None),
            ("bytes 0-1/10, bytes 2-3/10", None),
            ("bytes 0-18446744073709551615/*", None),
            ("lines 0-1/10", None),
            ("", None),
        ] {
            assert_eq!(ContentRange::parse(text.as_bytes()), expected, "{text}");
        }
    }
}

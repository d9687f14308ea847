//! Entity tags (RFC 9110 section 8.8.3).

use crate::Coding;
use std::fmt;
use std::io::Write;

/// The entity tag of a file, quotes included, stored inline: copying it allocates nothing. It is strong unless
/// [weakened](Self::weakened).
#[derive(Clone, Copy)]
pub struct ETag {
    bytes: [u8; Self::BYTES_MAX],
    len: u8,
}

impl ETag {
    /// Bytes of the longest tag: six numbers in hexadecimal, the dashes between them, a coding, quotes, the mark of weak
    /// tags.
    pub const BYTES_MAX: usize = 5 * 16 + 8 + 5 + 5 + 2 + 2;

    /// The tag of a file, from what changes when its bytes do: which file it is, its size, and when it was
    /// last written (seconds since 1970 and nanoseconds). Equal inputs give equal tags in every process, and
    /// different inputs different ones: nothing is hashed.
    pub fn of_file(device: u64, inode: u64, size: u64, modified: (i64, u32)) -> Self {
        let (seconds, nanoseconds) = modified;
        Self::write(format_args!("\"{device:x}-{inode:x}-{size:x}-{seconds:x}-{nanoseconds:x}\""))
    }

    /// The tag of the same file in a content coding: another representation, hence another strong tag, even
    /// where both are links to one file.
    #[must_use]
    pub fn in_coding(self, coding: Coding) -> Self {
        match coding {
            Coding::Identity => self,
            Coding::Gzip | Coding::Brotli | Coding::Zstd => {
                let opaque = String::from_utf8_lossy(&self.as_ref()[..usize::from(self.len) - 1]);
                Self::write(format_args!("{opaque}-{}\"", coding.token()))
            }
        }
    }

    /// The tag of the same file with other bytes, which this number tells from others.
    #[must_use]
    pub fn in_state(self, state: u64) -> Self {
        let opaque = String::from_utf8_lossy(&self.as_ref()[..usize::from(self.len) - 1]);
        Self::write(format_args!("{opaque}-{state:x}\""))
    }

    /// The tag of a representation that may have other bytes tomorrow, which mean the same.
    #[must_use]
    pub fn weakened(self) -> Self {
        match self.as_tag().is_weak {
            true => self,
            false => Self::write(format_args!("W/{}", String::from_utf8_lossy(self.as_ref()))),
        }
    }

    /// The same as a tag of a field.
    pub fn as_tag(&self) -> EntityTag<'_> {
        match self.as_ref() {
            [b'W', b'/', opaque @ ..] => EntityTag { is_weak: true, opaque },
            opaque => EntityTag { is_weak: false, opaque },
        }
    }

    fn write(text: fmt::Arguments<'_>) -> Self {
        let mut bytes = [0; Self::BYTES_MAX];
        let mut rest: &mut [u8] = &mut bytes;
        rest.write_fmt(text).expect("a tag is no longer than its longest parts");
        let len = Self::BYTES_MAX - rest.len();
        // At most BYTES_MAX, which fits.
        Self { bytes, len: len as u8 }
    }
}

impl AsRef<[u8]> for ETag {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl PartialEq for ETag {
    fn eq(&self, other: &Self) -> bool {
        self.as_ref() == other.as_ref()
    }
}

impl Eq for ETag {}

impl fmt::Debug for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ETag({})", String::from_utf8_lossy(self.as_ref()))
    }
}

/// An entity tag of any server, as it stands in a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntityTag<'a> {
    is_weak: bool,
    /// Quotes included.
    opaque: &'a [u8],
}

impl<'a> EntityTag<'a> {
    /// The tag at the beginning of `text`, and what follows it.
    pub fn parse(text: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (is_weak, quoted) = match text {
            [b'W', b'/', quoted @ ..] => (true, quoted),
            _ => (false, text),
        };
        let inner = quoted.strip_prefix(b"\"")?;
        // `etagc`: anything visible but a quote.
        let len = inner.iter().position(|byte| !matches!(byte, 0x21 | 0x23..=0x7e | 0x80..=0xff))?;
        if inner[len] != b'"' {
            return None;
        }
        let (opaque, rest) = quoted.split_at(len + 2);
        Some((Self { is_weak, opaque }, rest))
    }

    /// The tag that is the whole of `text`: the value of an ETag field.
    pub fn of_field(text: &'a [u8]) -> Option<Self> {
        Self::parse(text).filter(|(_, rest)| rest.is_empty()).map(|(tag, _)| tag)
    }

    /// Whether it is marked as weak: equal weak tags do not promise equal bytes.
    pub const fn is_weak(self) -> bool {
        self.is_weak
    }

    /// Weak comparison (RFC 9110 section 8.8.3.2).
    pub fn matches_weakly(self, other: EntityTag<'_>) -> bool {
        self.opaque == other.opaque
    }

    /// Strong comparison: a weak tag matches none.
    pub fn matches_strongly(self, other: EntityTag<'_>) -> bool {
        !self.is_weak && !other.is_weak && self.opaque == other.opaque
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_tells_apart_whatever_differs() {
        let tags = [
            ETag::of_file(1, 2, 3, (4, 5)),
            ETag::of_file(0, 2, 3, (4, 5)),
            ETag::of_file(1, 0, 3, (4, 5)),
            ETag::of_file(1, 2, 0, (4, 5)),
            ETag::of_file(1, 2, 3, (0, 5)),
            ETag::of_file(1, 2, 3, (-4, 5)),
            ETag::of_file(1, 2, 3, (4, 0)),
            ETag::of_file(0x12, 3, 4, (5, 0)),
            ETag::of_file(1, 0x23, 4, (5, 0)),
            ETag::of_file(1, 2, 3, (4, 5)).in_coding(Coding::Gzip),
            ETag::of_file(1, 2, 3, (4, 5)).in_coding(Coding::Brotli),
            ETag::of_file(1, 2, 3, (4, 5)).in_coding(Coding::Zstd),
        ];
        for (index, tag) in tags.iter().enumerate() {
            assert_eq!(tags.iter().position(|other| other == tag), Some(index));
            let parsed = EntityTag::of_field(tag.as_ref()).unwrap();
            assert!(parsed.matches_strongly(tag.as_tag()), "{tag:?}");
        }
        assert_eq!(ETag::of_file(1, 2, 3, (4, 5)), ETag::of_file(1, 2, 3, (4, 5)));
        assert_eq!(tags[0].in_coding(Coding::Identity), tags[0]);
    }

    #[test]
    fn the_longest_tag_fits() {
        let tag = ETag::of_file(u64::MAX, u64::MAX, u64::MAX, (-1, u32::MAX));
        let longest = tag.in_coding(Coding::Zstd).in_state(u64::MAX).weakened();
        assert_eq!(longest.as_ref().len(), ETag::BYTES_MAX);
    }

    #[test]
    fn a_weakened_tag_matches_weakly_alone() {
        let tag = ETag::of_file(1, 2, 3, (4, 5));
        let weak = tag.weakened();
        assert_eq!(weak.as_ref(), [b"W/", tag.as_ref()].concat());
        assert_eq!(weak, weak.weakened());
        assert!(weak.as_tag().is_weak() && weak.as_tag().matches_weakly(tag.as_tag()));
        assert!(!weak.as_tag().matches_strongly(weak.as_tag()));
    }

    #[test]
    fn malformed_tags_are_none() {
        for text in ["", "a", "\"", "\"a", "w/\"a\"", "W/", "W/a", "\"a b\"", "\"a\x7f\"", "*", "'a'"] {
            assert_eq!(EntityTag::parse(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(EntityTag::of_field(b"\"a\" "), None);
        let (tag, rest) = EntityTag::parse(b"W/\"a,b\", \"c\"").unwrap();
        assert_eq!((tag.is_weak, tag.opaque, rest), (true, &b"\"a,b\""[..], &b", \"c\""[..]));
    }
}

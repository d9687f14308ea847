//! Entity tags (RFC 9110 section 8.8.3).

use crate::Coding;
use std::fmt;
use std::io::Write;

/// The entity tag of a file or of a body, quotes included, stored inline: copying it allocates nothing. It is strong unless
/// [weakened](Self::weakened).
#[derive(Clone, Copy)]
pub struct ETag {
    bytes: [u8; Self::BYTES_MAX],
    len: u8,
}

impl ETag {
    /// Bytes of the longest tag: five numbers in hexadecimal, the dashes between them, a mark, a coding, quotes, the mark of
    /// weak tags.
    pub const BYTES_MAX: usize = 4 * 16 + 8 + 4 + 1 + 5 + 2 + 2;

    /// The tag of a representation by a digest of its bytes, which is the same on every server.
    pub fn of_digest(digest: u128) -> Self {
        Self::write(format_args!("\"{digest:032x}\""))
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

    /// The tag as it stands in a field.
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

/// What tells a state of a file from others, as far as the file system knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileState {
    /// Bytes.
    pub size: u64,
    /// When it was last written: seconds since 1970, and nanoseconds.
    pub modified: (i64, u32),
    /// When it or its attributes last changed, which only the kernel sets.
    pub changed: (i64, u32),
    /// Its number in the file system.
    pub inode: u64,
}

impl FileState {
    /// When it was last written, in seconds since 1970. `None`: it is not known. Tools that make reproducible images, packages and
    /// stores give all files one date, which says nothing of their contents.
    pub fn modified_unix_seconds(&self) -> Option<u64> {
        u64::try_from(self.modified.0).ok().filter(|seconds| *seconds >= FIRST_DATE_S && *seconds != BAZEL_S)
    }

    /// Its tag, which equal inputs give in every process. Nothing is hashed.
    ///
    /// A copy that keeps the date has the same tag, on every server and behind every mount. A file without a date has one that
    /// no other state of any file in its file system has.
    pub fn etag(&self) -> ETag {
        let Self { size, modified, changed, inode } = *self;
        match self.modified_unix_seconds() {
            Some(seconds) => ETag::write(format_args!("\"{size:x}-{seconds:x}-{:x}\"", modified.1)),
            None => ETag::write(format_args!("\"{size:x}-c{:x}-{:x}-{inode:x}\"", changed.0, changed.1)),
        }
    }
}

/// The first second of 1990: no file of the web is older. Those of Nix (1), Docker and Jib (0, 1), ZIP archives (1980) and npm
/// (1985) seem to be.
const FIRST_DATE_S: u64 = 631_152_000;

/// The first second of 2000, which Bazel gives all files.
const BAZEL_S: u64 = 946_684_800;

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

    const STATE: FileState =
        FileState { size: 3, modified: (1_700_000_000, 5), changed: (1_800_000_000, 6), inode: 2 };

    #[test]
    fn a_tag_tells_apart_whatever_differs() {
        let undated = FileState { modified: (1, 0), ..STATE };
        let tag = STATE.etag();
        let tags = [
            tag,
            FileState { size: 0, ..STATE }.etag(),
            FileState { modified: (1_700_000_001, 5), ..STATE }.etag(),
            FileState { modified: (1_700_000_000, 0), ..STATE }.etag(),
            undated.etag(),
            FileState { size: 0, ..undated }.etag(),
            FileState { inode: 3, ..undated }.etag(),
            FileState { changed: (1_800_000_001, 6), ..undated }.etag(),
            FileState { changed: (1_800_000_000, 7), ..undated }.etag(),
            FileState { changed: (-4, 7), ..undated }.etag(),
            tag.in_coding(Coding::Gzip),
            tag.in_coding(Coding::Brotli),
            tag.in_coding(Coding::Zstd),
        ];
        for (index, tag) in tags.iter().enumerate() {
            assert_eq!(tags.iter().position(|other| other == tag), Some(index));
            let parsed = EntityTag::of_field(tag.as_ref()).unwrap();
            assert!(parsed.matches_strongly(tag.as_tag()), "{tag:?}");
        }
        assert_eq!(tag.in_coding(Coding::Identity), tag);
    }

    /// Goal: a copy with its date has the tag of the original, on any server.
    #[test]
    fn a_tag_names_no_place() {
        assert_eq!(FileState { inode: 3, changed: (7, 8), ..STATE }.etag(), STATE.etag());
    }

    #[test]
    fn dates_of_all_files_are_none() {
        for (seconds, is_date) in [
            (-1, false),
            (0, false),
            (1, false),
            (499_162_500, false),
            (946_684_800, false),
            (946_684_801, true),
        ] {
            let state = FileState { modified: (seconds, 0), ..STATE };
            assert_eq!(state.modified_unix_seconds(), is_date.then_some(seconds as u64));
        }
    }

    #[test]
    fn the_longest_tag_fits() {
        let (least, most) = ((i64::MIN, u32::MAX), u64::MAX);
        let tag = FileState { size: most, modified: least, changed: (-1, u32::MAX), inode: most }.etag();
        let longest = tag.in_coding(Coding::Zstd).in_state(u64::MAX).weakened();
        assert_eq!(longest.as_ref().len(), ETag::BYTES_MAX);
    }

    #[test]
    fn a_weakened_tag_matches_weakly_alone() {
        let tag = STATE.etag();
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

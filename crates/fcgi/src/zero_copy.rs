//! `X-ZeroCopy`: files named inside a response body instead of copied into it (Suzumura et al., section on
//! the protocol between PHP and the server).
//!
//! ```text
//!   X-ZeroCopy: 5/10:20/10          hello/tmp/A.htmworld/tmp/B.htmbye
//!                                   0    5         15   20        30
//! ```
//!
//! Offset and length of each name, in bytes from the start of the body, from 0. (The paper prints 21 for the
//! second offset of this example, which counts wrongly, and separates by colons what its grammar separates by
//! commas: both are read, colons written.)

use crate::text::{parse_decimal, push_decimal, trim_blanks};

/// The most names in one response.
pub const NAMES_MAX: usize = 1024;

/// The longest name in bytes: `PATH_MAX`.
pub const NAME_BYTES_MAX: u64 = 4096;

/// Where a name stands in the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileName {
    /// Offset of its first byte.
    pub offset: u64,
    /// Its length in bytes: 1 to [`NAME_BYTES_MAX`].
    pub len: u64,
}

impl FileName {
    /// The offset behind its last byte.
    pub const fn end(self) -> u64 {
        self.offset + self.len
    }
}

/// Where the names are: at most [`NAMES_MAX`], in order, none overlapping another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameMap {
    names: Vec<FileName>,
}

impl NameMap {
    /// Reads the value of the field. `None` if it is no such map, or names nothing.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let mut map = Self::default();
        for pair in value.split(|byte| matches!(byte, b':' | b',')) {
            let pair = trim_blanks(pair);
            let slash = memchr::memchr(b'/', pair)?;
            let name =
                FileName { offset: parse_decimal(&pair[..slash])?, len: parse_decimal(&pair[slash + 1..])? };
            if !map.try_push(name) {
                return None;
            }
        }
        Some(map)
    }

    /// Adds a name behind the others. `false`, and nothing added, if it cannot stand there.
    pub fn try_push(&mut self, name: FileName) -> bool {
        let after = self.names.last().map_or(0, |last| last.end());
        let fits = self.names.len() < NAMES_MAX
            && name.offset >= after
            && (1..=NAME_BYTES_MAX).contains(&name.len)
            && name.offset.checked_add(name.len).is_some();
        if fits {
            self.names.push(name);
        }
        fits
    }

    /// Whether all names lie inside a body of this length in bytes.
    pub fn fits(&self, body_len: u64) -> bool {
        self.names.last().is_none_or(|last| last.end() <= body_len)
    }

    /// The names in order.
    pub fn names(&self) -> &[FileName] {
        &self.names
    }

    /// Appends the value of the field.
    pub fn push(&self, out: &mut Vec<u8>) {
        for (index, name) in self.names.iter().enumerate() {
            if index > 0 {
                out.push(b':');
            }
            push_decimal(out, name.offset);
            out.push(b'/');
            push_decimal(out, name.len);
        }
    }
}

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

use baton_http::{parse_decimal, push_decimal};

use crate::text::trim_blanks;

/// The most names in one response.
pub const NAMES_MAX: usize = 1024;

/// The longest name in bytes: `PATH_MAX`.
pub const NAME_BYTES_MAX: u64 = 4096;

/// The position of a name in the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileName {
    /// Offset of its first byte.
    pub offset: u64,
    /// Its length in bytes: 1 to [`NAME_BYTES_MAX`].
    pub len: u64,
}

impl FileName {
    /// The offset after its last byte.
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

    /// Adds a name after the others. `false`, and nothing added, if it precedes or overlaps them, is too long, or is one too many.
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

    /// Whether all names are within a body of this length in bytes.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn names(value: &str) -> Option<Vec<(u64, u64)>> {
        let map = NameMap::parse(value.as_bytes())?;
        Some(map.names().iter().map(|name| (name.offset, name.len)).collect())
    }

    #[test]
    fn the_example_of_the_paper_names_its_files() {
        let body = b"hello/tmp/A.htmworld/tmp/B.htmbye";
        let map = NameMap::parse(b"5/10:20/10").unwrap();
        assert!(map.fits(body.len() as u64));
        let named: Vec<_> =
            map.names().iter().map(|name| &body[name.offset as usize..name.end() as usize]).collect();
        assert_eq!(named, [b"/tmp/A.htm", b"/tmp/B.htm"]);
        let mut again = Vec::new();
        map.push(&mut again);
        assert_eq!(again, b"5/10:20/10");
    }

    #[test]
    fn both_separators_are_read() {
        for value in ["5/10:20/10", "5/10,20/10", "5/10, 20/10", " 5/10 :\t20/10 "] {
            assert_eq!(names(value), Some(vec![(5, 10), (20, 10)]), "{value:?}");
        }
        assert_eq!(names("0/1:1/1,9/4096").unwrap().len(), 3, "names may touch");
    }

    #[test]
    fn maps_that_make_no_sense_are_refused() {
        for value in [
            "",
            ":",
            "5/10:",
            "5/10::20/10",
            "5",
            "5/",
            "/10",
            "5/10/2",
            "+5/10",
            "-5/10",
            "5/0",
            "0/4097",
            "5/10:14/1",
            "20/10:5/10",
            "18446744073709551615/1",
            "18446744073709551616/1",
            "5 /10",
        ] {
            assert_eq!(names(value), None, "{value:?}");
        }
    }

    #[test]
    fn maps_are_bounded() {
        let of_count = |count: usize| (0..count).map(|at| format!("{at}/1")).collect::<Vec<_>>().join(":");
        assert_eq!(names(&of_count(NAMES_MAX)).map(|names| names.len()), Some(NAMES_MAX));
        assert_eq!(names(&of_count(NAMES_MAX + 1)), None);
    }

    #[test]
    fn names_fit_into_bodies_that_hold_all_of_them() {
        let map = NameMap::parse(b"5/10:20/10").unwrap();
        assert!(map.fits(30) && !map.fits(29) && !map.fits(0));
        assert!(NameMap::default().fits(0));
    }
}

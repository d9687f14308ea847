//! From the path of a request to a relative path within a tree.

use std::fmt;

/// Why a path names nothing that could be served. All of them deserve 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathRefusal {
    /// It does not begin with `/`.
    NotAbsolute,
    /// A `%` that two hexadecimal digits do not follow.
    MalformedEscape,
    /// A separator in disguise: `%2F`, or a backslash, raw or encoded, which some systems and clients take
    /// for one.
    Separator,
    /// A NUL or another control character, raw or encoded.
    Control,
    /// `..` above the root.
    AboveRoot,
}

impl PathRefusal {
    /// One word for logs and metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::NotAbsolute => "path-not-absolute",
            Self::MalformedEscape => "path-malformed-escape",
            Self::Separator => "path-encoded-separator",
            Self::Control => "path-control-character",
            Self::AboveRoot => "path-above-root",
        }
    }
}

impl fmt::Display for PathRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAbsolute => "the path does not begin with a slash",
            Self::MalformedEscape => "the path has a % that two hexadecimal digits do not follow",
            Self::Separator => "the path has an encoded slash or a backslash",
            Self::Control => "the path has a control character",
            Self::AboveRoot => "the path leads above the root",
        })
    }
}

impl std::error::Error for PathRefusal {}

/// Turns the raw path of a request into a path relative to a root: decodes percent escapes, once; removes
/// `.` and resolves `..`, encoded or not; joins slashes that follow each other. `out` is replaced: no slash
/// in front, one at the end if the path names a directory, empty for the root itself. Its bytes need not be
/// UTF-8.
///
/// What is decoded is never decoded again: `%2541` is the name `%41`.
///
/// # Errors
/// The reason why the path can name nothing; `out` is empty then.
pub fn decode_path(raw: &[u8], out: &mut Vec<u8>) -> Result<(), PathRefusal> {
    out.clear();
    let outcome = resolve(raw, out);
    if outcome.is_err() {
        out.clear();
    }
    outcome
}

fn resolve(raw: &[u8], out: &mut Vec<u8>) -> Result<(), PathRefusal> {
    let [b'/', segments @ ..] = raw else {
        return Err(PathRefusal::NotAbsolute);
    };
    // What is in `out` before a segment is a directory: empty, or ending with a slash.
    for (index, segment) in segments.split(|byte| *byte == b'/').enumerate() {
        if index > 0 && !matches!(out.last(), None | Some(b'/')) {
            out.push(b'/');
        }
        let start = out.len();
        decode_segment(segment, out)?;
        match &out[start..] {
            b"." => out.truncate(start),
            b".." => {
                let parent_end = start.checked_sub(1).ok_or(PathRefusal::AboveRoot)?;
                out.truncate(memchr::memrchr(b'/', &out[..parent_end]).map_or(0, |slash| slash + 1));
            }
            _ => {}
        }
    }
    Ok(())
}

fn decode_segment(raw: &[u8], out: &mut Vec<u8>) -> Result<(), PathRefusal> {
    let mut rest = raw;
    while let [byte, tail @ ..] = rest {
        let decoded = match (byte, tail) {
            (b'%', [high, low, tail @ ..]) => {
                rest = tail;
                hex_digit(*high)? << 4 | hex_digit(*low)?
            }
            (b'%', _) => return Err(PathRefusal::MalformedEscape),
            (byte, tail) => {
                rest = tail;
                *byte
            }
        };
        match decoded {
            b'/' | b'\\' => return Err(PathRefusal::Separator),
            0..=0x1f | 0x7f => return Err(PathRefusal::Control),
            _ => out.push(decoded),
        }
    }
    Ok(())
}

fn hex_digit(byte: u8) -> Result<u8, PathRefusal> {
    match byte {
        b'0'..=b'9' => Ok(byte - b'0'),
        b'a'..=b'f' => Ok(byte - b'a' + 10),
        b'A'..=b'F' => Ok(byte - b'A' + 10),
        _ => Err(PathRefusal::MalformedEscape),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(raw: &[u8]) -> Result<Vec<u8>, PathRefusal> {
        let mut out = b"left over".to_vec();
        let outcome = decode_path(raw, &mut out);
        assert!(outcome.is_ok() || out.is_empty());
        outcome.map(|()| out)
    }

    #[test]
    fn paths_become_relative_decoded_and_plain() {
        for (raw, expected) in [
            ("/", ""),
            ("//", ""),
            ("/index.html", "index.html"),
            ("/a/b/", "a/b/"),
            ("//a///b//", "a/b/"),
            ("/a%20b/%C3%A9", "a b/é"),
            ("/%2541", "%41"),
            ("/a/./b", "a/b"),
            ("/a/b/.", "a/b/"),
            ("/a/b/..", "a/"),
            ("/a/b/../", "a/"),
            ("/a/../b", "b"),
            ("/a/..", ""),
            ("/a//../b", "b"),
            ("/a/%2e%2E/b", "b"),
            ("/%2e/b", "b"),
            ("/.", ""),
            ("/...", "..."),
            ("/.../x", ".../x"),
            ("/..a/.b", "..a/.b"),
            ("/a/b/c/../../d", "a/d"),
            ("/a?b", "a?b"),
            ("/%3f%23", "?#"),
        ] {
            assert_eq!(decode(raw.as_bytes()), Ok(expected.as_bytes().to_vec()), "{raw}");
        }
        assert_eq!(decode(b"/%ff"), Ok(vec![0xff]), "names are bytes");
    }

    #[test]
    fn paths_that_could_deceive_are_refused() {
        for (raw, refusal) in [
            ("", PathRefusal::NotAbsolute),
            ("*", PathRefusal::NotAbsolute),
            ("a/b", PathRefusal::NotAbsolute),
            ("%2Fa", PathRefusal::NotAbsolute),
            ("/..", PathRefusal::AboveRoot),
            ("/a/../..", PathRefusal::AboveRoot),
            ("/a/../../a", PathRefusal::AboveRoot),
            ("/%2e%2e/etc", PathRefusal::AboveRoot),
            ("/.%2E/etc", PathRefusal::AboveRoot),
            ("/./../etc", PathRefusal::AboveRoot),
            ("/a%2Fb", PathRefusal::Separator),
            ("/a%2fb", PathRefusal::Separator),
            ("/..%2f", PathRefusal::Separator),
            ("/a%5Cb", PathRefusal::Separator),
            ("/..\\..", PathRefusal::Separator),
            ("/a%00.html", PathRefusal::Control),
            ("/a\0", PathRefusal::Control),
            ("/a%0d%0aSet-Cookie:x", PathRefusal::Control),
            ("/a%7F", PathRefusal::Control),
            ("/%", PathRefusal::MalformedEscape),
            ("/%2", PathRefusal::MalformedEscape),
            ("/%2/e", PathRefusal::MalformedEscape),
            ("/%zz", PathRefusal::MalformedEscape),
            ("/%+1", PathRefusal::MalformedEscape),
            ("/%u002f", PathRefusal::MalformedEscape),
        ] {
            assert_eq!(decode(raw.as_bytes()), Err(refusal), "{raw}");
        }
    }

    proptest! {
        #[test]
        fn what_is_decoded_stays_below_the_root(raw in "/(\\.|/|a|%2e|%2E|%41|%25|%2f|%|\\.\\.){0,24}") {
            if let Ok(path) = decode(raw.as_bytes()) {
                prop_assert!(!path.starts_with(b"/"));
                let segments: Vec<_> = path.split(|byte| *byte == b'/').collect();
                let (last, before) = segments.split_last().unwrap();
                prop_assert!(before.iter().all(|segment| !segment.is_empty()), "no empty names");
                prop_assert!(segments.iter().all(|segment| *segment != b"." && *segment != b".."));
                let names_directory = path.is_empty() || last.is_empty();
                prop_assert!(names_directory || !raw.ends_with('/'));
            }
        }

        #[test]
        fn a_plain_name_survives_escaping(name in proptest::collection::vec(0x20u8..=0xff, 1..20)) {
            prop_assume!(!name.iter().any(|byte| matches!(byte, b'/' | b'\\' | 0x7f)));
            prop_assume!(name != b"." && name != b"..");
            let escaped: String = name.iter().map(|byte| format!("%{byte:02X}")).collect();
            prop_assert_eq!(decode(format!("/{escaped}").as_bytes()), Ok(name));
        }
    }
}

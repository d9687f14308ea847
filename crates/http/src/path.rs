//! From the path of a request to a relative path within a tree.

crate::reasons! {
    /// Why a path names nothing that could be served. All of them deserve 400.
    PathRefusal {
        /// The path does not begin with `/`.
        NotAbsolute => "path-not-absolute",
            "the path does not begin with a slash";
        /// A `%` that two hexadecimal digits do not follow.
        MalformedEscape => "path-malformed-escape",
            "the path has a % that two hexadecimal digits do not follow";
        /// A separator in disguise: `%2F`, or a backslash, raw or encoded, which some systems and clients take
        /// for one.
        Separator => "path-encoded-separator",
            "the path has an encoded slash or a backslash";
        /// A NUL or another control character, raw or encoded.
        Control => "path-control-character",
            "the path has a control character";
        /// `..` above the root.
        AboveRoot => "path-above-root",
            "the path leads above the root";
        /// `.` or `..` beside an encoded separator: decoding before resolving and resolving before decoding give
        /// different paths.
        Ambiguous => "path-ambiguous",
            "the path has `.` or `..` beside an encoded slash or a backslash";
    }
}

/// Turns the raw path of a request into the name of a file below a root: decodes percent escapes, once; removes
/// `.` and resolves `..`, encoded or not; joins slashes that follow each other. `out` is replaced: no slash
/// in front, one at the end if the path names a directory, empty for the root itself. Its bytes need not be
/// UTF-8.
///
/// Nothing is decoded twice: `%2541` is the name `%41`.
///
/// # Errors
/// The reason why the path can name nothing; `out` is empty then.
pub fn decode_path(raw: &[u8], out: &mut Vec<u8>) -> Result<(), PathRefusal> {
    decode(raw, out, Reader::FileSystem).map(drop)
}

/// Like [`decode_path`], for a path that need not name a file: it selects the route, and applications receive it. It
/// may contain encoded slashes, which become slashes, backslashes, and control characters except NUL. Only literal
/// slashes are joined.
///
/// Returns the position in `out` of the first byte that no file name may have. Without one, the result is that of
/// [`decode_path`].
///
/// # Errors
/// The reason why the path is invalid or ambiguous; `out` is empty then.
pub fn decode_any_path(raw: &[u8], out: &mut Vec<u8>) -> Result<usize, PathRefusal> {
    decode(raw, out, Reader::Application)
}

/// The recipient of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    FileSystem,
    Application,
}

fn decode(raw: &[u8], out: &mut Vec<u8>, reader: Reader) -> Result<usize, PathRefusal> {
    out.clear();
    let mut decoding = Decoding { out, reader, plain_len: usize::MAX, has_separator: false };
    let outcome = decoding.path(raw);
    let plain_len = decoding.plain_len.min(out.len());
    if outcome.is_err() {
        out.clear();
    }
    outcome.map(|()| plain_len)
}

struct Decoding<'a> {
    out: &'a mut Vec<u8>,
    reader: Reader,
    /// Where in `out` the first byte is that no name may have.
    plain_len: usize,
    /// Whether one of these is a separator in disguise.
    has_separator: bool,
}

impl Decoding<'_> {
    fn path(&mut self, raw: &[u8]) -> Result<(), PathRefusal> {
        let [b'/', segments @ ..] = raw else {
            return Err(PathRefusal::NotAbsolute);
        };
        // `out` before a segment is a directory: empty, or ending with a slash.
        let (mut start, mut has_dots) = (0, false);
        for segment in segments.split(|byte| *byte == b'/') {
            if self.out.len() > start {
                self.out.push(b'/');
                start = self.out.len();
            }
            let separators_before = std::mem::take(&mut self.has_separator);
            self.segment(segment)?;
            match &self.out[start..] {
                b"." => has_dots = true,
                b".." => {
                    has_dots = true;
                    let parent_end = start.checked_sub(1).ok_or(PathRefusal::AboveRoot)?;
                    start = memchr::memrchr(b'/', &self.out[..parent_end]).map_or(0, |slash| slash + 1);
                }
                parts => {
                    let mut parts = parts.split(|byte| matches!(byte, b'/' | b'\\'));
                    has_dots |= self.has_separator && parts.any(|part| part == b"." || part == b"..");
                    self.has_separator |= separators_before;
                    continue;
                }
            }
            self.out.truncate(start);
            self.has_separator |= separators_before;
            if self.plain_len >= start {
                self.plain_len = usize::MAX;
            }
        }
        if has_dots && self.has_separator { Err(PathRefusal::Ambiguous) } else { Ok(()) }
    }

    fn segment(&mut self, raw: &[u8]) -> Result<(), PathRefusal> {
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
                b'/' | b'\\' => {
                    self.unusual(PathRefusal::Separator)?;
                    self.has_separator = true;
                }
                0 => return Err(PathRefusal::Control),
                ..=0x1f | 0x7f => self.unusual(PathRefusal::Control)?,
                _ => {}
            }
            self.out.push(decoded);
        }
        Ok(())
    }

    /// The next byte is one that no name may have.
    fn unusual(&mut self, refusal: PathRefusal) -> Result<(), PathRefusal> {
        if self.reader == Reader::FileSystem {
            return Err(refusal);
        }
        self.plain_len = self.plain_len.min(self.out.len());
        Ok(())
    }
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

    fn decode_any(raw: &[u8]) -> Result<(Vec<u8>, usize), PathRefusal> {
        let mut out = b"left over".to_vec();
        let outcome = decode_any_path(raw, &mut out);
        assert!(outcome.is_ok() || out.is_empty());
        outcome.map(|plain_len| (out, plain_len))
    }

    #[test]
    fn an_application_has_the_path_decoded_once() {
        for (raw, decoded, plain_len) in [
            ("/page/Main%2FSub", "page/Main/Sub", 9),
            ("/@scope%2fname", "@scope/name", 6),
            ("/a%5Cb/c", "a\\b/c", 1),
            ("/a\\b", "a\\b", 1),
            ("/a%0Ab%7f", "a\nb\x7f", 1),
            ("/a%252Fb", "a%2Fb", 5),
            ("/http:%2F%2Fh%2F/x", "http://h//x", 5),
            ("//a///b%2F%2F", "a/b//", 3),
            ("/%2Fa", "/a", 0),
            ("/a/%2F", "a//", 2),
            ("/a%0A/../bcd", "bcd", 3),
            ("/a%0A/../b%0Ad", "b\nd", 1),
            ("/a%2F...", "a/...", 1),
        ] {
            let expected = (decoded.as_bytes().to_vec(), plain_len);
            assert_eq!(decode_any(raw.as_bytes()), Ok(expected), "{raw}");
        }
    }

    #[test]
    fn an_application_has_no_path_that_can_be_read_in_two_ways() {
        for (raw, refusal) in [
            ("/x%2F..%2Fadmin/", PathRefusal::Ambiguous),
            ("/x%2F../admin", PathRefusal::Ambiguous),
            ("/x%2fy/../admin", PathRefusal::Ambiguous),
            ("/../x%2Fy", PathRefusal::AboveRoot),
            ("/..%2Fadmin", PathRefusal::Ambiguous),
            ("/%2e%2e%2Fadmin", PathRefusal::Ambiguous),
            ("/x/..%5Cadmin", PathRefusal::Ambiguous),
            ("/x\\..\\admin", PathRefusal::Ambiguous),
            ("/./a%2Fb", PathRefusal::Ambiguous),
            ("/a%2Fb/.", PathRefusal::Ambiguous),
            ("/a%2F.", PathRefusal::Ambiguous),
            ("/a%2F./b", PathRefusal::Ambiguous),
            ("/a%00", PathRefusal::Control),
            ("/a%2F%00", PathRefusal::Control),
            ("/a%2F%", PathRefusal::MalformedEscape),
            ("/a/../..", PathRefusal::AboveRoot),
            ("a%2Fb", PathRefusal::NotAbsolute),
        ] {
            assert_eq!(decode_any(raw.as_bytes()), Err(refusal), "{raw}");
        }
    }

    proptest! {
        /// Both readers accept a name that a file could have; any other name only one of them.
        #[test]
        fn readers_differ_only_in_names_that_no_file_has(
            raw in "/(\\.|/|a|%2e|%41|%25|%2f|%5C|%0a|\\.\\.){0,12}"
        ) {
            let (strict, any) = (decode(raw.as_bytes()), decode_any(raw.as_bytes()));
            match (strict, any) {
                (Ok(name), any) => prop_assert_eq!(any, Ok((name.clone(), name.len()))),
                (Err(PathRefusal::Separator | PathRefusal::Control), Ok((path, plain_len))) => {
                    let unusual = |byte: &u8| byte.is_ascii_control() || *byte == b'\\';
                    prop_assert!(!path[..plain_len].iter().any(unusual));
                    let mut parts = path.split(|byte| matches!(byte, b'/' | b'\\'));
                    prop_assert!(!parts.any(|part| part == b"." || part == b".."));
                }
                (Err(_), any) => prop_assert!(any.is_err()),
            }
        }

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

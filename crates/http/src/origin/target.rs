//! The target that an origin is asked for: the path that was routed, in the client's spelling.
//!
//! Routes match the decoded path, without `.` and `..` (`decode_any_path`). An origin that resolves those itself, in its
//! own way, could answer for a path that another route guards. So dot segments are resolved here, too; everything else
//! goes on as it was sent, because `%2F` or `//` may mean something to the origin.

use crate::PathRefusal;

/// Which part of a path another one replaces. By default none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathRule {
    /// Decoded, with no slash at either end: the beginning of each path, which the origin does not see. Empty for none.
    pub strip: Vec<u8>,
    /// What the origin sees in its place: a path as a URI has it, with a slash in front and none at its end, or empty.
    pub base: String,
}

impl PathRule {
    /// Appends path and query, as a URI. `path`: the raw path of a request, which was routed, or `*`.
    ///
    /// # Errors
    /// The path cannot be divided where the route ends.
    pub fn push_target(
        &self,
        out: &mut Vec<u8>,
        path: &[u8],
        query: Option<&[u8]>,
    ) -> Result<(), PathRefusal> {
        if path == b"*" {
            out.push(b'*');
            return Ok(());
        }
        let resolved;
        let path = if has_dot_segment(path) {
            resolved = resolve(path)?;
            &resolved
        } else {
            path
        };
        let rest = skip_prefix(path, &self.strip)?;
        out.extend_from_slice(self.base.as_bytes());
        if rest.is_empty() && self.base.is_empty() {
            out.push(b'/');
        }
        push_uri(out, rest);
        if let Some(query) = query {
            out.push(b'?');
            push_uri(out, query);
        }
        Ok(())
    }
}

/// Appends text of a target. Bytes that no URI has are percent-encoded: those above 0x7f, and the backslash, which some
/// origins take for a slash.
fn push_uri(out: &mut Vec<u8>, text: &[u8]) {
    for byte in text {
        if byte.is_ascii() && *byte != b'\\' {
            out.push(*byte);
        } else {
            let digit = |value: u8| b"0123456789ABCDEF"[usize::from(value)];
            out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 0xf)]);
        }
    }
}

fn has_dot_segment(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').any(|segment| dots_in(segment) > 0)
}

/// 1 for `.`, 2 for `..`, in any spelling; 0 for every other segment.
fn dots_in(segment: &[u8]) -> usize {
    let mut rest = segment;
    for dots in 0..=2 {
        rest = match rest {
            [] => return dots,
            [b'.', rest @ ..] | [b'%', b'2', b'e' | b'E', rest @ ..] => rest,
            _ => return 0,
        };
    }
    0
}

/// The path without dot segments; slashes that follow each other are joined first, as routes do.
fn resolve(path: &[u8]) -> Result<Vec<u8>, PathRefusal> {
    let segments = path.strip_prefix(b"/").ok_or(PathRefusal::NotAbsolute)?;
    let mut out = Vec::with_capacity(path.len());
    out.push(b'/');
    // `out` before a segment ends with a slash.
    let mut start = out.len();
    for segment in segments.split(|byte| *byte == b'/') {
        if out.len() > start {
            out.push(b'/');
            start = out.len();
        }
        match dots_in(segment) {
            0 => out.extend_from_slice(segment),
            1 => {}
            _ => {
                let parent = out[..start - 1].iter().rposition(|byte| *byte == b'/');
                start = parent.ok_or(PathRefusal::AboveRoot)? + 1;
                out.truncate(start);
            }
        }
    }
    Ok(out)
}

/// What follows a decoded prefix in a raw path: empty, or with a slash in front.
fn skip_prefix<'a>(path: &'a [u8], prefix: &[u8]) -> Result<&'a [u8], PathRefusal> {
    if prefix.is_empty() {
        return Ok(path);
    }
    let mut rest = skip_slashes(path);
    for expected in prefix {
        let (byte, tail) = match rest {
            [b'%', high, low, tail @ ..] => {
                let digits = [*high, *low];
                let byte = std::str::from_utf8(&digits).ok().and_then(|hex| u8::from_str_radix(hex, 16).ok());
                (byte.ok_or(PathRefusal::MalformedEscape)?, tail)
            }
            [b'/', ..] => (b'/', skip_slashes(rest)),
            [byte, tail @ ..] => (*byte, tail),
            [] => return Err(PathRefusal::Ambiguous),
        };
        if byte != *expected {
            return Err(PathRefusal::Ambiguous);
        }
        rest = tail;
    }
    match rest {
        [] | [b'/', ..] => Ok(rest),
        // The route ends before an encoded slash: without it the rest would be another path.
        _ => Err(PathRefusal::Separator),
    }
}

fn skip_slashes(path: &[u8]) -> &[u8] {
    let len = path.iter().take_while(|byte| **byte == b'/').count();
    &path[len..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode_any_path;
    use proptest::prelude::*;

    fn target(strip: &str, base: &str, path: &[u8], query: Option<&str>) -> Result<String, PathRefusal> {
        let rule = PathRule { strip: strip.into(), base: base.into() };
        let mut out = Vec::new();
        rule.push_target(&mut out, path, query.map(str::as_bytes))?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_path_goes_on_as_it_was_spelt() {
        for (path, query, expected) in [
            ("/", None, "/"),
            ("/a%20b;c=d//e%2Ff", Some("g=h?/../i"), "/a%20b;c=d//e%2Ff?g=h?/../i"),
            ("/a", Some(""), "/a?"),
            ("/%C3%A4/\u{e4}", Some("\u{e4}"), "/%C3%A4/%C3%A4?%C3%A4"),
            ("/\\evil.example/", None, "/%5Cevil.example/"),
            ("/a/./b/../c", None, "/a/c"),
            ("/a/b/%2e%2E/.%2e/c", None, "/c"),
            ("/a/..", None, "/"),
            ("/a//../b/.", None, "/b/"),
            ("/...", None, "/..."),
            ("*", None, "*"),
        ] {
            assert_eq!(target("", "", path.as_bytes(), query).as_deref(), Ok(expected), "{path}");
        }
        assert_eq!(target("", "", b"/a/../../b", None), Err(PathRefusal::AboveRoot));
    }

    #[test]
    fn a_prefix_is_replaced_however_it_is_spelt() {
        for (strip, base, path, expected) in [
            ("app", "", "/app", "/"),
            ("app", "", "/app/", "/"),
            ("app", "", "/app/x%2Fy", "/x%2Fy"),
            ("app", "/base", "/app", "/base"),
            ("app", "/base", "/%61pp//x", "/base//x"),
            ("a/b", "/c/d", "//a///b/x", "/c/d/x"),
            ("a/b", "/c", "/x/../a%2Fb/y", "/c/y"),
            ("caf\u{e9}", "/c", "/caf%C3%A9/x", "/c/x"),
            ("", "/base", "/x", "/base/x"),
        ] {
            assert_eq!(target(strip, base, path.as_bytes(), None).as_deref(), Ok(expected), "{path}");
        }
        assert_eq!(target("app", "", b"/app%2Fx", None), Err(PathRefusal::Separator));
        assert_eq!(target("app", "", b"/other", None), Err(PathRefusal::Ambiguous));
    }

    proptest! {
        /// The origin sees the path that was routed, without dots to resolve, and no other one if it is asked again.
        #[test]
        fn the_origin_is_asked_for_the_path_that_was_routed(
            path in prop::collection::vec(
                prop_oneof![
                    Just("/"), Just("."), Just(".."), Just("%2e"), Just("%2F"), Just("a"), Just("%61"), Just("\\"),
                    Just("\u{e9}"), Just("%"), Just("%5c")
                ],
                0..12,
            ),
        ) {
            let path = format!("/{}", path.concat());
            let mut routed = Vec::new();
            prop_assume!(decode_any_path(path.as_bytes(), &mut routed).is_ok());
            let forwarded = target("", "", path.as_bytes(), None).unwrap();
            let mut again = Vec::new();
            prop_assert!(decode_any_path(forwarded.as_bytes(), &mut again).is_ok());
            prop_assert_eq!(again, routed);
            prop_assert!(!has_dot_segment(forwarded.as_bytes()));
            prop_assert!(forwarded.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\'));
            prop_assert_eq!(target("", "", forwarded.as_bytes(), None), Ok(forwarded));
        }
    }
}

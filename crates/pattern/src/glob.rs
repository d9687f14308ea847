//! Globs as regular expressions.

use std::fmt::Write as _;

/// The regular expression on bytes that matches the paths of a glob. Each `*` and `**` is a group.
///
/// # Errors
/// Why it is no glob, or matches no path.
pub(super) fn to_regex(text: &str) -> Result<String, String> {
    let mut regex = String::from(if text.starts_with('/') { "^" } else { "/" });
    if text.is_empty() {
        return Err("it is empty".into());
    }
    if text.split('/').enumerate().any(|(index, segment)| match segment {
        "" => index > 0 && index + 1 < text.split('/').count(),
        "." | ".." => true,
        _ => false,
    }) {
        return Err("paths of requests have no empty segments, nor `.` and `..`".into());
    }
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let (part, length) = match character {
            // With the slashes at both sides, or with one of them.
            '/' if rest.starts_with("/**/") => ("/(?:(.*)/)?".to_owned(), "/**/".len()),
            '*' if rest.starts_with("**/") && rest.len() == text.len() => ("(?:(.*)/)?".into(), "**/".len()),
            '*' if rest.starts_with("**") => ("(.*)".into(), "**".len()),
            '*' => ("([^/]*)".into(), 1),
            '?' => (format!(r"(?:[\x00-\x2e\x30-\x7f]|{BEYOND_ASCII})"), 1),
            '[' => class(rest)?,
            ']' | '{' | '}' | '^' | '|' | '\\' => {
                return Err(format!("a `{character}` that is meant is `[{character}]` or encoded"));
            }
            '%' => encoded(rest)?,
            other => (regex_syntax::escape(&other.to_string()), other.len_utf8()),
        };
        regex.push_str(&part);
        rest = &rest[length..];
    }
    regex.push('$');
    Ok(regex)
}

/// A character of several bytes, or a byte that belongs to none.
const BEYOND_ASCII: &str = r"[\xc0-\xff][\x80-\xbf]+|[\x80-\xff]";

/// A set of characters, and how long its text is.
fn class(text: &str) -> Result<(String, usize), String> {
    let is_negated = matches!(text.as_bytes().get(1), Some(b'!' | b'^'));
    let first = 1 + usize::from(is_negated);
    // A bracket at the beginning is one of the set.
    let from = first + usize::from(text[first..].starts_with(']'));
    let end = text[from..].find(']').map(|at| from + at).ok_or("its `[` has no `]`")?;
    let members = &text.as_bytes()[first..end];
    if !members.is_ascii() {
        return Err("only ASCII characters may stand in `[…]`".into());
    }
    let mut set = String::new();
    let mut at = 0;
    while let Some(member) = members.get(at) {
        let last = members.get(at + 2).filter(|_| members[at + 1] == b'-');
        if *member == b'/' || last.is_some_and(|last| last < member) {
            let range = last.map_or(1, |_| 3);
            let range = String::from_utf8_lossy(&members[at..at + range]);
            return Err(format!("`{range}` in `[…]` is no character of a segment"));
        }
        // Writing to a string cannot fail.
        let _ = write!(set, "\\x{member:02x}-\\x{:02x}", last.unwrap_or(member));
        at += last.map_or(1, |_| 3);
    }
    let class = match is_negated {
        true => format!("(?:[^/{set}\\x80-\\xff]|{BEYOND_ASCII})"),
        // A range may pass the slash, which stays the border of segments.
        false => format!("[[{set}]--[/]]"),
    };
    Ok((class, end + 1))
}

/// A byte that is written as in a URL.
fn encoded(text: &str) -> Result<(String, usize), String> {
    let digits = text.get(1..3).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
    let digits =
        digits.ok_or("a `%` must be followed by two hexadecimal digits; `%25` is the sign itself")?;
    Ok((format!("\\x{digits}"), "%00".len()))
}

#[cfg(test)]
mod tests {
    use crate::Pattern;

    #[test]
    fn a_glob_matches_what_shells_and_gitignore_mean() {
        for (glob, matching, others) in [
            ("/a/*", &["/a/b", "/a/", "/a/b.c"][..], &["/a", "/a/b/c", "/x/a/b"][..]),
            ("/a/**", &["/a/", "/a/b", "/a/b/c"], &["/a", "/b/a/"]),
            ("/a/**/z", &["/a/z", "/a/b/z", "/a/b/c/z"], &["/a/bz", "/az", "/a/b/z/c"]),
            ("*.php", &["/a.php", "/x/y/a.php", "/.php"], &["/a.php/", "/a.php.x", "/a.PHP", "/aphp"]),
            ("**/.git/**", &["/.git/", "/x/.git/config"], &["/.gitignore", "/x.git/config"]),
            ("wp-*/x", &["/wp-a/x", "/s/wp-b/x"], &["/wp/x", "/awp-a/x"]),
            ("/a?c", &["/abc", "/a.c", "/aéc"], &["/ac", "/a/c", "/abbc"]),
            ("/[a-cx].[!0-9]", &["/a.b", "/x.-", "/b.é"], &["/d.b", "/a.1", "/a./", "/a.bb"]),
            ("/[]+-9]", &["/]", "/+", "/9"], &["//", "/:", "/a"]),
            ("/%2A%25 b", &["/*% b"], &["/x% b"]),
            ("/a.b+(c)$", &["/a.b+(c)$"], &["/aXb+(c)$"]),
            ("/é*", &["/é", "/éx"], &["/e"]),
        ] {
            let pattern = Pattern::glob(glob).unwrap_or_else(|error| panic!("{glob}: {error}"));
            for path in matching {
                assert!(pattern.matches(path.as_bytes()), "{glob} {path}");
            }
            for path in others {
                assert!(!pattern.matches(path.as_bytes()), "{glob} {path}");
            }
        }
        assert!(Pattern::glob("/s/**").unwrap().matches(b"/s/a\n\xff"));
        assert!(Pattern::glob("/?").unwrap().matches(b"/\xff"));
        let pattern = Pattern::glob("/*/x/**/y*").unwrap();
        let captures = pattern.captures(b"/a/x/b/c/yd").unwrap();
        assert_eq!([&captures[1], &captures[2], &captures[3]], [&b"a"[..], b"b/c", b"d"]);
    }

    #[test]
    fn what_is_no_glob_says_why() {
        for (glob, why) in [
            ("", "empty"),
            ("/a//b", "empty segments"),
            ("/a/../b", "`..`"),
            ("/./a", "`.`"),
            ("/[a", "no `]`"),
            ("/[b-a]", "`b-a`"),
            ("/[a/]", "`/`"),
            ("/[é]", "ASCII"),
            ("/{a,b}", "`{`"),
            ("/a%2", "hexadecimal"),
            ("/a%é", "hexadecimal"),
        ] {
            let told = Pattern::glob(glob).unwrap_err().to_string();
            assert!(told.contains(why), "{glob}: {told}");
        }
    }
}

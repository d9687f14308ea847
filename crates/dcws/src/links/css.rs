//! `url(…)` in style sheets (CSS Syntax, section 4.3): where each stands, and whether its property takes it from any origin.

use std::ops::Range;

use super::link::Use;
use super::tag::is_space;

/// A `url(…)`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Url {
    /// The address, without quotes.
    pub(super) place: Range<usize>,
    pub(super) used: Use,
}

/// All addresses in `url(…)` that have no escapes. What is in comments and strings is none.
pub(super) fn urls(text: &[u8]) -> Vec<Url> {
    let mut found = Vec::new();
    let mut at = 0;
    // The last name in front of a colon, since the last border of a declaration.
    let (mut word, mut property) = (0..0, 0..0);
    while let Some(&byte) = text.get(at) {
        match byte {
            b'/' if text.get(at + 1) == Some(&b'*') => {
                let rest = &text[at + 2..];
                at += 2 + memchr::memmem::find(rest, b"*/").map_or(rest.len(), |end| end + 2);
            }
            b'"' | b'\'' => at = string_end(text, at) + 1,
            b'\\' => at += 2,
            b';' | b'{' | b'}' => {
                (word, property) = (0..0, 0..0);
                at += 1;
            }
            b':' => {
                if property.is_empty() {
                    property = word.clone();
                }
                at += 1;
            }
            _ if is_name(byte) => {
                let start = at;
                while text.get(at).is_some_and(|byte| is_name(*byte)) {
                    at += 1;
                }
                word = start..at;
                if text[start..at].eq_ignore_ascii_case(b"url") && text.get(at) == Some(&b'(') {
                    let (place, after) = argument(text, at + 1);
                    at = after;
                    if let Some(place) = place {
                        found.push(Url { place, used: use_in(&text[property.clone()]) });
                    }
                }
            }
            _ => at += 1,
        }
    }
    found
}

/// The argument of `url(`, if it is whole and plain, and where the text goes on.
fn argument(text: &[u8], from: usize) -> (Option<Range<usize>>, usize) {
    let skip = |mut at: usize| {
        while text.get(at).is_some_and(|byte| is_space(*byte)) {
            at += 1;
        }
        at
    };
    let start = skip(from);
    let (place, after) = match text.get(start) {
        Some(quote @ (b'"' | b'\'')) => {
            let end = string_end(text, start);
            if text.get(end) != Some(quote) {
                return (None, end);
            }
            (start + 1..end, skip(end + 1))
        }
        _ => {
            let len = text[start.min(text.len())..]
                .iter()
                .position(|byte| is_space(*byte) || b")\"'(\\".contains(byte))
                .unwrap_or(text.len() - start.min(text.len()));
            (start..start + len, skip(start + len))
        }
    };
    let is_closed = text.get(after) == Some(&b')');
    let is_plain = !text[place.clone()].contains(&b'\\');
    ((is_closed && is_plain && !place.is_empty()).then_some(place), if is_closed { after + 1 } else { after })
}

/// Where the string that begins at `at` ends: at its other quote, or at the end of its line.
fn string_end(text: &[u8], at: usize) -> usize {
    let quote = text[at];
    let mut end = at + 1;
    while let Some(&byte) = text.get(end) {
        match byte {
            b'\\' => end += 2,
            b'\n' => break,
            _ if byte == quote => break,
            _ => end += 1,
        }
    }
    end.min(text.len())
}

/// Masks, clips, filters and fonts are fetched by CORS; pictures are not.
fn use_in(property: &[u8]) -> Use {
    let takes_any = |name: &[u8]| {
        [&b"background"[..], b"list-style", b"border-image", b"content", b"cursor"]
            .iter()
            .any(|begin| name.len() >= begin.len() && name[..begin.len()].eq_ignore_ascii_case(begin))
    };
    if takes_any(property) { Use::Moves } else { Use::Pins }
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(&str, Use)> {
        urls(text.as_bytes()).into_iter().map(|url| (&text[url.place], url.used)).collect()
    }

    #[test]
    fn addresses_are_found_where_they_count() {
        use Use::{Moves, Pins};
        assert_eq!(read("a{background:url(x.png)}"), [("x.png", Moves)]);
        assert_eq!(
            read("background-image: URL( \"x y.png\" ), url('z')"),
            [("x y.png", Moves), ("z", Moves)]
        );
        assert_eq!(read("@font-face{font-family:f;src:url(f.woff2) format('woff2')}"), [("f.woff2", Pins)]);
        assert_eq!(read("a{mask:url(m.svg#a);background:url(b)}"), [("m.svg#a", Pins), ("b", Moves)]);
        assert_eq!(read("@import url(other.css);"), [("other.css", Pins)]);
        assert_eq!(read("a:hover{content:url(c)}"), [("c", Moves)]);
    }

    #[test]
    fn what_is_none_is_left_alone() {
        for text in [
            "/* url(x) */",
            "content:'url(x)'",
            "url(",
            "url()",
            "url(a b)",
            "url('a' b)",
            "url(a\\29 b)",
            "myurl(x)",
            "url (x)",
            "url(\"x",
            "'",
            "\\",
            "/*",
        ] {
            assert_eq!(read(text), [], "{text}");
        }
        assert_eq!(read("content:'a\nurl(x)"), [("x", Use::Moves)], "a string ends with its line");
    }
}

//! Routes, and the forms in which their paths and answers are written.

use crate::note::Note;
use crate::written::Keys;

/// A route.
#[derive(Debug)]
pub(super) struct Route {
    /// What it is found by, and the value: `path`, `exact` or `regex`.
    pub(super) key: &'static str,
    pub(super) value: String,
    /// Whether it comes before regular expressions.
    pub(super) is_first: bool,
    pub(super) keys: Keys,
    pub(super) notes: Vec<Note>,
    /// A redirection to the same host over TLS, with this status.
    pub(super) to_https: Option<u64>,
    /// What its paths begin with, as nginx reads it; empty for expressions.
    pub(super) prefix: String,
}

impl Route {
    /// Whether it is for all that no other route is for.
    pub(super) fn is_whole(&self) -> bool {
        self.key == "path" && self.value == "/"
    }

    /// One for all that no other route is for.
    pub(super) fn whole(keys: Keys, to_https: Option<u64>) -> Self {
        let (key, prefix) = ("path", "/".to_owned());
        Self { key, value: prefix.clone(), is_first: false, keys, notes: Vec::new(), to_https, prefix }
    }
}

/// The path that stands for a named location.
pub(super) fn place_of(name: &str) -> String {
    let name = name.trim_start_matches('@').bytes();
    let plain = name.map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte) } else { '-' });
    format!("/__{}", plain.collect::<String>())
}

/// The answer of a route that goes on with another target.
pub(super) fn rewritten_to(to: String) -> Keys {
    let mut target = Keys::default();
    target.set("to", to);
    let mut keys = Keys::default();
    keys.set("rewrite", target);
    keys
}

/// The path of a route as Baton reads it: as in a URL.
pub(super) fn encoded(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => encoded.push(char::from(byte)),
            b'/' | b'-' | b'.' | b'_' | b'~' | b'!' | b'\'' | b'(' | b')' | b'+' | b',' | b'=' | b'@'
            | b':' => {
                encoded.push(char::from(byte));
            }
            _ => {
                use std::fmt::Write as _;
                // Writing to a string cannot fail.
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}

/// A text as a regular expression that matches it alone.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    for character in text.chars() {
        if r".+*?()|[]{}^$\#&-~".contains(character) {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    quoted
}

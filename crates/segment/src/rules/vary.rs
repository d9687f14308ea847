//! The secondary key: which requests a response with Vary answers (RFC 9111 section 4.1).

use baton_http::origin::ResponseHead;
use baton_http::{AcceptedCodings, Coding, RequestHead, field_name_is_safe, list_members};
use std::fmt;

/// The fields of a request that Vary names, in one form. Empty for a response without Vary.
///
/// A line for each name, in order: `name:value`, or `name` if the request lacks the field.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct VariantKey(Box<[u8]>);

/// Why a response has no secondary key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VaryRefusal {
    /// `Vary: *`, or a member that is no name of a field: it answers no other request.
    Star,
    /// The key would be longer than [`VariantKey::BYTES_MAX`], or have more than [`VariantKey::NAMES_MAX`] names.
    TooLong,
}

impl VariantKey {
    /// Most names in a Vary that is understood. Real ones have three.
    pub const NAMES_MAX: usize = 16;

    /// The longest key in bytes: cookies and languages fit, a book of fields does not.
    pub const BYTES_MAX: usize = 4096;

    /// The key of a response to a request.
    ///
    /// # Errors
    /// There is none, and the response is not stored.
    pub fn of(request: &RequestHead<'_>, response: &ResponseHead) -> Result<Self, VaryRefusal> {
        let is_vary = |field: &(&[u8], &[u8])| field.0.eq_ignore_ascii_case(b"Vary");
        let mut names = Vec::new();
        for name in response.fields().filter(is_vary).flat_map(|(_, value)| list_members(value)) {
            if name == b"*" || !field_name_is_safe(name) {
                return Err(VaryRefusal::Star);
            }
            if names.len() >= Self::NAMES_MAX {
                return Err(VaryRefusal::TooLong);
            }
            names.push(name.to_ascii_lowercase());
        }
        names.sort_unstable();
        names.dedup();
        let mut text = Vec::new();
        for name in names {
            text.extend_from_slice(&name);
            push_value(&mut text, &name, request);
            text.push(b'\n');
            if text.len() > Self::BYTES_MAX {
                return Err(VaryRefusal::TooLong);
            }
        }
        Ok(Self(text.into()))
    }

    /// Whether the response answers this request, too. Allocates nothing.
    pub fn matches(&self, request: &RequestHead<'_>) -> bool {
        self.0.split_inclusive(|byte| *byte == b'\n').all(|line| {
            let line = &line[..line.len() - 1];
            let end = memchr::memchr(b':', line).unwrap_or(line.len());
            let (name, value) = line.split_at(end);
            let mut rest = Some(value);
            push_value(&mut rest, name, request);
            rest == Some(b"")
        })
    }

    /// The bytes to keep.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The key of bytes that were kept. `None` if they are none of a key.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let is_key = bytes.len() <= Self::BYTES_MAX && matches!(bytes, [] | [.., b'\n']);
        is_key.then(|| Self(bytes.into()))
    }

    /// The names, in lower case.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        let lines = self.0.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| &line[..memchr::memchr(b':', line).unwrap_or(line.len())])
    }
}

impl fmt::Debug for VariantKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VariantKey({:?})", String::from_utf8_lossy(&self.0))
    }
}

/// Takes the pieces of a value in one form.
trait Sink {
    fn put(&mut self, piece: &[u8]);
}

impl Sink for Vec<u8> {
    fn put(&mut self, piece: &[u8]) {
        self.extend_from_slice(piece);
    }
}

/// Compares: what is left of the expected value, `None` once a piece was another.
impl Sink for Option<&[u8]> {
    fn put(&mut self, piece: &[u8]) {
        *self = self.and_then(|rest| rest.strip_prefix(piece));
    }
}

/// Puts a colon and the value of a field; nothing if the request lacks it. `name` is in lower case.
fn push_value(out: &mut impl Sink, name: &[u8], request: &RequestHead<'_>) {
    if name == b"accept-encoding" {
        out.put(b":");
        return push_codings(out, AcceptedCodings::parse(request.accept_encoding));
    }
    let is_language = name == b"accept-language";
    let mut separator: &[u8] = b":";
    for value in request.fields_of(name) {
        if memchr::memchr(b'"', value).is_some() {
            // A comma between quotes is none.
            out.put(separator);
            out.put(value);
            separator = b",";
            continue;
        }
        for member in list_members(value) {
            out.put(separator);
            if is_language {
                member.iter().for_each(|byte| out.put(&[byte.to_ascii_lowercase()]));
            } else {
                out.put(member);
            }
            separator = b",";
        }
        if separator == b":" {
            // Empty, but there.
            out.put(separator);
            separator = b"";
        }
    }
}

/// Appends the Accept-Encoding that goes to the origin of a cached route, and that counts for Vary: of the codings that
/// the server knows those that the client accepts, in one order. Sixteen values take the place of thousands; a coding
/// that is not among them is not asked for, so no client gets one that it has not named.
pub fn push_reduced_codings(out: &mut Vec<u8>, accepted: AcceptedCodings) {
    push_codings(out, accepted);
}

fn push_codings(out: &mut impl Sink, accepted: AcceptedCodings) {
    for coding in [Coding::Brotli, Coding::Zstd, Coding::Gzip] {
        if accepted.accepts(coding) {
            out.put(coding.token().as_bytes());
            out.put(b", ");
        }
    }
    let refuses_identity = !accepted.accepts(Coding::Identity);
    out.put(if refuses_identity { b"identity;q=0" } else { b"identity" });
}

/// Most responses that are kept for one key. Another one takes the place of the one with the oldest Date.
pub const VARIANTS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::fixture::{self, with_request};
    use proptest::prelude::*;

    fn response(vary: &str) -> ResponseHead {
        fixture::response(200, vary)
    }

    fn key(vary: &str, request: &str) -> Result<VariantKey, VaryRefusal> {
        with_request("GET", request, |request| VariantKey::of(request, &response(vary)))
    }

    fn matches(vary: &str, stored: &str, presented: &str) -> bool {
        let key = key(vary, stored).unwrap();
        let matches = with_request("GET", presented, |request| key.matches(request));
        assert_eq!(matches, self::key(vary, presented).unwrap() == key, "{stored:?} {presented:?}");
        matches
    }

    #[test]
    fn rfc9111_4_1_fields_match_in_their_normal_form() {
        for (vary, stored, presented, expected) in [
            ("", "Foo: 1", "Foo: 2", true),
            ("Vary: foo", "Foo: 1", "fOO:  1 ; Bar: 2", true),
            ("Vary: Foo", "Foo: 1", "Foo: 2", false),
            ("Vary: Foo", "Foo: 1", "Foo: 12", false),
            ("Vary: Foo", "Foo: 12", "Foo: 1", false),
            ("Vary: Foo", "Foo: 1", "", false),
            ("Vary: Foo", "", "Foo: 1", false),
            ("Vary: Foo", "", "Foo:", false),
            ("Vary: Foo", "Foo:", "Foo:; Foo:", true),
            ("Vary: Foo", "Foo: 1, 2", "Foo: 1; Foo: 2", true),
            ("Vary: Foo", "Foo: 1,2", "Foo:  1 ,, 2 ", true),
            ("Vary: Foo", "Foo: \"1, 2\"", "Foo: \"1,2\"", false),
            ("Vary: Foo", "Foo: a", "Foo: A", false),
            ("Vary: Foo, Bar", "Foo: 1; Bar: 2", "Bar: 2; Foo: 1", true),
            ("Vary: Foo; Vary: Bar", "Foo: 1; Bar: 2", "Bar: 3; Foo: 1", false),
            ("Vary: Accept-Language", "Accept-Language: en, DE", "accept-language: EN,de", true),
            ("Vary: Accept-Language", "Accept-Language: en, de", "Accept-Language: de, en", false),
            ("Vary: Accept-Encoding", "Accept-Encoding: gzip, br", "Accept-Encoding: br;q=0.5, gzip", true),
            ("Vary: Accept-Encoding", "Accept-Encoding: deflate", "", true),
            ("Vary: Accept-Encoding", "Accept-Encoding: gzip", "", false),
            ("Vary: Accept-Encoding", "Accept-Encoding: gzip, identity;q=0", "Accept-Encoding: gzip", false),
        ] {
            assert_eq!(matches(vary, stored, presented), expected, "{vary} {stored:?} {presented:?}");
        }
    }

    #[test]
    fn rfc9111_4_1_a_star_matches_nothing() {
        for vary in ["*", "*, *", ", *", "*, Foo", "Foo, *", "a:b", "a b"] {
            assert_eq!(key(&format!("Vary: {vary}"), ""), Err(VaryRefusal::Star), "{vary}");
        }
        assert_eq!(key("Vary: Foo; Vary: *", ""), Err(VaryRefusal::Star));
    }

    #[test]
    fn keys_have_a_bound() {
        let names: Vec<_> = (0..=VariantKey::NAMES_MAX).map(|n| format!("a{n}")).collect();
        assert_eq!(key(&format!("Vary: {}", names.join(",")), ""), Err(VaryRefusal::TooLong));
        let long = format!("Foo: {}", "a".repeat(VariantKey::BYTES_MAX));
        assert_eq!(key("Vary: Foo", &long), Err(VaryRefusal::TooLong));
        assert!(key("Vary: Bar", &long).is_ok());
    }

    #[test]
    fn the_origin_is_asked_for_what_counts() {
        let reduced = |field: Option<&str>| {
            let mut out = Vec::new();
            push_reduced_codings(&mut out, AcceptedCodings::parse(field.map(str::as_bytes)));
            String::from_utf8(out).unwrap()
        };
        assert_eq!(reduced(None), "identity");
        assert_eq!(reduced(Some("deflate, gzip;q=0.1, zstd, compress")), "zstd, gzip, identity");
        assert_eq!(reduced(Some("br, *;q=0")), "br, identity;q=0");
        for field in [None, Some("gzip, br"), Some("*"), Some("identity;q=0, zstd")] {
            let text = reduced(field);
            assert_eq!(reduced(Some(&text)), text);
        }
    }

    proptest! {
        /// Two requests match each other, or neither matches the other; keys survive being kept.
        #[test]
        fn vary_is_symmetric(
            one in prop::collection::vec(("[ab]", "[12, \"]{0,4}"), 0..4),
            other in prop::collection::vec(("[ab]", "[12, \"]{0,4}"), 0..4),
        ) {
            let text = |fields: &[(String, String)]| {
                fields.iter().map(|(name, value)| format!("{name}: {value}")).collect::<String>()
            };
            let (one, other) = (text(&one), text(&other));
            prop_assert_eq!(matches("Vary: A, b", &one, &other), matches("Vary: A, b", &other, &one));
            prop_assert!(matches("Vary: A, b", &one, &one));
            let key = key("Vary: a; Vary: B", &one).unwrap();
            prop_assert_eq!(VariantKey::from_bytes(key.as_bytes()), Some(key.clone()));
            prop_assert_eq!(key.names().collect::<Vec<_>>(), [b"a", b"b"]);
        }
    }
}

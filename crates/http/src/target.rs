//! The request target and its four forms (RFC 9112 section 3.2).

use crate::authority::Authority;
use crate::{Method, Refusal, Version};
use memchr::memchr2;
use std::borrow::Cow;

/// A request target, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target<'a> {
    /// Begins with `/`; or `*`; or empty, for CONNECT.
    pub(crate) path: &'a [u8],
    /// The text after the first `?`.
    pub(crate) query: Option<&'a [u8]>,
    /// The authority of the absolute form and of CONNECT's: it overrides the Host field.
    pub(crate) authority: Option<Authority<'a>>,
}

impl<'a> Target<'a> {
    /// `text` is not empty and has neither blanks nor control characters: the request line was split there. Bytes
    /// above 0x7f mean their percent-encoding ([`as_uri`]).
    pub(crate) fn parse(version: Version, method: Method, text: &'a [u8]) -> Result<Self, Refusal> {
        match (method, text) {
            // An extended CONNECT (RFC 8441 section 4).
            (Method::Connect, [b'/', ..]) if version == Version::Http2 => Self::origin_form(text),
            (Method::Connect, _) => Self::authority_form(text),
            (_, [b'/', ..]) => Self::origin_form(text),
            (Method::Options, b"*") => Ok(Self { path: b"*", query: None, authority: None }),
            _ => Self::absolute_form(method, text),
        }
    }

    fn origin_form(text: &'a [u8]) -> Result<Self, Refusal> {
        let (path, query) = match memchr2(b'?', b'#', text) {
            None => (text, None),
            Some(mark) if text[mark] == b'?' => (&text[..mark], Some(&text[mark + 1..])),
            Some(_) => return Err(Refusal::TargetBytes),
        };
        if query.is_some_and(|query| query.contains(&b'#')) {
            return Err(Refusal::TargetBytes);
        }
        Ok(Self { path, query, authority: None })
    }

    fn absolute_form(method: Method, text: &'a [u8]) -> Result<Self, Refusal> {
        let rest = strip_scheme(text, b"http://").or_else(|| strip_scheme(text, b"https://"));
        let rest = rest.ok_or(Refusal::TargetForm)?;
        let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#')).unwrap_or(rest.len());
        let authority = Authority::parse(&rest[..end]).ok_or(Refusal::TargetAuthority)?;
        let target = match &rest[end..] {
            // RFC 9112 section 3.2.4: how a proxy spells `OPTIONS *`.
            [] if method == Method::Options => Self { path: b"*", query: None, authority: None },
            [] => Self { path: b"/", query: None, authority: None },
            [b'/', ..] => Self::origin_form(&rest[end..])?,
            // Without a path: RFC 3986 section 6.2.3 makes it `/`.
            tail => Self { path: b"/", ..Self::origin_form(tail)? },
        };
        Ok(Self { authority: Some(authority), ..target })
    }

    fn authority_form(text: &'a [u8]) -> Result<Self, Refusal> {
        match Authority::parse(text) {
            Some(authority @ Authority { port: Some(_), .. }) => {
                Ok(Self { path: b"", query: None, authority: Some(authority) })
            }
            _ => Err(Refusal::TargetForm),
        }
    }
}

/// A target, or a part of one, as a URI: bytes above 0x7f, which some clients send raw, become percent-encoded. The
/// result need not decode to UTF-8: file names are bytes.
pub fn as_uri(text: &[u8]) -> Cow<'_, [u8]> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut uri = Vec::with_capacity(3 * text.len());
    for byte in text {
        push_as_uri(&mut uri, *byte, byte.is_ascii());
    }
    Cow::Owned(uri)
}

/// Encodes a decoded path as a URI (RFC 3986 section 3.3): characters of segments, and slashes, stay as they are.
pub fn encode_path(path: &[u8]) -> Vec<u8> {
    let mut uri = Vec::with_capacity(path.len());
    for byte in path {
        push_as_uri(&mut uri, *byte, byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(byte));
    }
    uri
}

/// Encodes decoded bytes as a part of a query: what separates parameters stays no separator.
pub fn encode_query(bytes: &[u8]) -> Vec<u8> {
    let mut uri = Vec::with_capacity(bytes.len());
    for byte in bytes {
        push_as_uri(&mut uri, *byte, byte.is_ascii_alphanumeric() || b"-._~/".contains(byte));
    }
    uri
}

/// Appends a byte as it is, or its percent-encoding.
fn push_as_uri(out: &mut Vec<u8>, byte: u8, as_it_is: bool) {
    if as_it_is {
        out.push(byte);
    } else {
        let digit = |value: u8| b"0123456789ABCDEF"[usize::from(value)];
        out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 0xf)]);
    }
}

fn strip_scheme<'a>(text: &'a [u8], scheme: &[u8]) -> Option<&'a [u8]> {
    let (head, rest) = text.split_at_checked(scheme.len())?;
    head.eq_ignore_ascii_case(scheme).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(method: Method, text: &str) -> Result<(&str, Option<&str>, Option<&str>), Refusal> {
        let target = Target::parse(Version::Http11, method, text.as_bytes())?;
        let text = |bytes| std::str::from_utf8(bytes).unwrap();
        Ok((text(target.path), target.query.map(text), target.authority.map(|authority| authority.host)))
    }

    #[test]
    fn each_form_is_taken_apart() {
        use Method::{Connect, Get, Options};
        for (method, text, expected) in [
            (Get, "/", ("/", None, None)),
            (Get, "/a%20b//c", ("/a%20b//c", None, None)),
            (Get, "/a?", ("/a", Some(""), None)),
            (Get, "/a?b?c=/d", ("/a", Some("b?c=/d"), None)),
            (Get, "//example.org/x", ("//example.org/x", None, None)),
            (Get, "http://example.org", ("/", None, Some("example.org"))),
            (Get, "HTTPS://Example.org:444/a?b", ("/a", Some("b"), Some("Example.org"))),
            (Get, "http://[::1]?b", ("/", Some("b"), Some("[::1]"))),
            (Options, "*", ("*", None, None)),
            (Options, "http://example.org:80", ("*", None, Some("example.org"))),
            (Options, "http://example.org/", ("/", None, Some("example.org"))),
            (Connect, "example.org:443", ("", None, Some("example.org"))),
            (Get, "/é?ü", ("/é", Some("ü"), None)),
        ] {
            assert_eq!(parts(method, text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_none_of_them_is_refused() {
        use Method::{Connect, Get, Options};
        for (method, text, refusal) in [
            (Get, "*", Refusal::TargetForm),
            (Options, "**", Refusal::TargetForm),
            (Get, "index.html", Refusal::TargetForm),
            (Get, "example.org:443", Refusal::TargetForm),
            (Get, "ftp://example.org/", Refusal::TargetForm),
            (Get, "http:/example.org", Refusal::TargetForm),
            (Get, "?a", Refusal::TargetForm),
            (Connect, "/", Refusal::TargetForm),
            (Connect, "example.org", Refusal::TargetForm),
            (Connect, "http://example.org:443/", Refusal::TargetForm),
            (Get, "http:///a", Refusal::TargetAuthority),
            (Get, "http://", Refusal::TargetAuthority),
            (Get, "http://user@example.org/", Refusal::TargetAuthority),
            (Get, "http://example.org:x/", Refusal::TargetAuthority),
            (Get, "/a#b", Refusal::TargetBytes),
            (Get, "/a?b#c", Refusal::TargetBytes),
            (Get, "http://example.org#c", Refusal::TargetBytes),
            (Get, "http://é/", Refusal::TargetAuthority),
        ] {
            assert_eq!(parts(method, text), Err(refusal), "{text}");
        }
    }

    #[test]
    fn bytes_that_are_not_ascii_become_their_percent_encoding() {
        for (text, uri) in
            [(&b"/a%20b?c"[..], "/a%20b?c"), ("/ä".as_bytes(), "/%C3%A4"), (b"/\xff?\xe4", "/%FF?%E4")]
        {
            assert_eq!(as_uri(text), uri.as_bytes());
        }
        assert_eq!(encode_query(b"/a b&c=d+e%\xe4"), b"/a%20b%26c%3Dd%2Be%25%E4");
        assert_eq!(encode_path(b"/a b/%?#\\\xe4/~(c)"), b"/a%20b/%25%3F%23%5C%E4/~(c)");
    }
}

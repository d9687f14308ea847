//! From the text of a link to a document of the same site (RFC 3986 section 5, and how browsers read it).
//!
//! What is unusual is left alone: backslashes, entities in the path, control characters. Its link stays as it is, and its old
//! address works.

use baton_http::decode_path;

use crate::origin::Origin;

/// What a link leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// See [`Link::document`](super::link::Link::document).
    pub(super) document: Vec<u8>,
    /// How many bytes of the text are the address without query and fragment.
    pub(super) path_len: usize,
}

/// The document that `text` leads to, in a page of that origin whose relative links count from `folder`, which is
/// decoded and either empty or ends with a slash. `None`: it leads elsewhere, or within the page.
pub(super) fn resolve(text: &[u8], origin: &Origin, folder: &[u8]) -> Option<Found> {
    let path_len = text.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(text.len());
    let address = std::str::from_utf8(&text[..path_len]).ok()?;
    let is_unusual = |byte: u8| byte <= b' ' || b"&\\\"'<>`".contains(&byte) || byte == 0x7f;
    if address.is_empty() || address.bytes().any(is_unusual) {
        return None;
    }
    let path = match address.strip_prefix("//") {
        Some(rest) => same_origin(Origin::split_authority(origin.is_https(), rest)?, origin)?,
        None if has_scheme(address) => same_origin(Origin::split(address)?, origin)?,
        None => address,
    };
    let mut document = Vec::new();
    if path.is_empty() || path.starts_with('/') {
        decode_path(if path.is_empty() { b"/" } else { path.as_bytes() }, &mut document).ok()?;
    } else {
        // `..` of the path leads out of the folder, so they are resolved together.
        let mut joined = vec![b'/'];
        joined.extend_from_slice(&baton_http::encode_path(folder));
        joined.extend_from_slice(path.as_bytes());
        decode_path(&joined, &mut document).ok()?;
    }
    Some(Found { document, path_len })
}

fn same_origin<'a>((found, rest): (Origin, &'a str), origin: &Origin) -> Option<&'a str> {
    (found == *origin).then_some(rest)
}

/// Whether it begins with a scheme, such as `mailto:`.
fn has_scheme(address: &str) -> bool {
    let mut bytes = address.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic())
        && bytes.find(|byte| !(byte.is_ascii_alphanumeric() || b"+-.".contains(byte))) == Some(b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, folder: &str) -> Option<(String, usize)> {
        let origin = "http://a.example:8080".parse().unwrap();
        let found = resolve(text.as_bytes(), &origin, folder.as_bytes())?;
        Some((String::from_utf8(found.document).unwrap(), found.path_len))
    }

    #[test]
    fn links_within_the_site_are_found() {
        for (text, document, path_len) in [
            ("/a.png", "a.png", 6),
            ("b/c.png", "d/b/c.png", 7),
            ("../c.png?v=1#x", "c.png", 8),
            ("./c%20d.png", "d/c d.png", 11),
            ("c.png?a=b&amp;c", "d/c.png", 5),
            ("http://A.example:8080/x", "x", 23),
            ("http://a.example:8080", "", 21),
            ("//a.example:8080/x", "x", 18),
            ("sub/", "d/sub/", 4),
        ] {
            assert_eq!(found(text, "d/"), Some((document.to_owned(), path_len)), "{text}");
        }
    }

    #[test]
    fn what_leads_elsewhere_is_left_alone() {
        for text in [
            "",
            "#top",
            "?page=2",
            "http://a.example/x",
            "https://a.example:8080/x",
            "//b.example/x",
            "mailto:a@b",
            "javascript:alert(1)",
            "data:image/png;base64,AA",
            "http:/x",
            "http:x",
            "a\\b.png",
            "/\\evil/x",
            "a b.png",
            "/a&#47;b.png",
            "a\tb",
            "/..",
            "../../x",
            "/%zz",
            "/%2e%2e/x",
            "/a%2Fb",
        ] {
            assert_eq!(found(text, "d/"), None, "{text}");
        }
    }
}

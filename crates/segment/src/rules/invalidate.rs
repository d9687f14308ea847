//! What a request that changes something makes unusable (RFC 9111 section 4.4, RFC 9875 section 3).

use super::key::split_authority;
use super::labels::groups_of;
use super::{Key, RouteRules, Scheme};
use baton_http::Method;
use baton_http::origin::ResponseHead;

/// What becomes unusable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invalidation {
    /// At most three URIs: the target, and those of Location and Content-Location.
    pub keys: Vec<Key>,
    /// Groups of the target's origin, at most [`GROUPS_MAX`].
    pub groups: Vec<String>,
}

/// What the answer to a request makes unusable. `None` for safe methods, and for errors. `key` is that of the request,
/// as if it were a GET; `head` goes to the client, so its locations are in the client's terms.
pub fn invalidated(
    rules: &RouteRules,
    method: Method,
    key: &Key,
    head: &ResponseHead,
) -> Option<Invalidation> {
    let is_safe = matches!(method, Method::Get | Method::Head | Method::Options | Method::Trace);
    if is_safe || !(200..400).contains(&head.status().code()) {
        return None;
    }
    let locations = ["Location", "Content-Location"].into_iter().filter_map(|name| head.field(name));
    let mut keys = vec![key.clone()];
    for other in locations.filter_map(|reference| resolve(rules, key, reference)) {
        // RFC 9111 section 4.4: not those of other origins.
        if other.origin() == key.origin() && !keys.contains(&other) {
            keys.push(other);
        }
    }
    let groups = groups_of(head, "Cache-Group-Invalidation").take(GROUPS_MAX).collect();
    Some(Invalidation { keys, groups })
}

/// The key of a reference (RFC 3986 section 5.2) in a response to the request of `base`. `None` for other schemes, and
/// for what is no reference.
fn resolve(rules: &RouteRules, base: &Key, reference: &[u8]) -> Option<Key> {
    let reference = reference.split(|byte| *byte == b'#').next()?;
    let absolute = |scheme: &str| {
        let (start, rest) = reference.split_at_checked(scheme.len())?;
        start.eq_ignore_ascii_case(scheme.as_bytes()).then_some(rest)
    };
    let (base_scheme, base_rest) = match base.origin().strip_prefix(b"https://") {
        Some(rest) => (Scheme::Https, rest),
        None => (Scheme::Http, base.origin().strip_prefix(b"http://")?),
    };
    let (scheme, authority, target) = if let Some(rest) = absolute("https://") {
        with_target(Scheme::Https, rest)
    } else if let Some(rest) = absolute("http://") {
        with_target(Scheme::Http, rest)
    } else if let Some(rest) = reference.strip_prefix(b"//") {
        with_target(base_scheme, rest)
    } else {
        (base_scheme, base_rest, merge(base.target(), reference)?)
    };
    Key::of_target(&rules.query, scheme, authority, &target)
}

fn with_target(scheme: Scheme, rest: &[u8]) -> (Scheme, &[u8], Vec<u8>) {
    let (authority, target) = split_authority(rest);
    (scheme, authority, target)
}

/// A relative reference to `base`, a path with its query. Dot segments stay. `None` for another scheme.
fn merge(base: &[u8], reference: &[u8]) -> Option<Vec<u8>> {
    let path = base.split(|byte| *byte == b'?').next().unwrap_or_default();
    let first = reference.split(|byte| matches!(byte, b'/' | b'?')).next().unwrap_or_default();
    match reference {
        [] => Some(base.to_vec()),
        [b'/', ..] => Some(reference.to_vec()),
        [b'?', ..] => Some([path, reference].concat()),
        _ if first.contains(&b':') => None,
        _ => {
            let end = memchr::memrchr(b'/', path).map_or(0, |slash| slash + 1);
            Some([&path[..end], reference].concat())
        }
    }
}

/// Most groups that one response invalidates. RFC 9875 section 3 asks for 32 at least.
pub const GROUPS_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::QueryRule;
    use baton_http::Status;
    use proptest::prelude::*;

    fn key(host: &str, path: &str, query: Option<&str>) -> Key {
        let (rule, query) = (QueryRule::default(), query.map(str::as_bytes));
        Key::of_request(&rule, Scheme::Https, (host, None), path.as_bytes(), query).unwrap()
    }

    fn head(status: u16, fields: &str) -> ResponseHead {
        ResponseHead::of_lines(fields.as_bytes().to_vec(), Status::new(status), b"", None, |_| true)
    }

    fn uris(method: Method, status: u16, fields: &str) -> Option<Vec<String>> {
        let base = key("a.example", "/b/c", Some("d"));
        let head = head(status, fields);
        let all = invalidated(&RouteRules::default(), method, &base, &head)?;
        Some(all.keys.iter().map(|key| String::from_utf8(key.as_bytes().to_vec()).unwrap()).collect())
    }

    #[test]
    fn rfc9111_4_4_unsafe_methods_invalidate_if_they_succeed() {
        for method in [Method::Post, Method::Put, Method::Delete, Method::Patch, Method::Other] {
            assert_eq!(uris(method, 200, ""), Some(vec!["https://a.example/b/c?d".into()]), "{method}");
            assert!(uris(method, 303, "").is_some() && uris(method, 404, "").is_none());
            assert!(uris(method, 500, "").is_none() && uris(method, 100, "").is_none());
        }
        for method in [Method::Get, Method::Head, Method::Options, Method::Trace] {
            assert_eq!(uris(method, 200, "Location: /x\n"), None, "{method}");
        }
    }

    #[test]
    fn rfc9111_4_4_locations_of_the_same_origin_go_too() {
        for (reference, expected) in [
            ("/x", Some("https://a.example/x")),
            ("/x/../y?z#f", Some("https://a.example/y?z")),
            ("x", Some("https://a.example/b/x")),
            ("../x:y/z", Some("https://a.example/x:y/z")),
            ("?x", Some("https://a.example/b/c?x")),
            ("HTTPS://A.example:443", Some("https://a.example/")),
            ("https://a.example?x", Some("https://a.example/?x")),
            ("//a.example/x", Some("https://a.example/x")),
            ("http://a.example/x", None),
            ("https://b.example/x", None),
            ("https://a.example:8443/x", None),
            ("https://u@a.example/x", None),
            ("https://a.example.b.example/x", None),
            ("x:y", None),
            ("mailto:a@b", None),
            ("/../x", None),
            ("", None),
            ("/b/c?d", None),
        ] {
            for name in ["Location", "Content-Location"] {
                let all = uris(Method::Post, 201, &format!("{name}: {reference}\n")).unwrap();
                assert_eq!(all.get(1).map(String::as_str), expected, "{reference}");
            }
        }
        let both = uris(Method::Put, 200, "Location: /x\nContent-Location: /y\n").unwrap();
        assert_eq!(both.len(), 3);
    }

    #[test]
    fn the_query_of_a_location_is_that_of_keys() {
        let rules = RouteRules {
            query: QueryRule { dropped: vec!["s".into()], ..QueryRule::default() },
            ..RouteRules::default()
        };
        let head = head(200, "Location: /x?s=1&t\n");
        let base = key("a", "/", None);
        let all = invalidated(&rules, Method::Post, &base, &head).unwrap();
        assert_eq!(all.keys[1], key("a", "/x", Some("t")));
    }

    #[test]
    fn rfc9875_3_groups_are_invalidated_by_unsafe_methods() {
        let base = key("a", "/", None);
        let head = head(200, "Cache-Group-Invalidation: \"x\", \"y\", z\n");
        let all = |method| invalidated(&RouteRules::default(), method, &base, &head);
        assert_eq!(all(Method::Post).unwrap().groups, ["x", "y"]);
        assert_eq!(all(Method::Get), None);
    }

    proptest! {
        /// Whatever an origin names, only keys of its own are invalidated, and at most three.
        #[test]
        fn nothing_of_other_origins_is_invalidated(reference in "[a-z:/?#.@%\\[\\]]{0,16}") {
            let head = head(200, &format!("Location: {reference}\nContent-Location: //{reference}\n"));
            let base = key("a", "/b", None);
            let all = invalidated(&RouteRules::default(), Method::Post, &base, &head).unwrap();
            prop_assert!(all.keys.len() <= 3 && all.keys[0] == base);
            prop_assert!(all.keys.iter().all(|key| key.origin() == base.origin()));
        }
    }
}

//! Values of `Location`: where clients are sent.
//!
//! What a client has written becomes a part of them. It never begins with two slashes, or with a slash and a backslash,
//! which browsers take for one: `//host/` would be another host.

use std::borrow::Cow;

use baton_fcgi::environment::Script;
use baton_http::{RequestHead, as_uri, decode_any_path, encode_path};

/// Where a directory without its slash is found.
pub(super) fn with_slash(head: &RequestHead<'_>) -> String {
    format!("{}/{}", absolute(&text(head.path)), query(head))
}

/// A configured location for requests below `route_path`: `$uri` stands for the request's path and query, `$rest` for
/// what of them is behind the path of the route.
pub(super) fn expand(location: &str, route_path: &str, head: &RequestHead<'_>) -> String {
    if let Some(start) = location.strip_suffix("$uri") {
        return format!("{start}{}{}", absolute(&text(head.path)), query(head));
    }
    if let Some(start) = location.strip_suffix("$rest") {
        let rest = rest_of(head.path, route_path);
        // A `Location` that is empty, or begins with the query, would lead back to where the client is.
        let rest = if start.is_empty() || !rest.is_empty() { absolute(&rest) } else { String::new() };
        return format!("{start}{rest}{}", query(head));
    }
    location.to_owned()
}

/// The same target over TLS. `None` if the client names no host, and there is none to stand for it.
pub(super) fn https(host: Option<&str>, port: u16, head: &RequestHead<'_>) -> Option<String> {
    let host = head.host.or(host)?;
    let port = if port == 443 { String::new() } else { format!(":{port}") };
    Some(format!("https://{host}{port}{}{}", absolute(&text(head.path)), query(head)))
}

/// The path below the route's path: as the client has spelled it, if it has spelled the route's path plainly.
fn rest_of<'a>(path: &'a [u8], route_path: &str) -> Cow<'a, str> {
    let plain = path.strip_prefix(route_path.trim_end_matches('/').as_bytes());
    if let Some(rest) = plain.filter(|rest| matches!(rest, [] | [b'/', ..]) && is_plain(path)) {
        return text(rest);
    }
    let mut decoded = Vec::with_capacity(path.len());
    let below = decode_any_path(path, &mut decoded).ok();
    let below = below.and_then(|_| Script::below(&decoded, route_path.as_bytes()));
    let rest = encode_path(below.map_or(&b""[..], |split| split.path_info));
    Cow::Owned(String::from_utf8_lossy(&rest).into_owned())
}

/// Whether it has no segments that decoding would remove.
fn is_plain(path: &[u8]) -> bool {
    let mut segments = path.split(|byte| *byte == b'/').skip(1).peekable();
    std::iter::from_fn(|| segments.next().map(|segment| (segment, segments.peek().is_none())))
        .all(|(segment, is_last)| is_last && segment.is_empty() || !matches!(segment, [] | [b'.' | b'%', ..]))
}

/// With one slash in front.
fn absolute(path: &str) -> String {
    format!("/{}", path.trim_start_matches('/'))
}

/// The query of a request with the `?` in front.
fn query(head: &RequestHead<'_>) -> String {
    head.query.map_or_else(String::new, |query| format!("?{}", text(query)))
}

/// A part of a target, as a URI may have it.
fn text(part: &[u8]) -> Cow<'_, str> {
    let text = match as_uri(part) {
        Cow::Borrowed(text) => String::from_utf8_lossy(text),
        Cow::Owned(text) => Cow::Owned(String::from_utf8_lossy(&text).into_owned()),
    };
    if text.contains('\\') { Cow::Owned(text.replace('\\', "%5C")) } else { text }
}

#[cfg(test)]
mod tests {
    use baton_http::HeadLimits;

    use super::*;

    fn located(location: &str, route_path: &str, target: &str) -> String {
        let text = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
        expand(location, route_path, &RequestHead::parse(text.as_bytes(), &HeadLimits::default()).unwrap())
    }

    #[test]
    fn https_keeps_the_host_and_the_target() {
        let https = |line: &str, host: Option<&str>, port| {
            let text = format!("{line}\r\n\r\n");
            https(host, port, &RequestHead::parse(text.as_bytes(), &HeadLimits::default()).unwrap())
        };
        let located = |line: &str| https(line, Some("own.example"), 443).unwrap();
        assert_eq!(located("GET /a//b?c HTTP/1.1\r\nHost: h.example:8080"), "https://h.example/a//b?c");
        assert_eq!(located("GET //x.example/ HTTP/1.1\r\nHost: [::1]"), "https://[::1]/x.example/");
        assert_eq!(located("GET http://abs.example/p HTTP/1.1\r\nHost: h"), "https://abs.example/p");
        assert_eq!(located("GET / HTTP/1.0"), "https://own.example/");
        assert_eq!(https("GET / HTTP/1.0", None, 443), None);
        assert_eq!(https("GET /x HTTP/1.1\r\nHost: h", None, 8443).unwrap(), "https://h:8443/x");
    }

    #[test]
    fn a_prefix_is_taken_off() {
        for (target, location) in [
            ("/old", "https://new.example/docs"),
            ("/old?q=1", "https://new.example/docs?q=1"),
            ("/old/", "https://new.example/docs/"),
            ("/old/a%20b%2Fc?q=%2F", "https://new.example/docs/a%20b%2Fc?q=%2F"),
            ("/old/ä", "https://new.example/docs/%C3%A4"),
            ("/old/a\\b", "https://new.example/docs/a%5Cb"),
            // Where the path of the route is spelled in another way, all is spelled in one way.
            ("/%6Fld/a%20b", "https://new.example/docs/a%20b"),
            ("//old//a", "https://new.example/docs/a"),
            ("/x/../old/./a/../b/", "https://new.example/docs/b/"),
            ("/old/../old/a", "https://new.example/docs/a"),
            ("/old/%2e%2e/old/a", "https://new.example/docs/a"),
            ("/old%2Fa%3Fb", "https://new.example/docs/a%3Fb"),
        ] {
            for path in ["/old", "/old/"] {
                assert_eq!(located("https://new.example/docs$rest", path, target), location, "{target}");
            }
        }
        assert_eq!(located("/new$rest", "/odd*/(a b)", "/odd%2A/(a%20b)/c"), "/new/c");
        assert_eq!(located("https://new.example$rest", "/", "/a/b?c"), "https://new.example/a/b?c");
    }

    #[test]
    fn no_client_says_to_which_host() {
        for target in
            ["/old//evil.example/", "/old/%2Fevil.example/", "/old/\\evil.example/", "/old/%5Cevil.example/"]
        {
            for location in [located("$rest", "/old", target), located("$uri", "/", &target["/old".len()..])]
            {
                let authority = location.strip_prefix('/').unwrap();
                assert!(!authority.starts_with(['/', '\\']), "{target}: {location}");
            }
        }
        assert_eq!(located("$rest", "/old", "/old?a"), "/?a");
        assert_eq!(located("https://new.example$uri", "/", "/a?b"), "https://new.example/a?b");
        assert_eq!(located("/fixed", "/", "/a?b"), "/fixed");
    }
}

//! Decoded paths below the path of a route.

/// What follows `prefix`, the path of a route, in `path`: `/app/` and `/app` leave `/b` of `/app/b`. The leading slash of
/// `path` may be missing, and repeated slashes count as one. `None` if `path` is not below `prefix`.
pub fn path_below<'a>(path: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let mut rest = path;
    for name in prefix.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
        let slashes = rest.iter().take_while(|byte| **byte == b'/').count();
        rest = rest[slashes..].strip_prefix(name).filter(|rest| matches!(rest, [] | [b'/', ..]))?;
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_on_the_border_of_a_segment() {
        for (path, prefix, rest) in [
            ("/docs/a", "/docs", Some("/a")),
            ("docs/a", "/docs/", Some("/a")),
            ("/docs", "/docs/", Some("")),
            ("//docs//a", "/docs", Some("//a")),
            ("/x", "/", Some("/x")),
            ("/docset", "/docs", None),
            ("/doc", "/docs", None),
        ] {
            assert_eq!(path_below(path.as_bytes(), prefix.as_bytes()), rest.map(str::as_bytes), "{path}");
        }
    }
}

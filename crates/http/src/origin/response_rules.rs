//! What a response says of where things are, in the client's terms instead of the origin's (RFC 9110 section 10.2.2).

use super::ResponseHead;
use super::forwarded_fields::push_host;
use crate::{RequestHead, Version};

/// How the heads of a route's responses are changed on their way to the client.
#[derive(Clone, Debug, Default)]
pub struct ResponseRules {
    /// For Location, Content-Location and Refresh: the first that fits counts. `from` is an absolute URL or a path.
    pub locations: Vec<Prefix>,
    /// For absolute URLs in these fields that lead to the host that the client has asked for: what its paths become. An origin
    /// that reads the client's `Host` writes them, and does not know of the route.
    pub own_paths: Option<Prefix>,
    /// For `Path` of Set-Cookie.
    pub cookie_paths: Vec<Prefix>,
    /// For `Domain` of Set-Cookie: what it is, and what it becomes. An empty one leaves the attribute out.
    pub cookie_domains: Vec<(String, String)>,
    /// The name of this server, for `Via`; `None` to keep quiet.
    pub pseudonym: Option<String>,
}

/// The beginning of a path or URL, up to a slash or its end, and what replaces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix {
    from: String,
    to: String,
    /// The length of scheme and authority, which have no case.
    authority_len: usize,
}

impl Prefix {
    /// `from`: `http://host:port/path`, or `/path`. Slashes at the ends mean nothing.
    pub fn new(from: &str, to: &str) -> Self {
        let (from, to) = (from.trim_end_matches('/'), to.trim_end_matches('/'));
        let authority_len = from.find("://").map_or(0, |at| {
            let host_at = at + "://".len();
            from[host_at..].find('/').map_or(from.len(), |len| host_at + len)
        });
        Self { from: from.into(), to: to.into(), authority_len }
    }

    /// `text` with the prefix replaced, if it has it. A path that has what replaces it already comes from an origin that
    /// knows of that, and stays.
    fn apply(&self, text: &[u8]) -> Option<Vec<u8>> {
        let (authority, path) = text.split_at_checked(self.authority_len)?;
        let (own_authority, own_path) = self.from.as_bytes().split_at(self.authority_len);
        // Two slashes begin an authority: another host.
        let is_elsewhere = self.authority_len == 0 && text.starts_with(b"//");
        if !authority.eq_ignore_ascii_case(own_authority) || is_elsewhere {
            return None;
        }
        if self.has_replacement(path) {
            return Some(path.to_vec());
        }
        let rest = path.strip_prefix(own_path).filter(|rest| ends_segment(rest))?;
        let slash: &[u8] = if self.to.is_empty() && !rest.starts_with(b"/") { b"/" } else { b"" };
        Some([self.to.as_bytes(), slash, rest].concat())
    }

    /// Whether a path has what replaces the prefix.
    fn has_replacement(&self, path: &[u8]) -> bool {
        !self.to.is_empty() && path.strip_prefix(self.to.as_bytes()).is_some_and(ends_segment)
    }
}

impl ResponseRules {
    /// Changes the head of the response to a request.
    pub fn apply(&self, head: &mut ResponseHead, asked: &RequestHead<'_>) {
        let has_place = ["Refresh", "Location", "Set-Cookie", "Content-Location"]
            .iter()
            .any(|name| head.field(name).is_some());
        if has_place {
            head.replace_values(|name, value| self.changed(name, value, asked));
        }
        if let Some(pseudonym) = &self.pseudonym {
            let version = if head.version() == Version::Http10 { "1.0" } else { "1.1" };
            head.add_with("Via", |out| {
                for part in [version, " ", pseudonym] {
                    out.extend_from_slice(part.as_bytes());
                }
            });
        }
    }

    /// What replaces the value of a field, if something does.
    fn changed(&self, name: &[u8], value: &[u8], asked: &RequestHead<'_>) -> Option<Vec<u8>> {
        let location = |url: &[u8]| replaced(&self.locations, url).or_else(|| self.own_path(url, asked));
        let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
        match name.len() {
            7 if is("Refresh") => refresh(value, location),
            8 if is("Location") => location(value),
            10 if is("Set-Cookie") => self.cookie(value),
            16 if is("Content-Location") => location(value),
            _ => None,
        }
    }

    /// The path of a URL that leads to the host that was asked for. One that leads to the route already is the origin's
    /// own knowledge.
    fn own_path(&self, url: &[u8], asked: &RequestHead<'_>) -> Option<Vec<u8>> {
        let paths = self.own_paths.as_ref()?;
        let mut authority = Vec::new();
        push_host(&mut authority, asked);
        let behind = |scheme: &[u8]| {
            let (start, rest) = url.split_at_checked(scheme.len())?;
            start.eq_ignore_ascii_case(scheme).then_some(rest)
        };
        let (host, path) =
            behind(b"http://").or_else(|| behind(b"https://"))?.split_at_checked(authority.len())?;
        let is_own = !authority.is_empty() && host.eq_ignore_ascii_case(&authority);
        if is_own && !paths.has_replacement(path) { paths.apply(path) } else { None }
    }

    fn cookie(&self, value: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let mut is_changed = false;
        for (index, part) in value.split(|byte| *byte == b';').enumerate() {
            match self.attribute(part).filter(|_| index > 0) {
                Some(new) if new.is_empty() => is_changed = true,
                Some(new) => {
                    out.extend_from_slice(b"; ");
                    out.extend_from_slice(&new);
                    is_changed = true;
                }
                None => {
                    out.extend_from_slice(if index > 0 { b";" } else { b"" });
                    out.extend_from_slice(part);
                }
            }
        }
        is_changed.then_some(out)
    }

    /// What replaces an attribute of a cookie; empty: nothing.
    fn attribute(&self, part: &[u8]) -> Option<Vec<u8>> {
        let equals = memchr::memchr(b'=', part)?;
        let (name, value) = (part[..equals].trim_ascii(), part[equals + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"Path") {
            return Some([b"Path=", &replaced(&self.cookie_paths, value)?[..]].concat());
        }
        if !name.eq_ignore_ascii_case(b"Domain") {
            return None;
        }
        // A dot in front means nothing (RFC 6265 section 5.2.3).
        let value = value.strip_prefix(b".").unwrap_or(value);
        let (_, to) =
            self.cookie_domains.iter().find(|(from, _)| value.eq_ignore_ascii_case(from.as_bytes()))?;
        Some(if to.is_empty() { Vec::new() } else { [b"Domain=", to.as_bytes()].concat() })
    }
}

/// `5; url=http://…`, the URL perhaps in quotes, as browsers read it.
fn refresh(value: &[u8], location: impl Fn(&[u8]) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
    const URL: &[u8] = b"url=";
    let at = value.windows(URL.len()).position(|part| part.eq_ignore_ascii_case(URL))? + URL.len();
    let (before, url) = value.split_at(at);
    let (quote, url) = match url {
        [quote @ (b'"' | b'\''), url @ ..] => (&[*quote][..], url),
        url => (&b""[..], url),
    };
    Some([before, quote, &location(url)?].concat())
}

/// Whether a segment of a path ends here.
fn ends_segment(rest: &[u8]) -> bool {
    matches!(rest, [] | [b'/' | b'?' | b'#', ..])
}

fn replaced(prefixes: &[Prefix], text: &[u8]) -> Option<Vec<u8>> {
    prefixes.iter().find_map(|prefix| prefix.apply(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HeadLimits, Status};

    /// What `see` does with a request for `http://front.example:8080/`.
    fn asked(see: impl FnOnce(&RequestHead<'_>)) {
        let text = b"GET / HTTP/1.1\r\nHost: Front.example:8080\r\n\r\n";
        see(&RequestHead::parse(text, &HeadLimits::default()).expect("a request"));
    }

    fn changed(rules: &ResponseRules, line: &str) -> String {
        let text = format!("A: b\r\n{line}\r\nC: d\r\n").into_bytes();
        let mut head = ResponseHead::of_lines(text, Status::OK, b"OK", None, |_| true);
        asked(|asked| rules.apply(&mut head, asked));
        let lines: Vec<_> = head
            .fields()
            .map(|(name, value)| [name, b": ", value].concat())
            .map(|line| String::from_utf8(line).unwrap())
            .collect();
        assert_eq!((&lines[0][..], &lines[2][..]), ("A: b", "C: d"));
        lines[1].clone()
    }

    #[test]
    fn locations_are_those_of_the_client() {
        let rules = ResponseRules {
            locations: vec![
                Prefix::new("http://Origin:3000/base/", "/app"),
                Prefix::new("/base", "/app"),
                Prefix::new("http://cdn", "https://img.example/"),
            ],
            ..ResponseRules::default()
        };
        for (line, expected) in [
            ("Location: http://origin:3000/base/x?y#z", "Location: /app/x?y#z"),
            ("location: HTTP://ORIGIN:3000/base", "location: /app"),
            ("Location: http://origin:3000/BASE/x", "Location: http://origin:3000/BASE/x"),
            ("Location: http://origin:3000/based/x", "Location: http://origin:3000/based/x"),
            ("Location: http://origin:30001/base", "Location: http://origin:30001/base"),
            ("Location: /base?a", "Location: /app?a"),
            ("Location: /app/x", "Location: /app/x"),
            ("Location: http://origin:3000/app/x", "Location: /app/x"),
            ("Refresh: 5; URL=/app", "Refresh: 5; URL=/app"),
            ("Location: //base/x", "Location: //base/x"),
            ("Location: relative", "Location: relative"),
            ("Location: http://cdn", "Location: https://img.example"),
            ("Location: http://cdn.evil.example/", "Location: http://cdn.evil.example/"),
            ("Content-Location: /base/x", "Content-Location: /app/x"),
            ("Refresh: 5; URL=/base/x", "Refresh: 5; URL=/app/x"),
            ("Refresh: 0;url='http://origin:3000/base/x'", "Refresh: 0;url='/app/x'"),
            ("Refresh: 5", "Refresh: 5"),
            ("Link: </base/x>", "Link: </base/x>"),
        ] {
            assert_eq!(changed(&rules, line), expected);
        }
        let root = ResponseRules {
            locations: vec![Prefix::new("http://origin/", ""), Prefix::new("/", "/app")],
            ..ResponseRules::default()
        };
        for (line, expected) in [
            ("Location: http://origin", "Location: /"),
            ("Location: http://origin?a", "Location: /?a"),
            ("Location: http://origin/x", "Location: /x"),
            ("Location: /x", "Location: /app/x"),
            ("Location: /app", "Location: /app"),
            ("Location: /app/login?a", "Location: /app/login?a"),
            ("Location: /apple", "Location: /app/apple"),
            ("Content-Location: /app#a", "Content-Location: /app#a"),
            ("Refresh: 0; url=\"/app/x\"", "Refresh: 0; url=\"/app/x\""),
            ("Location: //evil.example/x", "Location: //evil.example/x"),
        ] {
            assert_eq!(changed(&root, line), expected);
        }
    }

    /// Goal: an origin that knows the host of the site, but not its route, leads clients back to the route.
    #[test]
    fn locations_at_the_host_that_was_asked_for_lead_to_the_route() {
        let stripped = Some(Prefix::new("", "/app"));
        let moved = Some(Prefix::new("/base", "/app"));
        for (own_paths, url, expected) in [
            (&stripped, "http://front.example:8080/login?a", "/app/login?a"),
            (&stripped, "HTTPS://FRONT.example:8080", "/app"),
            (&stripped, "http://front.example:8080/app/login", "http://front.example:8080/app/login"),
            (&stripped, "http://front.example:8080/apple", "/app/apple"),
            (&stripped, "http://front.example/login", "http://front.example/login"),
            (&stripped, "http://front.example:80801/", "http://front.example:80801/"),
            (&moved, "http://front.example:8080/base/x", "/app/x"),
            (&moved, "http://front.example:8080/other", "http://front.example:8080/other"),
            (&None, "http://front.example:8080/x", "http://front.example:8080/x"),
        ] {
            let rules = ResponseRules { own_paths: own_paths.clone(), ..ResponseRules::default() };
            assert_eq!(changed(&rules, &format!("Location: {url}")), format!("Location: {expected}"));
        }
    }

    #[test]
    fn cookies_belong_to_the_client_s_paths_and_hosts() {
        let rules = ResponseRules {
            cookie_paths: vec![Prefix::new("/base", "/app"), Prefix::new("/", "/all")],
            cookie_domains: vec![("origin".into(), "example.org".into()), ("old".into(), String::new())],
            ..ResponseRules::default()
        };
        for (cookie, expected) in [
            ("a=Path=/base; path=/base/x; HttpOnly", "a=Path=/base; Path=/app/x; HttpOnly"),
            ("a=b;Domain=.ORIGIN;Path=/", "a=b; Domain=example.org; Path=/all/"),
            ("a=b; Domain=old; Secure", "a=b; Secure"),
            ("a=b; Path=/all", "a=b; Path=/all"),
            ("a=b; Path=/all/x", "a=b; Path=/all/x"),
            ("a=b; Path=/allied", "a=b; Path=/all/allied"),
            ("a=b; Domain=sub.origin; Path=x", "a=b; Domain=sub.origin; Path=x"),
            ("Path=/base", "Path=/base"),
        ] {
            assert_eq!(changed(&rules, &format!("Set-Cookie: {cookie}")), format!("Set-Cookie: {expected}"));
        }
    }

    #[test]
    fn via_names_the_version_of_the_origin() {
        let rules = ResponseRules { pseudonym: Some("baton-1".into()), ..ResponseRules::default() };
        for (version, via) in [(Version::Http11, &b"1.1 baton-1"[..]), (Version::Http10, b"1.0 baton-1")] {
            let head = ResponseHead::of_lines(b"A: b\r\n".to_vec(), Status::OK, b"", None, |_| true);
            let mut head = head.with_version(version);
            asked(|asked| rules.apply(&mut head, asked));
            assert_eq!(head.field("Via"), Some(via));
            assert_eq!(head.fields().count(), 2);
        }
    }
}

//! Locations and targets in which parts of a request stand: `/index.php?page=$1`.
//!
//! What a client has written becomes a part of them, so each part is encoded for the place where it stands: a captured `&`
//! behind the `?` is no second parameter, a line break is no second field. A path never begins with two slashes, or with a
//! slash and a backslash, which browsers take for one: `//host/` would be another host.

use std::borrow::Cow;
use std::fmt;

use baton_http::{
    LoneDollar, RequestHead, TextPart, Variable, VariableSource, as_uri, decode_any_path, encode_path,
    encode_query, path_below, text_parts,
};

use crate::matcher::{Matcher, group_of};

/// A text with variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: String,
    parts: Vec<TextPart<Variable>>,
    /// Whether it names a host.
    is_url: bool,
}

/// The root.
impl Default for Template {
    fn default() -> Self {
        Self { text: "/".into(), parts: vec![TextPart::Text("/".into())], is_url: false }
    }
}

/// Why a text is no template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadTemplate {
    /// It begins neither with `/` nor with a variable, nor, for a location, with `http://` or `https://`.
    Beginning,
    /// `$uri` and `$rest` have a query, and stand at the end.
    NotAtTheEnd,
    /// A `$` that begins no name.
    Dollar,
    /// Others than visible ASCII characters, or a fragment within the server.
    Characters,
    /// A part of a request within the host of a URL: clients could choose where they are sent.
    Host,
}

/// A `$` that begins no name.
impl From<LoneDollar> for BadTemplate {
    fn from(_: LoneDollar) -> Self {
        Self::Dollar
    }
}

impl fmt::Display for BadTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Beginning => "expected `/…`, `http://…` or `https://…`",
            Self::NotAtTheEnd => "`$uri` and `$rest` stand at the end: they have the query, too",
            Self::Dollar => {
                "expected a name behind `$`, such as `$path`, `$1` or `${name}`; `$$` is a dollar"
            }
            Self::Characters => "other characters than visible ASCII must be percent-encoded",
            Self::Host => "a client could choose the host: a `/` must come before the variable",
        })
    }
}

impl std::error::Error for BadTemplate {}

/// A request, as far as templates have parts of it.
#[derive(Clone, Copy, Debug)]
pub struct RequestParts<'a> {
    /// The path, as it was sent.
    pub path: &'a [u8],
    /// The query.
    pub query: Option<&'a [u8]>,
    /// The host that it asks, without a port.
    pub host: Option<&'a str>,
    /// The matcher of its route.
    pub matcher: &'a Matcher,
}

impl<'a> RequestParts<'a> {
    /// A request at its route.
    pub fn of(head: &RequestHead<'a>, matcher: &'a Matcher) -> Self {
        Self { path: head.path, query: head.query, host: head.host, matcher }
    }
}

impl Template {
    /// The value of a `Location` field: a URL or a path.
    ///
    /// # Errors
    /// It is none, or lets clients choose the host.
    pub fn location(text: &str) -> Result<Self, BadTemplate> {
        let template = Self::parse(text)?;
        let schemes = ["http://", "https://", "//", "$scheme://", "${scheme}://"];
        if schemes.iter().any(|scheme| text.starts_with(scheme)) {
            check_host(&template.parts)?;
            return Ok(Self { is_url: true, ..template });
        }
        match template.parts.first() {
            Some(TextPart::Text(text)) if text.starts_with('/') => Ok(template),
            Some(TextPart::Variable(first)) if !matches!(first, Variable::Host | Variable::Scheme) => {
                Ok(template)
            }
            _ => Err(BadTemplate::Beginning),
        }
    }

    /// The target of a request within the server: a path, and perhaps a query.
    ///
    /// # Errors
    /// It is none.
    pub fn target(text: &str) -> Result<Self, BadTemplate> {
        if !text.starts_with(['/', '$']) {
            return Err(BadTemplate::Beginning);
        }
        if text.contains('#') {
            return Err(BadTemplate::Characters);
        }
        Self::parse(text)
    }

    fn parse(text: &str) -> Result<Self, BadTemplate> {
        if text.contains(|character: char| !character.is_ascii_graphic()) {
            return Err(BadTemplate::Characters);
        }
        let parts = text_parts(text, |name| Ok::<_, BadTemplate>(Variable::of(name)))?;
        let has_query =
            |part: &TextPart<_>| matches!(part, TextPart::Variable(Variable::Uri | Variable::Rest));
        if parts.iter().rev().skip(1).any(has_query) {
            return Err(BadTemplate::NotAtTheEnd);
        }
        Ok(Self { text: text.to_owned(), parts, is_url: false })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The variables in it.
    pub fn variables(&self) -> impl Iterator<Item = &Variable> {
        self.parts.iter().filter_map(|part| match part {
            TextPart::Variable(variable) => Some(variable),
            TextPart::Text(_) => None,
        })
    }

    /// The location for a request. An empty `$query` at the end takes the `?` or `&` in front of it along.
    pub fn expand(&self, asked: &RequestParts<'_>, source: &dyn VariableSource) -> String {
        let mut location = self.fill(asked, source);
        if self.last() == Some(&Variable::Query) && asked.query.is_none_or(<[u8]>::is_empty) {
            location.truncate(location.trim_end_matches(['?', '&']).len());
        }
        if self.is_url { location } else { absolute(&location) }
    }

    /// The target for a request: the path and the query. Without a `?` in the template, the query is that of the request.
    pub fn expand_target(&self, asked: &RequestParts<'_>) -> (String, Option<String>) {
        let target = absolute(&self.fill(asked, &()));
        let has_query =
            self.text.contains('?') || matches!(self.last(), Some(Variable::Uri | Variable::Rest));
        match target.split_once('?') {
            Some((path, query)) => {
                let query = query.trim_end_matches('&');
                (path.to_owned(), (!query.is_empty()).then(|| query.to_owned()))
            }
            None if has_query => (target, None),
            None => (target, asked.query.map(|query| text(query).into_owned())),
        }
    }

    /// The variable at the end.
    fn last(&self) -> Option<&Variable> {
        match self.parts.last() {
            Some(TextPart::Variable(variable)) => Some(variable),
            _ => None,
        }
    }

    fn fill(&self, asked: &RequestParts<'_>, source: &dyn VariableSource) -> String {
        let mut decoded = Vec::new();
        let needs_groups = self.variables().any(|variable| matches!(variable, Variable::Group(_)));
        let captures = needs_groups.then(|| asked.matcher.captures(asked.path, &mut decoded)).flatten();
        let mut filled = String::new();
        for part in &self.parts {
            let variable = match part {
                TextPart::Text(text) => {
                    filled.push_str(text);
                    continue;
                }
                TextPart::Variable(variable) => variable,
            };
            let in_query = filled.contains('?');
            let encode = |bytes: &[u8]| {
                let encoded = if in_query { encode_query(bytes) } else { encode_path(bytes) };
                String::from_utf8_lossy(&encoded).into_owned()
            };
            filled.push_str(&match variable {
                Variable::Uri => absolute(&text(asked.path)) + &with_mark(asked.query),
                Variable::Rest => {
                    let rest = rest_of(asked.path, asked.matcher.path());
                    // A `Location` that is empty, or begins with the query, would lead back to where the client is.
                    let rest =
                        if filled.is_empty() || !rest.is_empty() { absolute(&rest) } else { String::new() };
                    rest + &with_mark(asked.query)
                }
                Variable::Path if in_query => {
                    let mut plain = Vec::new();
                    let known = decode_any_path(asked.path, &mut plain).is_ok();
                    if known { encode(&[b"/", &plain[..]].concat()) } else { String::new() }
                }
                Variable::Path => absolute(&rest_of(asked.path, "/")),
                Variable::Host => asked.host.unwrap_or("localhost").to_owned(),
                Variable::Query => asked.query.map_or_else(String::new, |query| text(query).into_owned()),
                Variable::Group(name) => {
                    let group = captures.as_ref().and_then(|captures| group_of(captures, name));
                    group.map_or_else(String::new, encode)
                }
                other => {
                    let mut value = Vec::new();
                    source.push(other, &mut value);
                    encode(&value)
                }
            });
        }
        filled
    }
}

/// Whether no client chooses the host of a URL with these parts. The host that it has asked is this server.
fn check_host(parts: &[TextPart<Variable>]) -> Result<(), BadTemplate> {
    let mut has_host = false;
    for (index, part) in parts.iter().enumerate() {
        match part {
            TextPart::Text(text) => {
                // The first text with slashes ends the scheme.
                let is_first =
                    parts[..index].iter().all(|part| matches!(part, TextPart::Variable(Variable::Scheme)));
                let text = if is_first { text.split_once("//").map_or("", |(_, host)| host) } else { text };
                match text.find(['/', '?', '#']) {
                    Some(end) if has_host || end > 0 => return Ok(()),
                    Some(_) => return Err(BadTemplate::Host),
                    None => has_host |= !text.is_empty(),
                }
            }
            TextPart::Variable(Variable::Scheme) if index == 0 => {}
            TextPart::Variable(Variable::Host) => has_host = true,
            // These begin with a slash, or are empty.
            TextPart::Variable(Variable::Uri | Variable::Rest | Variable::Path) if has_host => return Ok(()),
            TextPart::Variable(_) => return Err(BadTemplate::Host),
        }
    }
    if has_host { Ok(()) } else { Err(BadTemplate::Host) }
}

/// The path below the route's path: as the client has spelled it, if it has spelled the route's path plainly.
fn rest_of<'a>(path: &'a [u8], route_path: &str) -> Cow<'a, str> {
    let plain = path.strip_prefix(route_path.trim_end_matches('/').as_bytes());
    if let Some(rest) = plain.filter(|rest| matches!(rest, [] | [b'/', ..]) && is_plain(path)) {
        return text(rest);
    }
    let mut decoded = Vec::with_capacity(path.len());
    let below = decode_any_path(path, &mut decoded).ok();
    let below = below.and_then(|_| path_below(&decoded, route_path.as_bytes()));
    let rest = encode_path(below.unwrap_or_default());
    Cow::Owned(String::from_utf8_lossy(&rest).into_owned())
}

/// Whether it has no segments that decoding would remove.
fn is_plain(path: &[u8]) -> bool {
    let mut segments = path.split(|byte| *byte == b'/').skip(1).peekable();
    std::iter::from_fn(|| segments.next().map(|segment| (segment, segments.peek().is_none())))
        .all(|(segment, is_last)| is_last && segment.is_empty() || !matches!(segment, [] | [b'.' | b'%', ..]))
}

/// With one slash in front.
pub fn absolute(path: &str) -> String {
    format!("/{}", path.trim_start_matches(['/', '\\']))
}

/// The query of a request with the `?` in front.
pub fn with_mark(query: Option<&[u8]>) -> String {
    query.map_or_else(String::new, |query| format!("?{}", text(query)))
}

/// A part of a target, as a URI may have it.
pub fn text(part: &[u8]) -> Cow<'_, str> {
    let text = match as_uri(part) {
        Cow::Borrowed(text) => String::from_utf8_lossy(text),
        Cow::Owned(text) => Cow::Owned(String::from_utf8_lossy(&text).into_owned()),
    };
    if text.contains('\\') { Cow::Owned(text.replace('\\', "%5C")) } else { text }
}

/// How often the target of one request is rewritten; more is a loop.
pub const REWRITES_MAX: u32 = 10;

#[cfg(test)]
mod tests {
    use baton_http::HeadLimits;
    use baton_pattern::Pattern;

    use super::*;

    #[derive(Debug)]
    struct Known;

    impl VariableSource for Known {
        fn push(&self, variable: &Variable, out: &mut Vec<u8>) {
            out.extend_from_slice(match variable {
                Variable::Scheme => b"https",
                Variable::SslClientSubject => b"CN=a&b//",
                _ => b"",
            });
        }
    }

    fn at(matcher: &Matcher, template: &Template, target: &str) -> String {
        let text = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
        let head = RequestHead::parse(text.as_bytes(), &HeadLimits::default()).unwrap();
        template.expand(&RequestParts::of(&head, matcher), &Known)
    }

    fn located(location: &str, route_path: &str, target: &str) -> String {
        at(&Matcher::prefix(route_path), &Template::location(location).unwrap(), target)
    }

    fn matched(location: &str, regex: &str, target: &str) -> String {
        let matcher = Matcher::pattern(Pattern::regex(regex).unwrap());
        at(&matcher, &Template::location(location).unwrap(), target)
    }

    fn rewritten(to: &str, regex: &str, target: &str) -> (String, Option<String>) {
        let matcher = Matcher::pattern(Pattern::regex(regex).unwrap());
        let (path, query) =
            target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let asked = RequestParts {
            path: path.as_bytes(),
            query: query.map(str::as_bytes),
            host: None,
            matcher: &matcher,
        };
        Template::target(to).unwrap().expand_target(&asked)
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
        assert_eq!(located("https://www.$host:8443$uri", "/", "/a?b"), "https://www.a:8443/a?b");
        for (location, target, expected) in [
            ("$scheme://$host$uri", "/a?b", "https://a/a?b"),
            ("${scheme}://$host/x", "/a?b", "https://a/x"),
            (
                "https://login.example/?to=$scheme://$host$uri",
                "/a?b",
                "https://login.example/?to=https://a/a?b",
            ),
            ("/who?is=$ssl_client_subject", "/", "/who?is=CN%3Da%26b//"),
            ("$ssl_client_subject", "/", "/CN=a&b//"),
            ("/x?$query", "/a?b", "/x?b"),
            ("/x?$query", "/a", "/x"),
            ("/x?y=1&$query", "/a", "/x?y=1"),
            ("/x$$y", "/a", "/x$y"),
        ] {
            assert_eq!(located(location, "/", target), expected, "{location}");
        }
    }

    #[test]
    fn groups_stand_where_they_are_named() {
        const DATED: &str = r"^/(?<year>\d+)/(.*)$";
        for (location, target, expected) in [
            ("/blog/$2?year=$year", "/2024/a%20b", "/blog/a%20b?year=2024"),
            ("/${year}x/$1-$0", "/2024/a", "/2024x/2024-/2024/a"),
            ("https://b.example/$2#top", "/2024/a?q", "https://b.example/a#top"),
            ("/x$path?q=$query", "/2024/a?q&r=1", "/x/2024/a?q=q&r=1"),
            ("/find?path=$path", "/2024/a%26b", "/find?path=/2024/a%26b"),
            ("/$2$uri", "/2024/a?q", "/a/2024/a?q"),
        ] {
            assert_eq!(matched(location, DATED, target), expected, "{location} {target}");
        }
    }

    #[test]
    fn what_a_client_writes_stays_a_part_of_a_location() {
        for (location, regex, target, expected) in [
            ("/$1", "^/x(.*)$", "/x%2Fevil.example/", "/evil.example/"),
            ("/$1", "^/x(.*)$", "/x//evil.example/", "/evil.example/"),
            ("$1", "^/x(.*)$", "/x%5Cevil.example", "/%5Cevil.example"),
            ("$1", "^/(.*)$", "/http:%2F%2Fevil.example", "/http:/evil.example"),
            ("$path", "^", "//evil.example/", "/evil.example/"),
            ("$path", "^", "/%2Fevil.example/", "/evil.example/"),
            ("$path", "^", "/%5C%5Cevil.example/", "/%5C%5Cevil.example/"),
            ("/a/$1", "^/(.*)$", "/x%0D%0ASet-Cookie:%20a", "/a/x%0D%0ASet-Cookie:%20a"),
            ("/a?b=$1", "^/(.*)$", "/x%0D%0A&c=d%23%2B", "/a?b=x%0D%0A%26c%3Dd%23%2B"),
            ("https://h.example/$1", "^/(.*)$", "/%2F@evil.example/", "https://h.example/@evil.example/"),
            ("/a/$1", "^/(.*)$", "/x%3Fy%23z", "/a/x%3Fy%23z"),
        ] {
            assert_eq!(matched(location, regex, target), expected, "{location} {target}");
        }
    }

    #[test]
    fn a_template_says_what_is_wrong_with_it() {
        for (text, wrong) in [
            ("a", BadTemplate::Beginning),
            ("ftp://a/", BadTemplate::Beginning),
            ("javascript:alert(1)", BadTemplate::Beginning),
            ("/$uri/x", BadTemplate::NotAtTheEnd),
            ("/a$", BadTemplate::Dollar),
            ("/$-", BadTemplate::Dollar),
            ("/${a", BadTemplate::Dollar),
            ("/a b", BadTemplate::Characters),
            ("/ä", BadTemplate::Characters),
            ("https://$1/", BadTemplate::Host),
            ("https://a.example$1", BadTemplate::Host),
            ("https://a.example$query", BadTemplate::Host),
            ("https://$uri", BadTemplate::Host),
            ("//$1/", BadTemplate::Host),
            ("http://a$1.example$uri", BadTemplate::Host),
            ("https://$host$1", BadTemplate::Host),
            ("https://$hostile/", BadTemplate::Host),
            ("https:///$1", BadTemplate::Host),
            ("$scheme://$1/", BadTemplate::Host),
            ("https://$scheme/", BadTemplate::Host),
            ("$scheme$host/", BadTemplate::Beginning),
            ("$host/", BadTemplate::Beginning),
        ] {
            assert_eq!(Template::location(text), Err(wrong), "{text}");
        }
        for text in
            ["https://a.example$uri", "https://a.example:8443$path", "https://a.example/$1", "//a.example/$1"]
        {
            assert!(Template::location(text).is_ok(), "{text}");
        }
        assert_eq!(Template::target("https://a/"), Err(BadTemplate::Beginning));
        assert_eq!(Template::target("/a#b"), Err(BadTemplate::Characters));
    }

    #[test]
    fn a_target_has_the_query_that_it_names() {
        let some = |path: &str, query: &str| (path.to_owned(), Some(query.to_owned()));
        for (to, target, expected) in [
            ("/i.php?p=$1", "/a&b?c=d", some("/i.php", "p=a%26b")),
            ("/i.php?p=$1&$query", "/a?c=d", some("/i.php", "p=a&c=d")),
            ("/i.php?p=$1&$query", "/a", some("/i.php", "p=a")),
            ("/i.php", "/a?c=d", some("/i.php", "c=d")),
            ("/i.php", "/a", ("/i.php".into(), None)),
            ("/i.php?", "/a?c=d", ("/i.php".into(), None)),
            ("/i.php$path", "/a%20b?c", some("/i.php/a%20b", "c")),
            ("/i$uri", "/a?c", some("/i/a", "c")),
            ("/i$uri", "/a", ("/i/a".into(), None)),
            // A path that leaves the root is refused before any route. Nothing of it would be taken.
            ("/s/$1", "/../x", ("/s/".into(), None)),
        ] {
            assert_eq!(rewritten(to, "^/(.*)$", target), expected, "{to} {target}");
        }
    }
}

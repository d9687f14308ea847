//! Which requests a route answers, and which of several routes answers a request.
//!
//! Paths are compared as they were decoded and made plain: no spelling of a path gets around its route. An exact path comes
//! first. Else the longest prefix is found, which yields to the first pattern that matches, unless it comes before
//! patterns.

use std::fmt;

use baton_http::{decode_any_path, path_below};
use baton_pattern::{Captures, Pattern};

/// Which requests of its site a route answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matcher {
    path: String,
    by: By,
    is_internal: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum By {
    Exact,
    Prefix { before_patterns: bool },
    Pattern(Pattern),
}

impl Matcher {
    /// All paths below this decoded one, ending on a segment's border: `/docs` holds for `/docs` and `/docs/…`, not for
    /// `/docset`.
    pub fn prefix(path: impl Into<String>) -> Self {
        Self { path: path.into(), by: By::Prefix { before_patterns: false }, is_internal: false }
    }

    /// This decoded path alone.
    pub fn exact(path: impl Into<String>) -> Self {
        Self { path: path.into(), by: By::Exact, is_internal: false }
    }

    /// All paths that the pattern matches.
    pub fn pattern(pattern: Pattern) -> Self {
        Self { path: "/".into(), by: By::Pattern(pattern), is_internal: false }
    }

    /// Makes a prefix that no pattern is asked behind, where it is the longest.
    pub fn before_patterns(self) -> Self {
        Self { by: By::Prefix { before_patterns: true }, ..self }
    }

    /// Keeps clients out: only requests that other routes rewrite get there, all others get 404.
    pub fn internal(self) -> Self {
        Self { is_internal: true, ..self }
    }

    /// Whether clients cannot ask for it.
    pub fn is_internal(&self) -> bool {
        self.is_internal
    }

    /// Whether both are about the same paths, in the same place among the others.
    pub fn has_paths_of(&self, other: &Self) -> bool {
        self.path == other.path && self.by == other.by
    }

    /// The path that all of its requests lie below: of a pattern, the root.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether it is the prefix of all paths.
    pub fn is_whole(&self) -> bool {
        self.path == "/" && matches!(self.by, By::Prefix { .. })
    }

    /// Whether it is one path alone.
    pub fn is_exact(&self) -> bool {
        self.by == By::Exact
    }

    /// Whether patterns that match come first.
    pub fn yields_to_patterns(&self) -> bool {
        self.by == By::Prefix { before_patterns: false }
    }

    /// What the groups of its pattern have matched of a path as it was sent, which is decoded into `decoded`. `None`: it has no
    /// pattern, or another path.
    pub fn captures<'d>(&self, path: &[u8], decoded: &'d mut Vec<u8>) -> Option<Captures<'d>> {
        let pattern = self.as_pattern()?;
        decode_any_path(path, decoded).ok()?;
        make_absolute(decoded);
        pattern.captures(decoded)
    }

    /// The pattern that its paths match.
    pub fn as_pattern(&self) -> Option<&Pattern> {
        match &self.by {
            By::Pattern(pattern) => Some(pattern),
            By::Exact | By::Prefix { .. } => None,
        }
    }

    /// By what a request is found to belong here.
    pub fn kind(&self) -> &'static str {
        match &self.by {
            By::Exact => "exact path",
            By::Prefix { before_patterns: false } => "longest prefix",
            By::Prefix { before_patterns: true } => "longest prefix, before patterns",
            By::Pattern(pattern) => pattern.kind(),
        }
    }

    /// Whether it holds for a decoded path, without its first slash; of a pattern it is not known yet.
    fn holds(&self, decoded: &[u8]) -> bool {
        match &self.by {
            By::Prefix { .. } => path_below(decoded, self.path.as_bytes()).is_some(),
            By::Exact => self.path.as_bytes().strip_prefix(b"/").is_some_and(|own| is_same(own, decoded)),
            By::Pattern(_) => false,
        }
    }

    /// Exact paths first, then prefixes, the longest ones first, then patterns.
    fn order(&self) -> impl Ord + use<> {
        match &self.by {
            By::Exact => (0, 0),
            By::Prefix { .. } => (1, usize::MAX - self.path.trim_end_matches('/').len()),
            By::Pattern(_) => (2, 0),
        }
    }
}

/// Whether a decoded path is this one: encoded slashes are no way around.
fn is_same(own: &[u8], decoded: &[u8]) -> bool {
    let has_more_slashes = || decoded.starts_with(b"/") || decoded.windows(2).any(|two| two == b"//");
    own == decoded
        || decoded.len() > own.len() && has_more_slashes() && {
            let mut absolute = [b"/", decoded].concat();
            join_slashes(&mut absolute);
            own == &absolute[1..]
        }
}

/// Makes slashes that follow each other one.
fn join_slashes(path: &mut Vec<u8>) {
    path.dedup_by(|next, before| *next == b'/' && *before == b'/');
}

impl AsRef<Self> for Matcher {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// In the words of the configuration; a prefix is its path.
impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.by {
            By::Exact => write!(f, "exact {}", self.path),
            By::Prefix { .. } => f.write_str(&self.path),
            By::Pattern(pattern) => write!(f, "{} {}", pattern.kind(), pattern.text()),
        }
    }
}

/// Puts routes in the order in which [`find`] expects them. Patterns stay in theirs.
pub fn sort<R: AsRef<Matcher>>(routes: &mut [R]) {
    routes.sort_by_key(|route| route.as_ref().order());
}

/// The route of a decoded path, which has no first slash and may get one.
pub fn find<'r, R: AsRef<Matcher>>(routes: &'r [R], decoded: &mut Vec<u8>) -> Option<&'r R> {
    position(routes, decoded, |_| true).map(|index| &routes[index])
}

/// The index of the route that has a path, as [`find`] does, where routes that `admits` refuses are passed over.
pub(crate) fn position<R: AsRef<Matcher>>(
    routes: &[R],
    decoded: &mut Vec<u8>,
    admits: impl Fn(&R) -> bool,
) -> Option<usize> {
    let plain = routes.iter().position(|route| route.as_ref().holds(decoded) && admits(route));
    let is_pattern = |route: &R| route.as_ref().as_pattern().is_some();
    let may_yield = plain.is_none_or(|index| routes[index].as_ref().yields_to_patterns());
    if !may_yield || !routes.last().is_some_and(is_pattern) {
        return plain;
    }
    make_absolute(decoded);
    let first_pattern = routes.partition_point(|route| !is_pattern(route));
    let matches = |route: &R| {
        route.as_ref().as_pattern().is_some_and(|pattern| pattern.matches(decoded)) && admits(route)
    };
    routes[first_pattern..].iter().position(matches).map(|index| first_pattern + index).or(plain)
}

/// What a group has matched, by its number or name.
pub(crate) fn group_of<'d>(captures: &Captures<'d>, name: &str) -> Option<&'d [u8]> {
    let group = match name.parse::<usize>() {
        Ok(number) => captures.get(number),
        Err(_) => captures.name(name),
    };
    group.map(|group| group.as_bytes())
}

/// Gives a decoded path its first slash, for patterns.
fn make_absolute(decoded: &mut Vec<u8>) {
    decoded.insert(0, b'/');
    join_slashes(decoded);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(places: &[Matcher], path: &str) -> String {
        let mut places = places.to_vec();
        sort(&mut places);
        let mut decoded = Vec::new();
        decode_any_path(path.as_bytes(), &mut decoded).expect("a path");
        find(&places, &mut decoded).map_or("none".into(), ToString::to_string)
    }

    #[test]
    fn exact_paths_come_first_and_patterns_before_prefixes() {
        let glob = |text| Matcher::pattern(Pattern::glob(text).unwrap());
        let regex = |text| Matcher::pattern(Pattern::regex(text).unwrap());
        let places = [
            Matcher::prefix("/"),
            regex("\\.php$"),
            Matcher::prefix("/static").before_patterns(),
            Matcher::prefix("/static/run"),
            glob("*.php"),
            glob("/static/*.css"),
            Matcher::exact("/a.php"),
            Matcher::exact("/docs/"),
        ];
        for (path, route) in [
            ("/", "/"),
            ("/x", "/"),
            ("/a.php", "exact /a.php"),
            ("//x/..//%61.ph%70", "exact /a.php"),
            ("/A.php", "regex \\.php$"),
            ("/a.php/", "/"),
            ("/b/a.php", "regex \\.php$"),
            ("/b%2Fa.php", "regex \\.php$"),
            ("/docs", "/"),
            ("/docs/", "exact /docs/"),
            ("/%2Fdocs/%2F", "exact /docs/"),
            ("/%2Fa.php", "exact /a.php"),
            ("/docs/%2Fx", "/"),
            ("/static/a.php", "/static"),
            ("/static/a.css", "/static"),
            ("/static/run/a.php", "regex \\.php$"),
            ("/static/run/a.css", "/static/run"),
        ] {
            assert_eq!(found(&places, path), route, "{path}");
        }
        assert_eq!(found(&places[1..2], "/x"), "none");
        assert_eq!(found(&[], "/x"), "none");
    }
}

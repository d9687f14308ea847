//! Routes that answer no request: others always answer first, or send it around in a loop.

use baton_http::{Variable, decode_any_path, encode_path};
use baton_pattern::Pattern;
use baton_site::matcher::{self, Matcher};
use baton_site::template::{REWRITES_MAX, RequestParts, Template};

use super::check::{Conflicts, of_site};
use super::condition::When;
use super::error::Complaint;
use super::raw::Step;
use super::route::{Rewrite, RouteSettings};
use super::site::Site;

impl Conflicts<'_> {
    /// Complains of each route that no request can get to, once.
    pub(super) fn shadowed_routes(&mut self) {
        for (site_index, site) in self.config.sites.iter().enumerate() {
            let routes = of_site(site_index, "route");
            if self.raw.find(&[&routes[..], &[Step::Index(site.routes.len())]].concat()).is_some() {
                continue;
            }
            let mut known: Vec<CheckedRoute> = Vec::new();
            for (index, route) in site.routes.iter().enumerate() {
                let key = route.settings.place_key();
                let at = [&routes[..], &[Step::Index(index), Step::Key(key)]].concat();
                if let Some(span) = self.raw.find(&at).filter(|_| self.is_sound(&at)) {
                    let when = route.settings.when.clone();
                    known.push(CheckedRoute { matcher: route.settings.matcher(), when, span });
                }
            }
            for (index, route) in known.iter().enumerate() {
                if let Some((title, first)) = shadow(&known, index) {
                    let complaint = Complaint::new(title)
                        .at(route.span.clone(), "would never be asked")
                        .at(first.span.clone(), "is asked first");
                    self.found.push(complaint);
                }
            }
            self.rewriting_loops(site, &routes);
            self.never_reached(site, &routes);
            self.nothing_to_come_before(&routes, site.routes.iter().map(|route| &route.settings));
        }
    }

    /// Complains of routes whose requests are rewritten again and again, as far as that can be seen without a request.
    fn rewriting_loops(&mut self, site: &Site, routes: &[Step<'_>]) {
        for (index, route) in site.routes.iter().enumerate() {
            let Some(rewrite) = &route.settings.rewrite else { continue };
            let at = [routes, &[Step::Index(index), Step::Key("rewrite")]].concat();
            if !self.is_sound(&at) {
                continue;
            }
            if let Some((asked, target)) = looping(site, &route.settings, &rewrite.to) {
                let complaint = Complaint::new("requests are rewritten in a loop");
                let label = format!("a request for {asked} would become one for {target}, and so on");
                let complaint = complaint.at(self.raw.span(&at), label);
                self.found.push(complaint.help("let the target belong to a route without `rewrite`"));
            }
        }
    }

    /// Complains of prefixes that come before patterns where there are none.
    fn nothing_to_come_before<'r>(
        &mut self,
        routes: &[Step<'_>],
        settings: impl Iterator<Item = &'r RouteSettings> + Clone,
    ) {
        if settings.clone().any(|route| route.matcher().as_pattern().is_some()) {
            return;
        }
        for (index, _) in settings.enumerate().filter(|(_, route)| route.before_patterns) {
            let at = [routes, &[Step::Index(index), Step::Key("before_patterns")]].concat();
            if self.raw.find(&at).is_some() && self.is_sound(&at) {
                let complaint = Complaint::new("a route before no pattern");
                let complaint =
                    complaint.at(self.raw.span(&at), "no route of the site has a `glob` or a `regex`");
                self.found.push(complaint.help("remove `before_patterns`: it has no effect"));
            }
        }
    }
}

/// A path of the route whose requests are rewritten more often than the server would, and where they get first.
fn looping(site: &Site, route: &RouteSettings, to: &Template) -> Option<(String, String)> {
    let mut places: Vec<_> = site
        .routes
        .iter()
        .map(|route| Located { matcher: route.settings.matcher(), rewrite: route.settings.rewrite.as_ref() })
        .collect();
    matcher::sort(&mut places);
    let matcher = route.matcher();
    let is_fixed = to.variables().all(|variable| *variable == Variable::Query);
    let first = match matcher.as_pattern() {
        // Which paths it matches is not known, and makes no difference.
        Some(pattern) if is_fixed => pattern.text().to_owned(),
        Some(_) => return None,
        None if matcher.is_exact() => encoded(matcher.path()),
        None => encoded(&format!("{}/page", matcher.path().trim_end_matches('/'))),
    };
    let mut path = first.clone();
    let (mut matcher, mut to, mut decoded) = (&matcher, to, Vec::new());
    for _ in 0..REWRITES_MAX {
        path = to.expand_target(&RequestParts { path: path.as_bytes(), query: None, host: None, matcher }).0;
        decode_any_path(path.as_bytes(), &mut decoded).ok()?;
        let next = matcher::find(&places, &mut decoded)?;
        (matcher, to) = (&next.matcher, &next.rewrite?.to);
    }
    let first_target = route.rewrite.as_ref()?.to.expand_target(&RequestParts {
        path: first.as_bytes(),
        query: None,
        host: None,
        matcher: &route.matcher(),
    });
    Some((first, first_target.0))
}

fn encoded(path: &str) -> String {
    String::from_utf8_lossy(&encode_path(path.as_bytes())).into_owned()
}

struct Located<'a> {
    matcher: Matcher,
    rewrite: Option<&'a Rewrite>,
}

impl AsRef<Matcher> for Located<'_> {
    fn as_ref(&self) -> &Matcher {
        &self.matcher
    }
}

/// A route that was read without complaints.
struct CheckedRoute {
    matcher: Matcher,
    when: Option<When>,
    /// Where its path or its pattern stands.
    span: std::ops::Range<usize>,
}

/// The route that answers all requests of another one, and the mistake in words.
fn shadow(routes: &[CheckedRoute], index: usize) -> Option<(String, &CheckedRoute)> {
    let CheckedRoute { matcher, when, .. } = &routes[index];
    let takes_all = |other: &CheckedRoute| other.when.is_none();
    let twin = routes[..index]
        .iter()
        .find(|other| is_same(&other.matcher, matcher) && (takes_all(other) || other.when == *when));
    if let Some(twin) = twin {
        let what = match matcher.as_pattern() {
            Some(pattern) => format!("two routes have the {} {}", pattern.kind(), pattern.text()),
            None if matcher.is_exact() => format!("two routes have the exact path {}", matcher.path()),
            None => format!("two routes have the path {}", matcher.path()),
        };
        return Some((what, twin));
    }
    if let Some(path) = matcher.as_pattern().and_then(|pattern| pattern.only_path())
        && let Some(exact) =
            routes.iter().find(|other| other.matcher.has_paths_of(&Matcher::exact(path)) && takes_all(other))
    {
        return Some((format!("the glob {path} is an exact path of another route"), exact));
    }
    let earlier = if matcher.as_pattern().is_some() { &routes[..index] } else { routes };
    let is_caught = matcher.as_pattern().is_some() || matcher.yields_to_patterns();
    let matches_all = |other: &&CheckedRoute| {
        takes_all(other) && other.matcher.as_pattern().is_some_and(Pattern::matches_everything)
    };
    let catching = earlier.iter().find(matches_all).filter(|_| is_caught)?;
    Some((format!("{} matches every path", catching.matcher), catching))
}

/// Whether two places have the same requests; a slash at the end of a prefix makes no difference.
fn is_same(one: &Matcher, other: &Matcher) -> bool {
    let is_prefix = |matcher: &Matcher| matcher.as_pattern().is_none() && !matcher.is_exact();
    let bare = |matcher: &Matcher| matcher.path().trim_end_matches('/').to_owned();
    one.has_paths_of(other) || is_prefix(one) && is_prefix(other) && bare(one) == bare(other)
}

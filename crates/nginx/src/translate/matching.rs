//! Which routes stand for which locations: the rules of nginx, said in those of Baton.
//!
//! A prefix of nginx ends anywhere: `/admin` is for `/admin.html`, too; a `path` of Baton ends on a segment's border, and
//! one that ends in a slash is also for the path without it. So a location may need a second route.

use super::guards::closed_with;
use super::location::Route;
use crate::written::{Keys, Value};

/// All routes of a server whose locations became these.
pub(super) fn arranged(mut routes: Vec<Route>) -> Vec<Route> {
    let has_pattern = routes.iter().any(|route| route.key == "regex");
    let has_whole = routes.iter().any(|route| route.is_whole() && says_more_than_files(route));
    routes.retain(|route| {
        !route.keys.is_empty() || route.to_https.is_some() || has_pattern || has_whole || route.is_whole()
    });
    let without_slash = routes.iter().filter_map(|route| without_slash(route, &routes)).collect::<Vec<_>>();
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for route in routes.iter().filter(|route| route.key == "path" && ends_within(route, &routes)) {
        let list = if route.is_first { &mut first } else { &mut last };
        list.push(within(route));
    }
    for list in [&mut first, &mut last] {
        list.sort_by_key(|route| std::cmp::Reverse(route.prefix.len()));
    }
    // `/a` beside `/a/`: for Baton, the second is for both.
    let prefixes: Vec<_> =
        routes.iter().filter(|route| route.key == "path").map(|route| route.prefix.clone()).collect();
    for route in routes.iter_mut().filter(|route| route.key == "path") {
        if prefixes.contains(&format!("{}/", route.prefix)) {
            route.key = "exact";
            route.is_first = false;
        }
    }
    let known: Vec<_> =
        routes.iter().filter(|route| route.key == "exact").map(|route| route.value.clone()).collect();
    let without_slash = without_slash.into_iter().filter(|route| !known.contains(&route.value));
    first.into_iter().chain(routes).chain(without_slash).chain(last).collect()
}

fn says_more_than_files(route: &Route) -> bool {
    route.to_https.is_some() || !route.keys.is_empty()
}

/// Whether the prefix, or a shorter one, is for paths that go on within its last segment.
fn ends_within(route: &Route, routes: &[Route]) -> bool {
    let is_open = |prefix: &str| prefix.len() > 1 && !prefix.ends_with('/');
    is_open(&route.prefix)
        || routes.iter().any(|other| {
            other.key == "path"
                && is_open(&other.prefix)
                && route
                    .prefix
                    .strip_prefix(&*other.prefix)
                    .is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
        })
}

/// The same for paths that go on within the last segment of the prefix. What stands for the prefix itself cannot stand for
/// these.
fn within(route: &Route) -> Route {
    let behind = if route.prefix.ends_with('/') { "" } else { "[^/]" };
    let replaces_path = replaces_path(route)
        || route.keys.get("root").is_some() && route.keys.get("strip_prefix").is_none()
        || route.keys.get("redirect").is_some_and(|redirect| redirect.to_string().contains("$rest"));
    let keys = if replaces_path { closed_with(404) } else { route.keys.clone() };
    Route {
        key: "regex",
        value: format!("^{}{behind}", quoted(&route.prefix)),
        is_first: false,
        keys,
        notes: Vec::new(),
        prefix: route.prefix.clone(),
        to_https: route.to_https,
    }
}

/// Whether its origin is asked for other paths than clients ask for.
fn replaces_path(route: &Route) -> bool {
    let Some(Value::Table(keys)) = route.keys.get("proxy") else { return false };
    let of = |value: &Value| match value {
        Value::Text(url) => match url.strip_prefix("unix:") {
            Some(socket) => socket.contains(":/"),
            None => url.split_once("://").is_some_and(|(_, rest)| rest.contains('/')),
        },
        _ => false,
    };
    match keys.get("to") {
        Some(Value::List(all)) => all.iter().any(|one| match one {
            Value::Table(one) => one.get("to").is_some_and(of),
            one => of(one),
        }),
        Some(one) => of(one),
        None => false,
    }
}

/// What answers `/a` where the location is `/a/`: a redirection in front of an origin, else what is around it.
fn without_slash(route: &Route, routes: &[Route]) -> Option<Route> {
    let path = route.prefix.strip_suffix('/').filter(|path| !path.is_empty() && route.key == "path")?;
    let goes_elsewhere = ["proxy", "fastcgi", "scgi"].iter().any(|key| route.keys.get(key).is_some());
    let keys = if goes_elsewhere && route.keys.get("root").is_none() {
        let mut redirect = Keys::default();
        redirect.set("to", format!("{}$rest", route.value));
        redirect.set("status", 301_u64);
        let mut keys = Keys::default();
        keys.set("redirect", redirect);
        keys
    } else if ["respond", "redirect", "allow", "deny", "basic_auth", "rate_limit"]
        .iter()
        .any(|key| route.keys.get(key).is_some())
    {
        let around = routes.iter().filter(|other| other.key == "path" && path.starts_with(&*other.prefix));
        let around = around.max_by_key(|other| other.prefix.len());
        around.map(|around| around.keys.clone()).unwrap_or_default()
    } else {
        return None;
    };
    let value = route.value.trim_end_matches('/').to_owned();
    Some(Route {
        key: "exact",
        value,
        is_first: false,
        keys,
        notes: Vec::new(),
        to_https: None,
        prefix: path.to_owned(),
    })
}

/// A text as a regular expression that matches it alone.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    for character in text.chars() {
        if r".+*?()|[]{}^$\#&-~".contains(character) {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    quoted
}

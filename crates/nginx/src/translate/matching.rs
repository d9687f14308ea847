//! Which routes stand for which locations: the rules of nginx, said in those of Baton.
//!
//! A prefix of nginx ends anywhere: `/admin` is for `/admin.html`, too; a `path` of Baton ends on a segment's border, and
//! one that ends in a slash is also for the path without it. So a location may need a second route.

use super::guards::closed_with;
use super::route::{Route, quoted, rewritten_to};
use crate::written::{Keys, Value};

/// All routes of a server whose locations became these. `named`: the paths of named locations; `index`: the file that
/// nginx looks for first in a folder, and then asks its locations for; `nested`: prefixes with expressions of their own.
pub(super) fn arranged(
    mut routes: Vec<Route>,
    named: &[String],
    index: Option<&str>,
    nested: &[&str],
) -> Vec<Route> {
    let guards = routes.iter().flat_map(|route| guards_below(route, &routes, named)).collect::<Vec<_>>();
    let of_index = routes.iter().filter_map(|route| of_index(route, &routes, index?)).collect::<Vec<_>>();
    let beside =
        routes.iter().filter(|route| is_guarded_within(route, nested)).map(|route| as_expression(route, ""));
    let guards: Vec<_> = guards.into_iter().chain(beside).collect();
    routes.splice(0..0, guards);
    let known =
        |route: &Route| routes.iter().any(|other| (other.key, &other.value) == (route.key, &route.value));
    let of_index: Vec<_> = of_index.into_iter().filter(|route| !known(route)).collect();
    routes.extend(of_index);
    let has_pattern = routes.iter().any(|route| route.key == "regex");
    let says_something = |route: &Route| !route.keys.is_empty() || route.to_https.is_some();
    let spoken = routes.iter().filter(|route| says_something(route) && !route.prefix.is_empty());
    let spoken: Vec<_> = spoken.map(|route| route.prefix.clone()).collect();
    routes.retain(|route| {
        let is_exception = || spoken.iter().any(|other| route.prefix.starts_with(&**other));
        says_something(route) || has_pattern || route.is_whole() || is_exception()
    });
    for route in &mut routes {
        route.is_first &= has_pattern;
    }
    let beyond_scripts = beyond_scripts(&routes);
    let without_slash =
        routes.iter().filter_map(|route| without_slash(route, &routes, named)).collect::<Vec<_>>();
    let (mut first, mut last) = (Vec::new(), Vec::new());
    let enclosing: Vec<_> = routes
        .iter()
        .filter(|route| encloses_first(route, &routes))
        .map(|route| route.prefix.clone())
        .collect();
    for route in routes.iter().filter(|route| route.key == "path" && !named.contains(&route.prefix)) {
        let is_all = enclosing.contains(&route.prefix) || is_within(route, &routes);
        let behind = match (is_all, is_open(&route.prefix)) {
            (true, _) => "",
            (false, true) => "[^/]",
            (false, false) => continue,
        };
        let list = if route.is_first && has_pattern { &mut first } else { &mut last };
        list.push(as_expression(route, behind));
    }
    last.extend(beyond_scripts);
    for list in [&mut first, &mut last] {
        list.sort_by_key(|route| std::cmp::Reverse(route.prefix.len()));
    }
    // `/a` beside `/a/`: for Baton, the second is for both.
    let prefixes: Vec<_> =
        routes.iter().filter(|route| route.key == "path").map(|route| route.prefix.clone()).collect();
    for route in routes.iter_mut().filter(|route| route.key == "path") {
        route.is_first &= !enclosing.contains(&route.prefix);
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

/// Whether a prefix is for paths that go on within its last segment.
fn is_open(prefix: &str) -> bool {
    prefix.len() > 1 && !prefix.ends_with('/')
}

/// Whether a shorter prefix that goes on within its last segment is for the paths of this one, too.
fn is_within(route: &Route, routes: &[Route]) -> bool {
    routes.iter().filter(|other| other.key == "path" && is_open(&other.prefix)).any(|other| {
        let rest = route.prefix.strip_prefix(&*other.prefix);
        rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
    })
}

/// Whether it comes before expressions, and one within it has to, which is one: then it can only be one, too.
fn encloses_first(route: &Route, routes: &[Route]) -> bool {
    let inner = routes.iter().filter(|other| other.key == "path" && other.is_first && is_open(&other.prefix));
    route.is_first
        && inner
            .map(|other| &other.prefix)
            .any(|inner| *inner != route.prefix && inner.starts_with(&*route.prefix))
}

/// Whether a route guards paths below a prefix whose expressions would be asked first.
fn is_guarded_within(route: &Route, nested: &[&str]) -> bool {
    let is_below = |prefix: &&str| route.prefix.len() > prefix.len() && route.prefix.starts_with(*prefix);
    route.key == "path" && refuses_some(route) && nested.iter().any(is_below)
}

/// The same as an expression: for what goes on within the last segment, or for all paths. What stands for the prefix itself
/// cannot stand for these.
fn as_expression(route: &Route, behind: &str) -> Route {
    let is_about_prefix = replaces_path(route)
        || route.keys.get("root").is_some() && route.keys.get("strip_prefix").is_none()
        || route.keys.get("redirect").is_some_and(|redirect| redirect.to_string().contains("$rest"));
    let keys = if is_about_prefix { closed_with(404) } else { route.keys.clone() };
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

/// A route that runs scripts runs them with more behind their names, too, which `location ~ \.php$` is not for: what is
/// around that location answers these paths.
fn beyond_scripts(routes: &[Route]) -> Vec<Route> {
    let runs = |route: &Route| route.keys.get("fastcgi").is_some();
    if !routes.iter().any(|route| route.key == "regex" && route.value.ends_with(SCRIPTS) && runs(route)) {
        return Vec::new();
    }
    let prefixes = routes.iter().filter(|route| route.key == "path");
    let beyond = prefixes.map(|route| {
        let mut beyond = as_expression(route, ".*\\.php/");
        let has_scripts = |value: &Value| value.to_string().contains("scripts = ");
        beyond.keys.0.retain(|(key, value)| key != "fastcgi" || !has_scripts(value));
        beyond
    });
    beyond.collect()
}

/// How expressions end that are for scripts alone.
const SCRIPTS: &str = "\\.php$";

/// What guards a route guards its paths below those of named locations, too, which clients can ask for.
fn guards_below(route: &Route, routes: &[Route], named: &[String]) -> Vec<Route> {
    if !refuses_some(route) || route.is_whole() || named.contains(&route.prefix) {
        return Vec::new();
    }
    let of = |place: &String| {
        let target = routes.iter().find(|other| other.prefix == *place)?;
        let leads = route
            .keys
            .get("try_files")
            .is_some_and(|tried| tried.to_string().contains(&format!("\"{place}$uri\"")));
        let value = match route.key {
            "regex" => match route.value.strip_prefix('^') {
                Some(behind) => format!("^{}{behind}", quoted(place)),
                None => format!("^{}/.*(?:{})", quoted(place), route.value),
            },
            _ => format!("{place}{}", route.value),
        };
        let keys = if leads && route.key != "regex" {
            let guards = route.keys.0.iter().filter(|(key, _)| GUARDS.contains(&&**key)).cloned();
            let mut keys = below(target, &value);
            keys.0.extend(guards);
            keys
        } else {
            closed_with(403)
        };
        let prefix = if route.prefix.is_empty() { String::new() } else { format!("{place}{}", route.prefix) };
        Some(Route {
            key: route.key,
            value,
            is_first: route.key == "path",
            keys,
            notes: Vec::new(),
            to_https: None,
            prefix,
        })
    };
    named.iter().filter_map(of).collect()
}

/// Whether a route keeps some requests from being answered.
fn refuses_some(route: &Route) -> bool {
    ["respond"].iter().chain(&GUARDS).any(|key| route.keys.get(key).is_some())
}

const GUARDS: [&str; 5] = ["allow", "deny", "basic_auth", "rate_limit", "methods"];

/// What a route says, for one of its paths: where an origin's path takes the place of the route's, with that of the rest.
fn below(route: &Route, path: &str) -> Keys {
    let mut keys = route.keys.clone();
    let rest = path.strip_prefix(&*route.value).unwrap_or_default().trim_start_matches('/').to_owned();
    if replaces_path(route)
        && let Some((_, Value::Table(proxy))) = keys.0.iter_mut().find(|(key, _)| key == "proxy")
        && let Some((_, to)) = proxy.0.iter_mut().find(|(key, _)| key == "to")
    {
        each_url(to, &|url| format!("{}/{rest}", url.trim_end_matches('/')));
    }
    keys
}

fn each_url(to: &mut Value, change: &dyn Fn(&str) -> String) {
    match to {
        Value::Text(url) => *url = change(url),
        Value::List(all) => all.iter_mut().for_each(|one| each_url(one, change)),
        Value::Table(one) => {
            one.0.iter_mut().filter(|(key, _)| key == "to").for_each(|(_, to)| each_url(to, change));
        }
        Value::Number(_) | Value::Flag(_) => {}
    }
}

/// A folder whose index has a location of its own is answered by that, behind the guards of what is around.
fn of_index(route: &Route, routes: &[Route], index: &str) -> Option<Route> {
    let folder = route.value.strip_suffix(index)?;
    if route.key != "exact" || !folder.ends_with('/') || route.keys.is_empty() {
        return None;
    }
    let around = around(folder, routes).map_or(&[][..], |around| &around.keys.0);
    let looks_for_index = around.iter().all(|(key, value)| match key.as_str() {
        "proxy" | "redirect" | "respond" | "rewrite" | "scgi" => false,
        "fastcgi" => value.to_string().contains("scripts = "),
        "try_files" => value.to_string().contains("\"$path/\""),
        _ => true,
    });
    let mut keys = rewritten_to(route.value.clone());
    keys.0.extend(around.iter().filter(|(key, _)| GUARDS.contains(&&**key)).cloned());
    let value = folder.to_owned();
    let (notes, prefix) = (Vec::new(), value.clone());
    looks_for_index.then_some(Route {
        key: "exact",
        value,
        is_first: false,
        keys,
        notes,
        to_https: None,
        prefix,
    })
}

/// The route of the longest prefix of a path.
fn around<'r>(path: &str, routes: &'r [Route]) -> Option<&'r Route> {
    let around = routes.iter().filter(|other| other.key == "path" && path.starts_with(&*other.prefix));
    around.max_by_key(|other| other.prefix.len())
}

/// Keys that say more than how the files of the site are served.
const MORE_THAN_FIELDS: [&str; 14] = [
    "allow",
    "basic_auth",
    "deny",
    "fastcgi",
    "methods",
    "headers",
    "try_files",
    "proxy",
    "rate_limit",
    "redirect",
    "respond",
    "rewrite",
    "root",
    "scgi",
];

/// What guards the names of a folder's index guards the folder, too: nginx asks its locations for the index. `Some(None)`:
/// that cannot be said, as where the expression is about names in all folders.
pub(super) fn guard_of_folders(route: &Route, index: &[String]) -> Option<Option<Route>> {
    let index = index.iter().filter(|_| route.key == "regex" && refuses_some(route));
    let start = index.clone().find_map(|name| before_ending(&route.value, name.rsplit_once('.')?.1))?;
    let folder = start.strip_suffix(".*").or_else(|| start.strip_suffix(".+"));
    Some(folder.filter(|folder| folder.contains('/')).map(|folder| {
        let value = format!("{folder}{}$", if folder.ends_with('/') { "(?:.*/)?" } else { ".*/" });
        Route {
            key: "regex",
            value,
            keys: route.keys.clone(),
            notes: Vec::new(),
            prefix: String::new(),
            ..*route
        }
    }))
}

/// Whether an expression is about names that end as this one does.
pub(super) fn is_about_file(pattern: &str, name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, ending)| before_ending(pattern, ending).is_some())
}

/// The part of an expression in front of an ending: `^/a/.*` of `^/a/.*\.(php|cgi)$`.
fn before_ending<'r>(pattern: &'r str, ending: &str) -> Option<&'r str> {
    let pattern = pattern.strip_suffix('$').or_else(|| pattern.strip_suffix("(/|$)")).unwrap_or(pattern);
    match pattern.strip_suffix(')') {
        Some(group) => {
            let (start, names) = group.rsplit_once("\\.(")?;
            names.trim_start_matches("?:").split('|').any(|name| name == ending).then_some(start)
        }
        None => pattern.strip_suffix(ending)?.strip_suffix("\\."),
    }
}

/// What answers `/a` where the location is `/a/`: a redirection in front of an origin, else what is around it.
fn without_slash(route: &Route, routes: &[Route], named: &[String]) -> Option<Route> {
    let path = route.prefix.strip_suffix('/').filter(|path| !path.is_empty() && route.key == "path")?;
    let goes_elsewhere = ["proxy", "fastcgi", "scgi"].iter().any(|key| route.keys.get(key).is_some());
    let around = around(path, routes);
    let says_only_fields = |keys: &Keys| MORE_THAN_FIELDS.iter().all(|key| keys.get(key).is_none());
    // There, the origin is asked for the path as it is.
    let is_named = named.iter().any(|place| path.starts_with(&**place));
    let keys = if goes_elsewhere && !is_named && route.keys.get("root").is_none() {
        let mut redirect = Keys::default();
        redirect.set("to", format!("{}$rest", route.value));
        redirect.set("status", 301_u64);
        let mut keys = Keys::default();
        keys.set("redirect", redirect);
        keys
    } else if !says_only_fields(&route.keys) || around.is_some_and(|around| !says_only_fields(&around.keys)) {
        around.map(|around| below(around, path)).unwrap_or_default()
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

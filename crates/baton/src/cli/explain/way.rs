//! Which routes a request passes, up to the one that answers it.

use std::sync::Arc;

use baton_config::{Route, RouteSettings, Site};
use baton_content::{Blocking, Cache, CacheSettings, Found, Query, Tree, View};
use baton_fcgi::environment::Script;
use baton_http::{AcceptedCodings, Stamp, decode_any_path, encode_path};
use baton_site::condition::{Condition, RequestView};
use baton_site::matcher::{self, Matcher};
use baton_site::plan;
use baton_site::plan::{Action, Otherwise, UNANSWERED};
use baton_site::rewrites::Rewrites;
use baton_site::template::{REWRITES_MAX, RequestParts};

use super::lines::Lines;
use super::target::split;

/// Where a request gets to.
pub(super) struct End<'p> {
    /// The route that answers.
    pub(super) route: &'p plan::Route,
    /// The route that answers, as the configuration has it; `None`: it is the site itself.
    pub(super) configured: Option<&'p Route>,
    /// Path and query by then.
    pub(super) target: String,
    /// Which routes have made them so.
    pub(super) rewrites: Rewrites,
}

/// Follows a request from route to route, and tells each step. `None`: no route answers.
pub(super) fn follow<'p>(
    lines: &mut Lines,
    planned: &'p plan::Site,
    site: &'p Site,
    view: &RequestView<'_>,
) -> Option<End<'p>> {
    let tells_matchers = planned.routes.iter().any(|route| !route.matcher.yields_to_patterns());
    let (mut target, mut rewrites) =
        (String::from_utf8_lossy(view.head.target).into_owned(), Rewrites::default());
    for _ in 0..=REWRITES_MAX {
        let (path, query) = split(&target);
        let head = view.head.with_target(path.as_bytes(), query.map(str::as_bytes));
        let view = RequestView { head: &head, ..*view };
        tell_conditions(lines, planned, &view);
        let (route_index, route) = match planned.route(&view, &mut Vec::new()) {
            Ok(Some(index)) => (index, &planned.routes[index]),
            Ok(None) => {
                lines.add("route", "none: the site has no folder, and no route has this path".into());
                return None;
            }
            Err(refusal) => {
                lines.add("route", format!("none: {refusal}"));
                return None;
            }
        };
        if route.matcher.is_internal() && rewrites.count() == 0 {
            let text = format!("none: clients cannot ask for {}, which is `internal`", route.matcher);
            lines.add("route", text);
            return None;
        }
        let configured = site.routes.iter().find(|other| is_same(&other.settings, route));
        lines.add("route", format!("{} ({})", route.matcher, what(&route.action, configured)));
        if tells_matchers {
            lines.add("matched", matched(&route.matcher, path));
        }
        let (to, why) = match (&route.action, &route.otherwise) {
            (Action::Rewrite(to), _) => (to, "rewritten"),
            (Action::Files(tree) | Action::Lent(tree, _) | Action::Scripts(tree, _), Some(otherwise))
                if has_nothing(tree, path) =>
            {
                match otherwise {
                    Otherwise::Rewrite(to) => (to, "not there"),
                    Otherwise::Status(status) => {
                        lines.add("not there", format!("answered with {status}"));
                        return Some(End { route, configured, target, rewrites });
                    }
                }
            }
            _ => return Some(End { route, configured, target, rewrites }),
        };
        let (next, query) = to.expand_target(&RequestParts {
            path: path.as_bytes(),
            query: query.map(str::as_bytes),
            host: head.host,
            matcher: &route.matcher,
        });
        if why == "not there" && next == path {
            lines.add(why, "nor anything else: it is the last of `try_files`".into());
            return Some(End { route, configured, target, rewrites });
        }
        rewrites.note(route_index);
        target = query.map_or_else(|| next.clone(), |query| format!("{next}?{query}"));
        lines.add(why, format!("on to {target}"));
    }
    lines.add("route", format!("none: it was rewritten {REWRITES_MAX} times, which is taken for a loop"));
    None
}

/// Whether a route of the plan is this one of the configuration.
fn is_same(settings: &RouteSettings, route: &plan::Route) -> bool {
    let shown = |when: &Condition| when.to_string();
    let same_condition = settings.condition().as_deref().map(shown) == route.when.as_deref().map(shown);
    same_condition && settings.matcher() == route.matcher
}

/// Tells of each condition at the path whether it holds, and if not, what is wrong.
fn tell_conditions(lines: &mut Lines, planned: &plan::Site, view: &RequestView<'_>) {
    for (route, when) in planned.routes.iter().filter_map(|route| Some((route, route.when.as_ref()?))) {
        let mut decoded = Vec::new();
        if decode_any_path(view.head.path, &mut decoded).is_err() {
            return;
        }
        if matcher::find(std::slice::from_ref(route), &mut decoded).is_none() {
            continue;
        }
        let verdict = match when.failed(view) {
            None => "holds".into(),
            Some(test) => format!("does not hold: {}", test.text),
        };
        lines.add("when", format!("{} when {when}: {verdict}", route.matcher));
    }
}

/// Whether a folder has none of the candidates for a path.
fn has_nothing(tree: &Arc<Tree>, path: &str) -> bool {
    let mut decoded = Vec::new();
    let script = decode_any_path(path.as_bytes(), &mut decoded).ok();
    let script = script.and_then(|_| Script::first_of(&decoded, &tree.config().scripts));
    let name = match script.filter(|script| !script.path_info.is_empty()) {
        Some(script) => [b"/", &*encode_path(script.name)].concat(),
        None => path.as_bytes().to_vec(),
    };
    let query = Query { path: &name, accepted: AcceptedCodings::default(), view: View::default() };
    let cache = Cache::new(CacheSettings::default());
    matches!(cache.find(tree, &query, &Stamp::at(0), Blocking::Allowed), Ok(Found::Missing))
}

/// By what a path belongs to a route, and what the groups of a pattern match in it.
fn matched(matcher: &Matcher, path: &str) -> String {
    let mut text = format!("by its {}", matcher.kind());
    let mut decoded = Vec::new();
    let captures = matcher.captures(path.as_bytes(), &mut decoded);
    let Some((pattern, captures)) = matcher.as_pattern().zip(captures) else { return text };
    for (number, name) in (1..).zip(pattern.groups()) {
        let group = captures.get(number).map(|group| String::from_utf8_lossy(group.as_bytes()));
        text.push_str(&match group {
            Some(group) => format!(", ${name} = {group:?}"),
            None => format!(", ${name} = nothing"),
        });
    }
    text
}

/// What a route does with requests.
fn what(action: &Action, route: Option<&Route>) -> String {
    let files = |tree: &Tree| {
        let stripped = route.is_some_and(|route| route.settings.strip_prefix);
        let root = tree.config().root.display();
        if stripped { format!("files of {root}, without this prefix") } else { format!("files of {root}") }
    };
    match action {
        Action::Files(tree) => files(tree),
        Action::Lent(tree, _) => format!("{}, which other servers may have for a time", files(tree)),
        Action::Copies(copies, _) => format!("documents that {} lends to this server", copies.home()),
        Action::Scripts(tree, delegate) => {
            let endings = tree.config().scripts.join(", ");
            format!("{}; {endings} run by the application {}", files(tree), delegate.application.name())
        }
        Action::Delegated(delegate) if delegate.proxy().is_some_and(|terms| terms.cluster.is_some()) => {
            "the nodes of the cluster".into()
        }
        Action::Delegated(delegate) if delegate.proxy().is_some() => {
            format!("the origin {}", delegate.application.name())
        }
        Action::Delegated(delegate) => format!("the application {}", delegate.application.name()),
        Action::Redirect { location, .. } => format!("redirect to {}", location.text()),
        Action::Rewrite(to) => format!("rewritten to {}", to.text()),
        Action::Https { port, .. } => format!("redirect to https, port {port}"),
        Action::Respond { status: status @ (401 | 403 | 404 | 410 | 451), .. } => {
            format!("denied: a fixed answer, {status}")
        }
        Action::Respond { status: UNANSWERED, .. } => "closed without an answer".into(),
        Action::Respond { status, .. } => format!("a fixed answer, {status}"),
    }
}

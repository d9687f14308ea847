//! Which routes stand for which locations: the rules of nginx, said in those of Baton.
//!
//! Both take an exact path first, else the longest prefix, which yields to expressions in the order of the file. They differ
//! in two things.
//! - *Borders*: a prefix of nginx ends anywhere, `/admin` is for `/admin.html`, too. A `path` of Baton ends on a segment's
//!   border, and one that ends in a slash is also for the path without it. So a location may need a second route.
//! - *Levels*: the expressions within a location are asked for its paths alone, and `^~` keeps away those beside it, not those
//!   further out. Baton has one list of expressions, and a `path` that yields to all of them or to none. So a prefix may need a
//!   list of its own in front, which ends in the prefix itself: it is *cut off*.

use std::collections::HashSet;

use baton_pattern::Pattern;

use super::expression::{may_match, restricted};
use super::route::{By, CASES, Content, Level, Route, closed_with, redirection, rewritten_to};
use crate::written::Keys;

/// All routes of a server whose locations became these. `index`: the file that nginx looks for first in a folder, and then
/// asks its locations for. The second value has the prefixes whose expressions cannot be said in their order: they are closed.
pub(super) fn arranged(routes: Vec<Route>, index: Option<&str>) -> (Vec<Route>, Vec<String>) {
    let mut site = Arrangement::of(routes);
    site.forget_unreached_paths();
    site.ask_locations_for(index);
    site.guard_exact_folders(index);
    site.forget_the_silent();
    let without_slash = site.without_slash();
    let yields = site.how_prefixes_yield();
    let front = site.cut_off(&yields);
    let back = site.behind_all(&yields);
    let closed = std::mem::take(&mut site.closed);
    (site.finish(&yields, front, without_slash, back), closed)
}

/// Routes as nginx finds them: expressions in the order in which it asks for them, and no path twice.
struct Arrangement {
    routes: Vec<Route>,
    /// Internal routes that what was cut off needs.
    doors: Vec<Route>,
    /// Prefixes that are closed.
    closed: Vec<String>,
}

/// How the longest prefix of a path yields to expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Yield {
    /// To all that could match.
    All,
    /// To none.
    None,
    /// To some that could match.
    Some,
}

impl Arrangement {
    fn of(mut routes: Vec<Route>) -> Self {
        let depth = |route: &Route| match &route.by {
            By::Expression(Level::Rewrites) => 0,
            By::Expression(Level::Within(prefix)) => usize::MAX - prefix.len(),
            By::Expression(Level::Server) | By::Exact | By::Path { .. } => usize::MAX,
        };
        routes.sort_by_key(depth);
        Self { routes, doors: Vec::new(), closed: Vec::new() }
    }

    fn expressions(&self) -> impl Iterator<Item = (&Level, &Route)> {
        self.routes.iter().filter_map(|route| match &route.by {
            By::Expression(level) => Some((level, route)),
            By::Exact | By::Path { .. } => None,
        })
    }

    /// The prefixes of locations that clients can ask for.
    fn prefixes(&self) -> impl Iterator<Item = (&[Level], &Route)> {
        self.routes.iter().filter_map(|route| match &route.by {
            By::Path { asked } if !route.is_internal => Some((&asked[..], route)),
            _ => None,
        })
    }

    /// The location of the longest prefix of a path, without regard to expressions.
    fn around(&self, path: &str) -> Option<(&[Level], &Route)> {
        let around = self.prefixes().filter(|(_, route)| path.starts_with(&*route.prefix));
        around.max_by_key(|(_, route)| route.prefix.len())
    }

    /// The location of a path that is not one of the exact ones.
    fn answering(&self, path: &str) -> Option<&Route> {
        let around = self.around(path);
        let asked = around.map_or(&[Level::Server][..], |(asked, _)| asked);
        let matching = self.expressions().find(|(level, route)| {
            is_asked(level, asked)
                && Pattern::regex(&route.value).is_ok_and(|pattern| pattern.matches(path.as_bytes()))
        });
        matching.or(around.map(|(_, route)| (&Level::Server, route))).map(|(_, route)| route)
    }

    /// A `rewrite` of the server comes before exact paths.
    fn forget_unreached_paths(&mut self) {
        let rewrites = self.expressions().filter(|(level, _)| **level == Level::Rewrites);
        let rewrites: Vec<_> = rewrites.filter_map(|(_, route)| Pattern::regex(&route.value).ok()).collect();
        self.routes.retain(|route| {
            let is_rewritten = || rewrites.iter().any(|one| one.matches(route.prefix.as_bytes()));
            !route.is_exact() || !is_rewritten()
        });
    }

    /// A folder whose index has a location of its own is answered by that, behind the guards of what is around.
    fn ask_locations_for(&mut self, index: Option<&str>) {
        let Some(index) = index else { return };
        let of_indexes = self.routes.iter().filter_map(|route| {
            let folder = route.value.strip_suffix(index).filter(|folder| folder.ends_with('/'))?;
            if !route.is_exact() || route.keys.is_empty() {
                return None;
            }
            let around = self.answering(folder);
            let mut keys = rewritten_to(route.value.clone());
            keys.0.extend(around.into_iter().flat_map(Route::guards));
            let is_asked = around.is_none_or(Route::looks_for_index);
            let folder = folder.to_owned();
            is_asked.then(|| Route { keys, ..Route::new(By::Exact, folder.clone(), folder) })
        });
        let of_indexes: Vec<_> = of_indexes.collect();
        for route in of_indexes {
            if !self.routes.iter().any(|other| other.is_exact() && other.value == route.value) {
                self.routes.push(route);
            }
        }
    }

    /// A folder with a location of its own is behind the guards of the location that nginx asks for its index, too.
    fn guard_exact_folders(&mut self, index: Option<&str>) {
        let Some(index) = index else { return };
        let guarded = self.routes.iter().enumerate().filter_map(|(at, route)| {
            let is_folder = route.is_exact() && route.value.ends_with('/') && route.looks_for_index();
            let name = is_folder.then(|| format!("{}{index}", route.value))?;
            let named = self.routes.iter().find(|other| other.is_exact() && other.value == name);
            let asked = named.or_else(|| self.answering(&name)).filter(|asked| asked.refuses_some())?;
            Some((at, route.guarded_as(asked)))
        });
        let guarded: Vec<_> = guarded.collect();
        for (at, keys) in guarded {
            self.routes[at].keys = keys;
        }
    }

    /// What says nothing is left out, unless it keeps away expressions or what is said of a shorter prefix.
    fn forget_the_silent(&mut self) {
        let has_expressions = self.expressions().next().is_some();
        let spoken = self.prefixes().filter(|(_, route)| route.says_something());
        let spoken: Vec<_> = spoken.map(|(_, route)| route.prefix.clone()).collect();
        self.routes.retain(|route| {
            let is_exception = || spoken.iter().any(|other| route.prefix.starts_with(&**other));
            route.says_something() || has_expressions || route.is_whole() || is_exception()
        });
    }

    /// What answers `/a` where the location is `/a/`: a redirection in front of an origin, else what nginx finds there.
    fn without_slash(&self) -> Vec<Route> {
        let mut added = Vec::new();
        for (_, route) in self.prefixes() {
            let Some(path) = route.prefix.strip_suffix('/').filter(|path| !path.is_empty()) else { continue };
            let value = route.value.trim_end_matches('/');
            let around = self.answering(path);
            let is_known = self.routes.iter().any(|other| other.is_exact() && other.value == value);
            if is_known || around.is_some_and(Route::has_groups) {
                continue;
            }
            let keys = if self.prefixes().any(|(_, other)| other.prefix == path) {
                around.map(|around| around.keys_for(path)).unwrap_or_default()
            } else if route.content() == Content::Elsewhere && route.keys.get("root").is_none() {
                redirection(301, &format!("{}$rest", route.value))
            } else if !says_only_fields(&route.keys)
                || around.is_some_and(|around| around.is_expression() || !says_only_fields(&around.keys))
            {
                around.map(|around| around.keys_for(path)).unwrap_or_default()
            } else {
                continue;
            };
            added.push(Route { keys, ..Route::new(By::Exact, value.to_owned(), path.to_owned()) });
        }
        added
    }

    /// How each route yields; what is no prefix yields as Baton has it.
    fn how_prefixes_yield(&self) -> Vec<Yield> {
        let yields = self.routes.iter().map(|route| match &route.by {
            By::Path { .. } if route.is_internal => Yield::None,
            By::Path { asked } => {
                let could = |is_meant: bool| {
                    self.expressions().any(|(level, one)| {
                        is_asked(level, asked) == is_meant && could_match(level, one, &route.prefix)
                    })
                };
                match (could(true), could(false)) {
                    (_, false) => Yield::All,
                    (false, true) => Yield::None,
                    (true, true) => Yield::Some,
                }
            }
            By::Exact | By::Expression(_) => Yield::All,
        });
        let mut yields: Vec<_> = yields.collect();
        while let Some(index) = (0..yields.len()).find(|index| self.is_caught(*index, &yields)) {
            yields[index] = Yield::Some;
        }
        yields
    }

    /// Whether what a prefix needs in front, or does not let through, would keep a longer one from its paths.
    fn is_caught(&self, index: usize, yields: &[Yield]) -> bool {
        let route = &self.routes[index];
        let others =
            || self.routes.iter().zip(yields).filter(|(other, _)| other.is_path() && !other.is_internal);
        match yields[index] {
            _ if !route.is_path() || route.is_internal => false,
            Yield::Some => false,
            // An expression has to say where a prefix within it goes on.
            Yield::None => others().any(|(other, _)| {
                other.is_open()
                    && other.prefix.len() > route.prefix.len()
                    && is_below(&other.prefix, &route.prefix)
            }),
            Yield::All => others().any(|(other, how)| match how {
                Yield::Some => {
                    other.prefix.len() < route.prefix.len() && route.prefix.starts_with(&other.prefix)
                }
                Yield::None => {
                    other.is_open()
                        && route.prefix.starts_with(&other.prefix)
                        && !is_below(&route.prefix, &other.prefix)
                }
                Yield::All => false,
            }),
        }
    }

    /// The expressions in front of all others: of each prefix that yields to some, or that goes on within a segment and yields
    /// to none.
    fn cut_off(&mut self, yields: &[Yield]) -> Vec<Route> {
        let mut blocks = Vec::new();
        let (mut doors, mut closed) = (Vec::new(), Vec::new());
        for (route, how) in self.routes.iter().zip(yields) {
            let block = match (&route.by, how) {
                (By::Path { .. }, Yield::None) if route.is_open() => vec![route.as_expression("[^/]")],
                (By::Path { asked }, Yield::Some) if !route.is_whole() => {
                    match self.asked_below(route, asked) {
                        Some(expressions) => {
                            expressions.into_iter().chain(ending(route, &mut doors)).collect()
                        }
                        // What cannot be asked here would have to be guessed.
                        None => {
                            closed.push(route.prefix.clone());
                            vec![Route { keys: closed_with(403), ..route.as_expression("") }]
                        }
                    }
                }
                _ => continue,
            };
            blocks.push((route.prefix.len(), block));
        }
        (self.doors, self.closed) = (doors, closed);
        blocks.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
        blocks.into_iter().flat_map(|(_, block)| block).collect()
    }

    /// The expressions that a prefix yields to, for its paths alone; `None`: they cannot be said so.
    fn asked_below(&self, route: &Route, asked: &[Level]) -> Option<Vec<Route>> {
        let asked = self
            .expressions()
            .filter(|(level, one)| is_asked(level, asked) && could_match(level, one, &route.prefix));
        let below = asked.map(|(_, one)| {
            let value = restricted(&one.value, &route.prefix)?.into_owned();
            Some(Route { value, notes: Vec::new(), ..one.clone() })
        });
        below.collect()
    }

    /// The expressions behind all others: of prefixes that go on within a segment, or lie within such a one.
    fn behind_all(&self, yields: &[Yield]) -> Vec<Route> {
        let runs_scripts_alone = |route: &Route| {
            route.is_expression() && route.value.ends_with(SCRIPTS) && route.keys.get("fastcgi").is_some()
        };
        let has_scripts = self.routes.iter().any(runs_scripts_alone);
        let mut back = Vec::new();
        let of_all = |how: &Yield| *how == Yield::All;
        for (route, how) in self.routes.iter().zip(yields).filter(|(route, _)| route.is_path()) {
            if route.is_internal || !of_all(how) {
                continue;
            }
            let is_within = self.routes.iter().zip(yields).any(|(other, how)| {
                other.is_open()
                    && of_all(how)
                    && route.prefix.starts_with(&other.prefix)
                    && !is_below(&route.prefix, &other.prefix)
            });
            if has_scripts {
                back.push(beyond_scripts(route));
            }
            if is_within {
                back.push(route.as_expression(""));
            } else if route.is_open() {
                back.push(route.as_expression("[^/]"));
            }
        }
        back.sort_by_key(|route| std::cmp::Reverse(route.prefix.len()));
        back
    }

    /// All of them in the order in which Baton asks for them.
    fn finish(
        self,
        yields: &[Yield],
        front: Vec<Route>,
        without_slash: Vec<Route>,
        back: Vec<Route>,
    ) -> Vec<Route> {
        // If the prefix of all paths is cut off, every other prefix is: its own expressions are the only ones that are left.
        let cut_whole =
            self.routes.iter().zip(yields).find(|(route, how)| route.is_whole() && **how == Yield::Some);
        let left = cut_whole.and_then(|(route, _)| match &route.by {
            By::Path { asked } => Some(asked.clone()),
            By::Exact | By::Expression(_) => None,
        });
        let prefixes: Vec<_> = self.prefixes().map(|(_, route)| route.prefix.clone()).collect();
        let has_expressions = self.expressions().next().is_some() || !front.is_empty() || !back.is_empty();
        let routes = self.routes.into_iter().zip(yields).filter_map(|(mut route, how)| {
            route.is_first = *how == Yield::None && has_expressions;
            // `/a` beside `/a/`: for Baton, the second is for both.
            if route.is_open() && prefixes.contains(&format!("{}/", route.prefix)) {
                return None;
            }
            match (&route.by, &left) {
                (By::Expression(level), Some(left)) => is_asked(level, left).then_some(route),
                _ => Some(route),
            }
        });
        let doors = self.doors.into_iter().map(|door| Route { is_first: true, ..door });
        let all = front.into_iter().chain(routes).chain(doors).chain(without_slash).chain(back);
        // Of two that match the same paths, the first answers.
        let mut known = HashSet::new();
        all.filter(|route| known.insert((route.key(), route.value.clone()))).collect()
    }
}

/// What ends the expressions of a prefix that is cut off: the prefix itself. `doors` gets what stands behind a path of its own.
fn ending(route: &Route, doors: &mut Vec<Route>) -> Vec<Route> {
    let mut ending = Vec::from_iter((route.content() == Content::Scripts).then(|| beyond_scripts(route)));
    if route.is_about_path() {
        let [leading, inner] = route.behind_door(format!("/__below-{}", doors.len() + 1));
        ending.push(leading);
        doors.push(inner);
    }
    if route.is_open() || !route.is_about_path() {
        ending.push(route.as_expression(""));
    }
    ending
}

/// Whether a location that asks expressions of these levels asks those of this one.
fn is_asked(level: &Level, asked: &[Level]) -> bool {
    *level == Level::Rewrites || asked.contains(level)
}

/// Whether an expression could match paths of a location with this prefix.
fn could_match(level: &Level, expression: &Route, prefix: &str) -> bool {
    let is_near = match level {
        Level::Within(outer) => prefix.starts_with(&**outer),
        Level::Rewrites | Level::Server => true,
    };
    is_near && may_match(&expression.value, prefix)
}

/// Whether a path is below a prefix as Baton has it: on a segment's border.
fn is_below(path: &str, prefix: &str) -> bool {
    let rest = path.strip_prefix(prefix.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A route that runs scripts runs them with more behind their names, too, which `location ~ \.php$` is not for: what is
/// around that location answers these paths.
fn beyond_scripts(route: &Route) -> Route {
    let mut beyond = route.as_expression(".*\\.php/");
    if route.content() == Content::Scripts {
        beyond.keys.0.retain(|(key, _)| key != "fastcgi");
    }
    beyond
}

/// How expressions end that are for scripts alone.
const SCRIPTS: &str = "\\.php$";

/// Whether keys say no more than how the files of the site are served.
fn says_only_fields(keys: &Keys) -> bool {
    MORE_THAN_FIELDS.iter().all(|key| keys.get(key).is_none())
}

const MORE_THAN_FIELDS: [&str; 16] = [
    CASES,
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
    "satisfy",
    "scgi",
];

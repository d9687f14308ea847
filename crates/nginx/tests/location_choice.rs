//! Goal: a converted file chooses the location that nginx chooses, however prefixes, `^~`, expressions and blocks within blocks
//! are combined. Method: trees of locations of which each has an answer of its own, converted; the rules of nginx and those of
//! Baton, each in a few lines, are asked for the same paths.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write as _;

use baton_nginx::{Includes, Weight, convert};
use baton_pattern::Pattern;
use proptest::prelude::*;

/// A location: what nginx finds it by, its number and what is within it.
#[derive(Clone, Debug)]
struct Location {
    sign: &'static str,
    text: &'static str,
    refuses: bool,
    within: Vec<Self>,
}

const PREFIXES: [&str; 12] =
    ["/", "/a", "/a/", "/a/b", "/a/b/", "/a/b/c/", "/a/bc", "/ab", "/ab/", "/ab/c", "/c/", "/c/d"];
const EXPRESSIONS: [&str; 12] = [
    r"\.php$",
    r"\.(css|php)$",
    "^/a/",
    "^/a/b",
    r"^/a/.*\.css$",
    r"^/.*\.css$",
    "b$",
    "/c",
    "^/(a|c)/",
    "^/ab?$",
    r"^/[a-c]+/x",
    "x|y",
];

fn location(depth: u32) -> BoxedStrategy<Location> {
    let sign = prop_oneof![3 => Just(""), 2 => Just("^~"), 2 => Just("~"), 1 => Just("~*"), 1 => Just("=")];
    let within = match depth {
        0 => Just(Vec::new()).boxed(),
        depth => prop::collection::vec(location(depth - 1), 0..3).boxed(),
    };
    (sign, 0..PREFIXES.len(), any::<bool>(), within)
        .prop_map(|(sign, index, refuses, within)| {
            let is_prefix = matches!(sign, "" | "^~");
            let text = if sign.starts_with('~') { EXPRESSIONS[index] } else { PREFIXES[index] };
            let within = if is_prefix { within } else { Vec::new() };
            Location { sign, text, refuses, within }
        })
        .boxed()
}

/// Locations that nginx accepts: none twice, and each within what it stands in.
fn accepted(locations: Vec<Location>, outer: &str) -> Vec<Location> {
    let mut kept: Vec<Location> = Vec::new();
    for location in locations {
        let is_expression = location.sign.starts_with('~');
        let is_same = |other: &Location| {
            other.text == location.text && (is_expression || (other.sign == "=") == (location.sign == "="))
        };
        let is_within = is_expression || location.text.starts_with(outer) && location.text != outer;
        if is_within && !kept.iter().any(is_same) {
            let within = accepted(location.within, location.text);
            kept.push(Location { within, ..location });
        }
    }
    kept
}

fn written(locations: &[Location], next: &mut u32, out: &mut String) {
    for location in locations {
        *next += 1;
        let status = if location.refuses { 403 } else { 200 };
        write!(out, "location {} {} {{ return {status} n{next}; ", location.sign, location.text).unwrap();
        written(&location.within, next, out);
        out.push_str("}\n");
    }
}

/// What a location answers.
type Answer = Option<(u64, String)>;

/// The rules of nginx (`ngx_http_core_find_location`): the answer, and whether no expression may come before it.
fn of_nginx(locations: &[Location], path: &str, next: &mut u32) -> (Answer, bool) {
    let numbered: Vec<_> = locations
        .iter()
        .map(|location| {
            *next += 1;
            let own = *next;
            let inner = *next;
            *next += count(&location.within);
            let status = if location.refuses { 403 } else { 200 };
            (location, (status, format!("n{own}")), inner)
        })
        .collect();
    let exact = numbered.iter().find(|(location, ..)| location.sign == "=" && location.text == path);
    if let Some((_, answer, _)) = exact {
        return (Some(answer.clone()), true);
    }
    let prefixes = numbered
        .iter()
        .filter(|(location, ..)| matches!(location.sign, "" | "^~") && path.starts_with(location.text));
    let longest = prefixes.max_by_key(|(location, ..)| location.text.len());
    let mut answer = None;
    if let Some((location, own, inner)) = longest {
        let (within, is_final) = of_nginx(&location.within, path, &mut inner.clone());
        answer = within.or_else(|| Some(own.clone()));
        if is_final {
            return (answer, true);
        }
    }
    if longest.is_none_or(|(location, ..)| location.sign != "^~") {
        let matching = numbered.iter().find(|(location, ..)| {
            let flags = if location.sign == "~*" { "(?i)" } else { "" };
            location.sign.starts_with('~') && matches(&format!("{flags}{}", location.text), path)
        });
        if let Some((_, own, _)) = matching {
            return (Some(own.clone()), true);
        }
    }
    (answer, false)
}

fn count(locations: &[Location]) -> u32 {
    locations.iter().map(|location| 1 + count(&location.within)).sum()
}

/// The rules of Baton (`site::matcher`), for the routes of the only site of a file.
fn of_baton(site: &toml::Table, path: &str) -> Answer {
    let routes = site.get("route").and_then(toml::Value::as_array).map_or(&[][..], Vec::as_slice);
    let text = |route: &toml::Value, key: &str| route.get(key)?.as_str().map(str::to_owned);
    let is_below = |prefix: &str| {
        let rest = path.strip_prefix(prefix.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let exact = routes.iter().find(|route| text(route, "exact").as_deref() == Some(path));
    let prefixes = routes.iter().filter(|route| text(route, "path").is_some_and(|prefix| is_below(&prefix)));
    let longest =
        prefixes.max_by_key(|route| text(route, "path").map(|path| path.trim_end_matches('/').len()));
    let yields = longest.is_none_or(|route| route.get("before_patterns").is_none());
    let expression = routes
        .iter()
        .filter(|_| yields)
        .find(|route| text(route, "regex").is_some_and(|one| matches(&one, path)));
    let answer = exact.or(expression).or(longest)?.get("respond")?;
    Some((answer.get("status")?.as_integer()?.unsigned_abs(), text(answer, "body").unwrap_or_default()))
}

/// Whether an expression matches a path. Each is compiled once.
fn matches(expression: &str, path: &str) -> bool {
    thread_local! {
        static KNOWN: RefCell<HashMap<String, Pattern>> = RefCell::default();
    }
    KNOWN.with_borrow_mut(|known| {
        let pattern = || Pattern::regex(expression).expect("an expression");
        known.entry(expression.to_owned()).or_insert_with(pattern).matches(path.as_bytes())
    })
}

struct NoFiles;

impl Includes for NoFiles {
    fn read(&mut self, _pattern: &str) -> Option<Vec<(String, String)>> {
        None
    }

    fn exists(&mut self, _path: &str) -> bool {
        false
    }

    fn folder(&self) -> &'static str {
        "/etc/nginx"
    }
}

/// Paths at and beside the borders of all prefixes.
fn paths() -> Vec<String> {
    let ends = ["", "/", "x", "b", "/b", ".php", "/x.php", "x/y.css", "/b/c/x.css", "/B.PHP", "/b/"];
    let all = PREFIXES.iter().flat_map(|prefix| ends.map(|end| format!("{prefix}{end}").replace("//", "/")));
    all.collect()
}

fn expect_the_same(locations: Vec<Location>) {
    let locations = accepted(locations, "");
    let mut text = "server { listen 80; root /srv;\n".to_owned();
    written(&locations, &mut 0, &mut text);
    text.push_str("}\n");
    let converted = convert("t", &text, &mut NoFiles).expect("a configuration");
    let is_equal = converted.notes.iter().all(|note| note.weight == Weight::Remark);
    let table: toml::Table = converted.toml.parse().expect("TOML");
    let site = table["site"][0].as_table().expect("a site");
    for path in paths() {
        let (expected, _) = of_nginx(&locations, &path, &mut 0);
        let found = of_baton(site, &path);
        let was_opened = matches!(expected, Some((403, _))) && !matches!(found, Some((403, _)));
        assert!(
            !was_opened && (found == expected || !is_equal),
            "{path}: nginx {expected:?}, Baton {found:?}\n{text}\n{}",
            converted.toml
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_same_location_answers(locations in prop::collection::vec(location(2), 1..7)) {
        expect_the_same(locations);
    }
}

/// Goal: the combinations that were once found to differ.
#[test]
fn combinations_that_differed() {
    let leaf = |sign, text| Location { sign, text, refuses: true, within: Vec::new() };
    let open = |sign, text, within| Location { sign, text, refuses: false, within };
    for locations in [
        // `^~` keeps away the expressions beside it, not those within it: a script among uploads was open.
        vec![open("^~", "/a/", vec![leaf("~", r"\.php$")]), open("~", r"\.(css|php)$", vec![])],
        // A prefix within such a location goes on within a segment.
        vec![open("^~", "/a/", vec![]), leaf("", "/a/b"), open("~", "x|y", vec![])],
        // Nor does it keep away those further out.
        vec![open("", "/a/", vec![open("^~", "/a/b/", vec![])]), leaf("~", r"\.php$")],
        // What stands beside a location is nothing to the expressions within that.
        vec![open("", "/a/", vec![open("~", r"\.php$", vec![])]), leaf("", "/a/b/")],
        // Within a shorter prefix, one that a longer one hides.
        vec![open("", "/a/", vec![open("", "/a/b/c/", vec![])]), leaf("", "/a/b/")],
    ] {
        expect_the_same(locations);
    }
}

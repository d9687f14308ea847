//! Routes, and the forms in which their paths and answers are written.

use super::expression::quoted;
use crate::note::Note;
use crate::written::{Keys, Value};

/// A route.
#[derive(Clone, Debug)]
pub(super) struct Route {
    pub(super) by: By,
    /// Its path or expression, as Baton reads it.
    pub(super) value: String,
    /// What its paths begin with, as nginx reads it; empty for expressions.
    pub(super) prefix: String,
    pub(super) keys: Keys,
    pub(super) notes: Vec<Note>,
    /// Whether it comes before regular expressions.
    pub(super) is_first: bool,
    /// Whether other routes alone lead there.
    pub(super) is_internal: bool,
}

/// By what a route is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// One path.
    Exact,
    /// All paths below it. The expressions of these levels come first, in this order.
    Path { asked: Vec<Level> },
    /// A regular expression, which stands among those of its level.
    Expression(Level),
}

/// Which expressions stand together: nginx asks all of a level, or none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// Before all locations: a `rewrite` of the server.
    Rewrites,
    /// Within the location of this prefix.
    Within(String),
    /// Among the locations of the server.
    Server,
}

/// What answers the requests of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Files,
    /// Files, of which an application runs some.
    Scripts,
    /// An application or an origin.
    Elsewhere,
    /// A redirection or a fixed answer.
    Fixed,
    /// The route of another target.
    Rewritten,
}

impl Route {
    /// One that is found by this, and says nothing yet.
    pub(super) fn new(by: By, value: String, prefix: String) -> Self {
        let (keys, notes) = (Keys::default(), Vec::new());
        Self { by, value, prefix, keys, notes, is_first: false, is_internal: false }
    }

    /// One for all that no other route is for.
    pub(super) fn whole(keys: Keys) -> Self {
        let by = By::Path { asked: vec![Level::Server] };
        Self { keys, ..Self::new(by, "/".into(), "/".into()) }
    }

    /// An expression.
    pub(super) fn expression(level: Level, value: String, keys: Keys) -> Self {
        Self { keys, ..Self::new(By::Expression(level), value, String::new()) }
    }

    /// The key that says by what it is found.
    pub(super) fn key(&self) -> &'static str {
        match self.by {
            By::Exact => "exact",
            By::Path { .. } => "path",
            By::Expression(_) => "regex",
        }
    }

    /// Whether it stands at the same place as another one.
    pub(super) fn is_twin_of(&self, other: &Self) -> bool {
        let is_same_level = !self.is_expression() || self.by == other.by;
        self.key() == other.key() && self.value == other.value && is_same_level
    }

    /// Whether it is for all that no other route is for.
    pub(super) fn is_whole(&self) -> bool {
        self.is_path() && self.value == "/"
    }

    pub(super) fn is_path(&self) -> bool {
        matches!(self.by, By::Path { .. })
    }

    pub(super) fn is_exact(&self) -> bool {
        self.by == By::Exact
    }

    pub(super) fn is_expression(&self) -> bool {
        matches!(self.by, By::Expression(_))
    }

    /// Whether paths go on within the last segment of its prefix.
    pub(super) fn is_open(&self) -> bool {
        self.is_path() && !self.is_internal && self.prefix.len() > 1 && !self.prefix.ends_with('/')
    }

    /// Whether it does anything but what its site does.
    pub(super) fn says_something(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Whether it keeps some requests from being answered.
    pub(super) fn refuses_some(&self) -> bool {
        ["respond"].iter().chain(&GUARDS).any(|key| match self.keys.get(key) {
            Some(Value::List(cases)) if *key == CASES => {
                cases.iter().any(|case| matches!(case, Value::Table(case) if case.get("respond").is_some()))
            }
            said => said.is_some(),
        })
    }

    /// Its guards, without what answers.
    pub(super) fn guards(&self) -> impl Iterator<Item = (String, Value)> {
        self.keys.0.iter().filter(|(key, _)| GUARDS.contains(&&**key)).cloned()
    }

    /// Its keys behind the guards of another route, too. What both say in different words cannot be said: it is closed then.
    pub(super) fn guarded_as(&self, other: &Self) -> Keys {
        let mut keys = self.keys.clone();
        if let Some(refusal) = other.keys.get("respond") {
            keys = Keys::default();
            keys.set("respond", refusal.clone());
        }
        for (key, value) in other.guards() {
            match (keys.get(&key), value) {
                (None, value) => keys.set(&key, value),
                (Some(own), value) if *own == value => {}
                (Some(Value::List(own)), Value::List(others)) if key == CASES => {
                    keys.set(CASES, Value::List(own.iter().cloned().chain(others).collect()));
                }
                _ => return closed_with(403),
            }
        }
        keys
    }

    pub(super) fn content(&self) -> Content {
        let has = |keys: &[&str]| keys.iter().any(|key| self.keys.get(key).is_some());
        let runs_scripts =
            matches!(self.keys.get("fastcgi"), Some(Value::Table(keys)) if keys.get("scripts").is_some());
        match () {
            () if has(&["redirect", "respond"]) => Content::Fixed,
            () if has(&["rewrite"]) => Content::Rewritten,
            () if runs_scripts => Content::Scripts,
            () if has(&["proxy", "fastcgi", "scgi"]) => Content::Elsewhere,
            () => Content::Files,
        }
    }

    /// Whether it looks for the index of a folder.
    pub(super) fn looks_for_index(&self) -> bool {
        let tries_folders = match self.keys.get("try_files") {
            Some(Value::List(tried)) => tried.contains(&Value::from("$path/")),
            _ => true,
        };
        matches!(self.content(), Content::Files | Content::Scripts) && tries_folders
    }

    /// Whether what it says is about paths below its own, and about no others.
    pub(super) fn is_about_path(&self) -> bool {
        let ends_in_rest = |key: &str| {
            let to = self.table(key).and_then(|keys| keys.get("to"));
            matches!(to, Some(Value::Text(to)) if to.ends_with("$rest"))
        };
        self.replaces_path()
            || ends_in_rest("redirect")
            || self.keys.get("root").is_some() && self.keys.get("strip_prefix").is_none()
    }

    /// Whether its origin is asked for other paths than clients ask for.
    fn replaces_path(&self) -> bool {
        self.table("proxy").and_then(|keys| keys.get("to")).is_some_and(names_path)
    }

    /// Whether its target has parts of the path that its expression matches.
    pub(super) fn has_groups(&self) -> bool {
        let is_group = |(_, behind): (&str, &str)| behind.starts_with(|first: char| first.is_ascii_digit());
        ["redirect", "rewrite"].iter().any(|key| match self.table(key).and_then(|keys| keys.get("to")) {
            Some(Value::Text(to)) => to.match_indices('$').any(|(at, _)| is_group(to.split_at(at + 1))),
            _ => false,
        })
    }

    fn table(&self, key: &str) -> Option<&Keys> {
        match self.keys.get(key) {
            Some(Value::Table(keys)) => Some(keys),
            _ => None,
        }
    }

    /// What it says, for one of its paths: where an origin's path takes the place of the route's, with that of the rest.
    pub(super) fn keys_for(&self, path: &str) -> Keys {
        let mut keys = self.keys.clone();
        let rest = path.strip_prefix(&*self.value).unwrap_or_default().trim_start_matches('/').to_owned();
        if self.replaces_path()
            && let Some((_, Value::Table(proxy))) = keys.0.iter_mut().find(|(key, _)| key == "proxy")
            && let Some((_, to)) = proxy.0.iter_mut().find(|(key, _)| key == "to")
        {
            each_url(to, &|url| format!("{}/{rest}", url.trim_end_matches('/')));
        }
        keys
    }

    /// The route for paths that an expression matches: the prefix and what is behind it. What stands for the prefix itself
    /// cannot stand for these.
    pub(super) fn as_expression(&self, behind: &str) -> Self {
        let keys = if self.is_about_path() { closed_with(404) } else { self.keys.clone() };
        let value = format!("^{}{behind}", quoted(&self.prefix));
        let by = By::Expression(Level::Server);
        Self { by, value, keys, is_first: false, notes: Vec::new(), ..self.clone() }
    }

    /// The route behind a path of its own, and the expression that leads there from all paths below the prefix.
    pub(super) fn behind_door(&self, door: String) -> [Self; 2] {
        let rest = if self.prefix.ends_with('/') { "(/.*)$" } else { "(/.*)?$" };
        let value = format!("^{}{rest}", quoted(self.prefix.trim_end_matches('/')));
        let mut leading = Self::expression(Level::Server, value, rewritten_to(format!("{door}$1")));
        leading.keys.0.extend(self.guards());
        leading.prefix.clone_from(&self.prefix);
        let by = By::Path { asked: Vec::new() };
        let inner = Self { is_internal: true, keys: self.keys.clone(), ..Self::new(by, door.clone(), door) };
        [leading, inner]
    }
}

/// Keys that keep some requests from being answered.
const GUARDS: [&str; 7] = ["allow", "deny", "basic_auth", "satisfy", "rate_limit", "methods", CASES];

/// A key that no configuration has: what some requests of a route get instead, each with its `when`. Whatever stands for a route
/// with its keys has them, too; they are written as routes in front of it.
pub(super) const CASES: &str = "cases";

/// Whether the URLs of origins have a path.
fn names_path(to: &Value) -> bool {
    match to {
        Value::Text(url) => match url.strip_prefix("unix:") {
            Some(socket) => socket.contains(":/"),
            None => url.split_once("://").is_some_and(|(_, rest)| rest.contains('/')),
        },
        Value::List(all) => all.iter().any(names_path),
        Value::Table(one) => one.get("to").is_some_and(names_path),
        Value::Number(_) | Value::Flag(_) => false,
    }
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

/// The path that stands for a named location.
pub(super) fn place_of(name: &str) -> String {
    let name = name.trim_start_matches('@').bytes();
    let plain = name.map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte) } else { '-' });
    format!("/__{}", plain.collect::<String>())
}

/// The answer of a place that is closed.
pub(super) fn closed_with(status: u64) -> Keys {
    table_of("respond", [("status", Value::from(status))])
}

/// The answer of a route that goes on with another target.
pub(super) fn rewritten_to(to: String) -> Keys {
    table_of("rewrite", [("to", Value::from(to))])
}

/// The answer of a route that sends clients elsewhere.
pub(super) fn redirection(status: u64, to: &str) -> Keys {
    table_of("redirect", [("to", Value::from(to)), ("status", Value::from(status))])
}

/// One key with a table.
fn table_of<const N: usize>(key: &str, inner: [(&str, Value); N]) -> Keys {
    let mut table = Keys::default();
    for (key, value) in inner {
        table.set(key, value);
    }
    let mut keys = Keys::default();
    keys.set(key, table);
    keys
}

/// The path of a route as Baton reads it: as in a URL.
pub(super) fn encoded(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => encoded.push(char::from(byte)),
            b'/' | b'-' | b'.' | b'_' | b'~' | b'!' | b'\'' | b'(' | b')' | b'+' | b',' | b'=' | b'@'
            | b':' => {
                encoded.push(char::from(byte));
            }
            _ => {
                use std::fmt::Write as _;
                // Writing to a string cannot fail.
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}

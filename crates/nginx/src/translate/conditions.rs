//! Conditions: an `if` on a part of the request, or on a `map` of it, becomes `when`.
//!
//! nginx compares one text, which is empty where the request has no such part. Baton tells the absence from the empty value, so
//! some conditions become two: each is a `when` of its own, and a request for which one of them holds is meant.

use baton_pattern::{GlobExtent, TextPatterns};

use super::expression::quoted;
use super::referers::invalid_referers;
use super::request_part::{RequestPart, Values};
use super::scope::Scope;
use super::translator::Translator;
use crate::redirect;
use crate::tree::Directive;
use crate::values::is_constant;
use crate::written::Keys;

impl Translator<'_> {
    /// The values of `when` for the requests of which an `if` holds that answers by itself; `None`: it has no counterpart.
    pub(super) fn case_conditions(&self, condition: &Directive, scope: &Scope<'_>) -> Option<Vec<Keys>> {
        let (variable, wanted) = Wanted::of(condition).filter(|_| redirect::answers(condition))?;
        match (variable, &wanted) {
            ("$invalid_referer", Wanted::Set | Wanted::Equal { text: "1", is_meant: true }) => {
                RequestPart::Named("header", "Referer".into()).when(invalid_referers(scope)?)
            }
            _ => self.conditions_on(variable, &wanted),
        }
    }

    /// The values of `when` for the requests whose variable is as wanted.
    pub(super) fn conditions_on(&self, variable: &str, wanted: &Wanted<'_>) -> Option<Vec<Keys>> {
        if variable == "$ssl_client_verify" {
            return on_certificate(wanted);
        }
        if let Some(part) = RequestPart::named(variable) {
            return part.when(wanted.values());
        }
        let map = self.of_http.maps.iter().find(|map| map.argument(1) == variable)?;
        let part = RequestPart::named(map.argument(0))?;
        part.when(values_of_map(map, wanted)?)
    }
}

/// A certificate is accepted, or there is none: others end the handshake. In clear, nginx has nothing there.
fn on_certificate(wanted: &Wanted<'_>) -> Option<Vec<Keys>> {
    let [is_accepted, is_none, is_clear] = ["SUCCESS", "NONE", ""].map(|value| wanted.holds(value));
    let mut when = Keys::default();
    when.set("client_certificate", is_accepted);
    (is_accepted != is_none && is_none == is_clear).then(|| vec![when])
}

/// What an `if` wants of a variable.
#[derive(Clone, Debug)]
pub(super) enum Wanted<'d> {
    /// Neither nothing nor `0`.
    Set,
    Equal {
        text: &'d str,
        is_meant: bool,
    },
    Match {
        expression: String,
        is_meant: bool,
    },
}

impl<'d> Wanted<'d> {
    /// The variable of a condition, and what is wanted of it.
    pub(super) fn of(condition: &'d Directive) -> Option<(&'d str, Self)> {
        let (variable, wanted) = match redirect::condition(condition)?[..] {
            [variable] => (variable, Self::Set),
            [variable, sign @ ("=" | "!="), text] if is_constant(text) => {
                (variable, Self::Equal { text, is_meant: sign == "=" })
            }
            [variable, sign @ ("~" | "~*" | "!~" | "!~*"), text] => {
                let expression = format!("{}{text}", if sign.ends_with('*') { "(?i)" } else { "" });
                compiled(&expression)?;
                (variable, Self::Match { expression, is_meant: !sign.starts_with('!') })
            }
            _ => return None,
        };
        variable.starts_with('$').then_some((variable, wanted))
    }

    /// Whether it holds for a value.
    pub(super) fn holds(&self, value: &str) -> bool {
        match self {
            Self::Set => !matches!(value, "" | "0"),
            Self::Equal { text, is_meant } => (value == *text) == *is_meant,
            Self::Match { expression, is_meant } => matches(expression, value) == *is_meant,
        }
    }

    /// The values that are meant.
    fn values(&self) -> Values {
        let holds_without = self.holds("");
        let (any, none) = match self {
            Self::Set => (vec!["~.".into()], vec!["0".into()]),
            Self::Equal { text: "", is_meant: true } => (vec!["~^$".into()], Vec::new()),
            Self::Equal { text: "", is_meant: false } => (vec!["~.".into()], Vec::new()),
            Self::Equal { text, is_meant: true } => (vec![exactly(text)], Vec::new()),
            Self::Equal { text, is_meant: false } => (Vec::new(), vec![exactly(text)]),
            Self::Match { expression, is_meant: true } => (vec![format!("~{expression}")], Vec::new()),
            Self::Match { expression, is_meant: false } => (Vec::new(), vec![format!("~{expression}")]),
        };
        Values { any, none, holds_without }
    }
}

/// The values for which a `map` has what is wanted; `None`: the order of its lines says more than a list can.
fn values_of_map(map: &Directive, wanted: &Wanted<'_>) -> Option<Values> {
    let (mut default, mut lines) = ("", Vec::new());
    for line in map.block.iter().filter(|line| line.name != "volatile") {
        let value = line.argument(0);
        match line.name.as_str() {
            _ if !is_constant(value) => return None,
            "hostnames" => return None,
            "default" => default = value,
            name => lines.push((MapKey::of(name)?, wanted.holds(value))),
        }
    }
    // Texts come before expressions, whatever the order of the file.
    lines.sort_by_key(|(line, _)| matches!(line, MapKey::Expression(_)));
    let is_default = wanted.holds(default);
    let of_empty = lines.iter().find(|(line, _)| line.is_for("")).map(|(_, holds)| *holds);
    let holds_without = of_empty.unwrap_or(is_default);
    if !is_default {
        let meant = lines.iter().rposition(|(_, holds)| *holds)?;
        lines.truncate(meant + 1);
    }
    // What is excluded is so whatever else matches: nginx takes the first line.
    let is_unclear = |at: usize| {
        let (line, holds) = &lines[at];
        *holds && lines[at + 1..].iter().any(|(later, other)| !other && line.overlaps(later))
    };
    if (0..lines.len()).any(is_unclear) {
        return None;
    }
    let of = |wanted: bool| {
        let lines = lines.iter().filter(|(_, holds)| *holds == wanted);
        lines.map(|(line, _)| line.written()).collect::<Vec<_>>()
    };
    let any = if is_default { Vec::new() } else { of(true) };
    Some(Values { any, none: of(false), holds_without })
}

/// What a line of a `map` is for.
enum MapKey {
    /// A text, in any case.
    Text(String),
    Expression(String),
}

impl MapKey {
    fn of(name: &str) -> Option<Self> {
        let line = match (name.strip_prefix("~*"), name.strip_prefix('~')) {
            (Some(text), _) => Self::Expression(format!("(?i){text}")),
            (None, Some(text)) => Self::Expression(text.to_owned()),
            (None, None) => Self::Text(name.strip_prefix('\\').unwrap_or(name).to_owned()),
        };
        let is_fine = match &line {
            Self::Text(text) => is_constant(text),
            Self::Expression(expression) => compiled(expression).is_some(),
        };
        is_fine.then_some(line)
    }

    fn is_for(&self, value: &str) -> bool {
        match self {
            Self::Text(text) => text.eq_ignore_ascii_case(value),
            Self::Expression(expression) => matches(expression, value),
        }
    }

    /// Whether both may be for one value.
    fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(text), other) | (other, Self::Text(text)) => other.is_for(text),
            (Self::Expression(_), Self::Expression(_)) => true,
        }
    }

    fn written(&self) -> String {
        match self {
            Self::Text(text) => format!("~(?i)^{}$", quoted(text)),
            Self::Expression(expression) => format!("~{expression}"),
        }
    }
}

/// A pattern for one text. Baton's `GET` would be for `HEAD`, too.
fn exactly(text: &str) -> String {
    let is_plain = text != "GET" && !text.contains(['*', '?']) && !text.starts_with(['~', '!']);
    if is_plain { text.to_owned() } else { format!("~^{}$", quoted(text)) }
}

fn matches(expression: &str, value: &str) -> bool {
    compiled(expression).is_some_and(|pattern| pattern.match_any(value.as_bytes()))
}

/// An expression as conditions read it; `None`: they cannot.
fn compiled(expression: &str) -> Option<TextPatterns> {
    TextPatterns::compile(&[&format!("~{expression}")], GlobExtent::Whole).ok()
}

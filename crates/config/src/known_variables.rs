//! Variables that stand where they mean nothing: names that are none, groups that a route's pattern does not have.

use std::ops::Range;

use baton_http::{OfNginx, Variable};
use baton_site::matcher::Matcher;

use super::error::Complaint;
use super::kind::Reading;

/// Which variables texts may have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vocabulary {
    /// Fields of responses.
    Response,
    /// What is made before there is an answer from elsewhere: fields of requests, bodies.
    Request,
    /// Where clients are sent.
    Location,
    /// What is asked for instead: it follows from path and query, also for the shared cache.
    Target,
}

impl Vocabulary {
    fn has(self, variable: &Variable) -> bool {
        match self {
            Self::Response => *variable != Variable::Rest,
            Self::Request => *variable != Variable::Rest && !variable.is_of_answer(),
            Self::Location => !variable.is_of_answer(),
            Self::Target => {
                matches!(variable, Variable::Uri | Variable::Rest | Variable::Path | Variable::Query)
            }
        }
    }

    /// The names of its variables.
    fn names(self) -> impl Iterator<Item = &'static str> {
        Variable::NAMED.iter().filter(move |(_, variable)| self.has(variable)).map(|(name, _)| *name)
    }
}

/// Complains of variables that stand for nothing: no group of the route's pattern, and not in the vocabulary. Without a place, the
/// text is inherited, and was looked at where it stands.
pub(crate) fn check_variables<'v>(
    variables: impl Iterator<Item = &'v Variable>,
    vocabulary: Vocabulary,
    matcher: Option<&Matcher>,
    place: Option<Range<usize>>,
    reading: &mut Reading<'_>,
) {
    let Some(place) = place else { return };
    for variable in variables {
        let (problem, help) = match variable {
            Variable::Group(name) if matcher.is_some_and(|matcher| has_group(matcher, name)) => continue,
            Variable::Group(name) if name.bytes().all(|byte| byte.is_ascii_digit()) => {
                ("is no group of the route", groups_of(matcher))
            }
            Variable::Group(_) => ("is no variable", known(vocabulary)),
            named if vocabulary.has(named) => continue,
            named if named.is_of_answer() => (
                "is not known before there is an answer",
                "it is for the fields of responses: `headers`".into(),
            ),
            _ => ("has no meaning here", known(vocabulary)),
        };
        let complaint = Complaint::new(format!("`${variable}` {problem}"));
        let complaint = complaint.at(place.clone(), format!("has ${variable}"));
        let complaint = match variable {
            Variable::Group(name) => meant(complaint, name, vocabulary),
            _ => complaint,
        };
        reading.complain(complaint.help(help));
    }
}

/// Says what may be meant by a name.
fn meant(complaint: Complaint, name: &str, vocabulary: Vocabulary) -> Complaint {
    let here = OfNginx::named(name).map(|of_nginx| of_nginx.here);
    match here.filter(|here| vocabulary.names().any(|known| known == *here)) {
        Some(here) => complaint.help(format!("did you mean `${here}`?")),
        None => complaint.did_you_mean(name, vocabulary.names()),
    }
}

fn known(vocabulary: Vocabulary) -> String {
    let names: Vec<_> = vocabulary.names().map(|name| format!("${name}")).collect();
    format!("known are {}; `$$` is a dollar", names.join(", "))
}

fn has_group(matcher: &Matcher, name: &str) -> bool {
    matcher.as_pattern().is_some_and(|pattern| pattern.has_group(name))
}

/// Which groups a route has, or why it has none.
fn groups_of(matcher: Option<&Matcher>) -> String {
    let Some(pattern) = matcher.and_then(Matcher::as_pattern) else {
        return "only routes with `glob` or `regex` have groups; a `$` in front of digits is `$$`".into();
    };
    let groups: Vec<_> = pattern.groups().map(|group| format!("`${group}`")).collect();
    match &groups[..] {
        [] => {
            format!("the route's {} has no groups: parts in `(…)`, or a `*` of a glob", pattern.kind())
        }
        groups => format!("known here: {}", groups.join(", ")),
    }
}

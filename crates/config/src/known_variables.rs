//! Variables that stand where they mean nothing: names that are none, groups that a route's pattern does not have.

use std::ops::Range;

use baton_http::{FieldRules, FieldVariable};
use baton_site::matcher::Matcher;
use baton_site::template::{Template, Variable};

use super::error::Complaint;
use super::kind::Reading;
use super::setting::Table;

/// Complains of variables in the templates of a route, by their keys, that stand for no group of its pattern.
pub(crate) fn check_templates(
    templates: [(&str, Option<&Template>); 2],
    matcher: &Matcher,
    table: &Table<'_>,
    reading: &mut Reading<'_>,
) {
    for (key, template) in templates.into_iter().filter_map(|(key, template)| Some((key, template?))) {
        for variable in template.variables() {
            let Variable::Group(name) = variable else { continue };
            if has_group(matcher, name) {
                continue;
            }
            let complaint = Complaint::new(format!("`{variable}` is no group of the route"));
            let complaint = complaint.at(table.span_of(key).unwrap_or_default(), format!("has {variable}"));
            let known = "`$path`, `$query`, `$uri` and `$rest` are known everywhere";
            reading.complain(complaint.help(groups_of(matcher, known)));
        }
    }
}

/// Complains of variables in the fields of a site's or a route's responses that stand for nothing.
pub(crate) fn check_fields(
    rules: &FieldRules,
    matcher: Option<&Matcher>,
    place: Option<Range<usize>>,
    reading: &mut Reading<'_>,
) {
    // What is inherited was looked at where it stands.
    let Some(place) = place else { return };
    for variable in rules.variables() {
        let FieldVariable::Group(name) = variable else { continue };
        if matcher.is_some_and(|matcher| has_group(matcher, name)) {
            continue;
        }
        let label = format!("has ${name}");
        if name.bytes().all(|byte| byte.is_ascii_digit()) {
            let complaint =
                Complaint::new(format!("`${name}` is no group of the route")).at(place.clone(), label);
            let why = match matcher {
                Some(matcher) => groups_of(matcher, "a `$` in front of digits is `$$`"),
                None => {
                    "only routes with `glob` or `regex` have groups; a `$` in front of digits is `$$`".into()
                }
            };
            reading.complain(complaint.help(why));
            continue;
        }
        let complaint = Complaint::new(format!("`${name}` is no variable")).at(place.clone(), label);
        let meant = OF_NGINX.iter().find(|(other, _)| other == name).map(|(_, meant)| *meant);
        let complaint = match meant {
            Some(meant) => complaint.help(format!("did you mean `${meant}`?")),
            None => complaint.did_you_mean(name, FieldVariable::NAMED.iter().map(|(known, _)| *known)),
        };
        let known: Vec<_> = FieldVariable::NAMED.iter().map(|(known, _)| format!("${known}")).collect();
        reading.complain(complaint.help(format!("known are {}; `$$` is a dollar", known.join(", "))));
    }
}

/// Complains of variables in the fields of requests that stand for nothing, or for what only the answer tells.
pub(crate) fn check_request_fields(
    rules: &FieldRules,
    matcher: &Matcher,
    place: Option<Range<usize>>,
    reading: &mut Reading<'_>,
) {
    check_fields(rules, Some(matcher), place.clone(), reading);
    let is_of_answer = |variable: &&FieldVariable| {
        matches!(
            variable,
            FieldVariable::Upstream | FieldVariable::UpstreamStatus | FieldVariable::CacheStatus
        )
    };
    if let Some((variable, place)) = rules.variables().find(is_of_answer).zip(place) {
        let complaint = Complaint::new(format!("`${variable}` is not known before there is an answer"));
        let complaint = complaint.at(place, "goes to what answers");
        reading.complain(complaint.help("it is for the fields of responses: `headers`"));
    }
}

fn has_group(matcher: &Matcher, name: &str) -> bool {
    matcher.as_pattern().is_some_and(|pattern| pattern.has_group(name))
}

/// Which groups a route has, or why it has none; `known`: what is known there.
fn groups_of(matcher: &Matcher, known: &str) -> String {
    let Some(pattern) = matcher.as_pattern() else {
        return format!("only routes with `glob` or `regex` have groups; {known}");
    };
    let groups: Vec<_> = pattern.groups().map(|group| format!("`${group}`")).collect();
    match &groups[..] {
        [] => {
            format!("the route's {} has no groups: parts in `(…)`, or a `*` of a glob", pattern.kind())
        }
        groups => format!("known here: {}", groups.join(", ")),
    }
}

/// What is meant by names that nginx has.
const OF_NGINX: [(&str, &str); 15] = [
    ("args", "query"),
    ("binary_remote_addr", "client_ip"),
    ("document_uri", "path"),
    ("http_host", "host"),
    ("is_args", "uri"),
    ("proxy_add_x_forwarded_for", "client_ip"),
    ("query_string", "query"),
    ("remote_addr", "client_ip"),
    ("request_method", "method"),
    ("request_uri", "uri"),
    ("server_name", "host"),
    ("ssl_client_s_dn", "ssl_client_subject"),
    ("status", "upstream_status"),
    ("upstream_addr", "upstream"),
    ("upstream_cache_status", "cache_status"),
];

//! What guards a server or a location: who may ask.

use std::collections::HashSet;

use baton_site::address_range::{self, AddressRange, OuterRanges};

use super::passwords::{beside_addresses, without_counterpart};
use super::route::closed_with;
use super::scope::Scope;
use super::translator::Translator;
use crate::note::Weight;
use crate::redirect::{self, Answer};
use crate::tree::Directive;
use crate::written::Keys;

/// Directives that let some requests in and others not, beside addresses and passwords.
const DOORS: [&str; 7] = [
    "access_by_lua",
    "access_by_lua_block",
    "access_by_lua_file",
    "auth_jwt",
    "auth_request",
    "js_access",
    "secure_link",
];

/// Who may ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Every client.
    Open,
    /// Clients that these keys name: `allow`, `deny`.
    Some(Keys),
    /// No client: the answer that all get.
    Closed(Keys),
}

impl Access {
    /// Whether it names clients that are let in.
    fn names_clients(&self) -> bool {
        matches!(self, Self::Some(keys) if keys.get("allow").is_some())
    }
}

/// The addresses of one kind of rule, each once, without those that another one holds: a configuration of Baton's refuses these.
struct Addresses {
    texts: Vec<String>,
    ranges: OuterRanges,
}

impl Addresses {
    fn of(texts: impl Iterator<Item = String>) -> Self {
        let texts: Vec<_> = texts.collect();
        let ranges: Vec<AddressRange> = texts.iter().filter_map(|text| text.parse().ok()).collect();
        let (mut holders, mut known) = (address_range::holders(&ranges).into_iter(), HashSet::new());
        let is_first = |text: &String| match text.parse::<AddressRange>() {
            Ok(_) => holders.next().flatten().is_none(),
            Err(_) => known.insert(text.clone()),
        };
        let ranges = OuterRanges::from_iter(ranges.iter().copied());
        Self { texts: texts.into_iter().filter(is_first).collect(), ranges }
    }

    /// Whether one of them holds an address: `10.0.0.0/8` holds `10.1.0.0/16`.
    fn hold(&self, text: &String) -> bool {
        match text.parse() {
            Ok(range) => self.ranges.covering(&range).is_some(),
            Err(_) => self.texts.contains(text),
        }
    }
}

impl Translator<'_> {
    /// Who may ask at a place. A guard without a counterpart keeps its place closed.
    pub(super) fn access(&mut self, scope: &Scope<'_>) -> Access {
        if let Some(door) = scope.all(&DOORS).first() {
            self.close(door);
            return Access::Closed(closed_with(403));
        }
        let mut refusals: Vec<_> = scope
            .each("if")
            .into_iter()
            .filter(|condition| {
                redirect::refuses(condition) && self.case_conditions(condition, scope).is_none()
            })
            .collect();
        let by_map = match refusals[..] {
            [only] if scope.all(&["allow", "deny"]).is_empty() => self.addresses_by_map(only),
            _ => None,
        };
        if by_map.is_some()
            && let Some(variable) =
                refusals.pop().and_then(redirect::condition).and_then(|words| words.first().copied())
        {
            self.use_map(variable);
        }
        let refusal = refusals.first();
        let exception = scope.find("limit_except").filter(|exception| redirect::methods(exception).is_none());
        if let Some(door) = without_counterpart(scope).or(refusal.copied()).or(exception) {
            self.close(door);
            return Access::Closed(closed_with(403));
        }
        if let Some(keys) = by_map {
            return Access::Some(keys);
        }
        let access = self.rules_of_addresses(&scope.all(&["allow", "deny"]));
        // Only some addresses can be one of two.
        if let Some(password) = beside_addresses(scope).filter(|_| !access.names_clients()) {
            self.close(password);
            return Access::Closed(closed_with(403));
        }
        access
    }

    /// What rules about addresses say.
    fn rules_of_addresses(&mut self, rules: &[&Directive]) -> Access {
        // What comes behind `all` has no effect.
        let end = rules.iter().position(|rule| rule.argument(0) == "all");
        let is_closed_else = end.is_some_and(|end| rules[end].name == "deny");
        let mut named = &rules[..end.unwrap_or(rules.len())];
        if is_closed_else {
            // Where no client is let in behind it, a `deny` says nothing new.
            named = &named[..named.iter().rposition(|rule| rule.name == "allow").map_or(0, |last| last + 1)];
        }
        let of = |name: &str| {
            let rules = named.iter().filter(|rule| rule.name == name);
            Addresses::of(rules.map(|rule| rule.argument(0).to_owned()))
        };
        let (let_in, refused) = (of("allow"), of("deny"));
        let (mut allowed, mut denied) = (let_in.texts.clone(), refused.texts.clone());
        let is_exception = named.windows(2).any(|two| two[0].name == "allow" && two[1].name == "deny");
        if is_closed_else && !is_exception {
            // `deny` comes first: what it holds is not let in, and what is not let in behind it needs no `deny`.
            allowed.retain(|one| !refused.hold(one));
            denied.retain(|one| let_in.hold(one));
        }
        let mut keys = Keys::default();
        match (is_closed_else, allowed.is_empty(), denied.is_empty()) {
            (true, true, _) => return Access::Closed(closed_with(403)),
            (false, _, true) => return Access::Open,
            // The first rule that matches counts for nginx; here `deny` comes first.
            _ if is_exception => {
                self.close(named[0]);
                return Access::Closed(closed_with(403));
            }
            (true, ..) => {
                keys.set("allow", allowed);
                if !denied.is_empty() {
                    keys.set("deny", denied);
                }
            }
            (false, ..) => keys.set("deny", denied),
        }
        Access::Some(keys)
    }

    /// The methods that a place takes, if it says so.
    pub(super) fn methods(&mut self, own: &Scope<'_>) -> Option<Vec<String>> {
        let directive = own.find("limit_except")?;
        let methods = redirect::methods(directive)?;
        self.note(directive, Weight::Remark, "other methods get 405");
        Some(methods)
    }

    /// Says which conditions of a place are left out. `moved`: hosts whose requests are sent elsewhere.
    pub(super) fn account_conditions(&mut self, scope: &Scope<'_>, hosts: &[String], moved: &[&str]) {
        for condition in scope.innermost().iter().filter(|directive| directive.name == "if") {
            let is_known = redirect::is_for_tls(condition)
                || redirect::of_missing_files(condition).is_some()
                || redirect::refuses(condition)
                || redirect::is_for_missing_file(condition)
                || self.case_conditions(condition, scope).is_some()
                || self.moved_paths(condition).is_some()
                || match (redirect::of_host(condition), redirect::of_other_hosts(condition)) {
                    (Some((host, Answer::Https { .. })), _) => hosts.iter().any(|known| known == host),
                    (Some((host, _)), _) => moved.contains(&host),
                    (None, Some((host, _))) => !moved.is_empty() && !moved.contains(&host),
                    (None, None) => false,
                };
            if !is_known {
                let text = format!("\"if {}\" has no counterpart: left out", condition.arguments.join(" "));
                self.note(condition, Weight::LeftOut, text);
            }
        }
    }

    /// Says which limits of a place are left out.
    pub(super) fn account_limits(&mut self, block: &[Directive]) {
        for limit in block.iter().filter(|directive| directive.name == "limit_conn") {
            let text = "\"limit_conn\" has no counterpart for a place: left out; `connections_per_address_max` in \
                        `[limits]` bounds the connections of a client to all sites";
            self.note(limit, Weight::Guard, text);
        }
    }

    fn close(&mut self, directive: &Directive) {
        let words = match directive.name.as_str() {
            "if" => format!("if {}", directive.arguments.join(" ")),
            name => name.to_owned(),
        };
        let text = format!(
            "\"{words}\" has no counterpart: what it guards is closed (403) until you guard it in another way"
        );
        self.note(directive, Weight::Guard, text);
    }
}

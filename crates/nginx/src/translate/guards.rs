//! What guards a server or a location: who may ask.

use super::passwords::without_counterpart;
use super::scope::Scope;
use super::translator::Translator;
use crate::note::Weight;
use crate::tree::Directive;
use crate::written::{Keys, Value};

/// Directives that let some requests in and others not, beside addresses and passwords.
const DOORS: [&str; 8] = [
    "access_by_lua",
    "access_by_lua_block",
    "access_by_lua_file",
    "auth_jwt",
    "auth_request",
    "js_access",
    "limit_except",
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

impl Translator<'_> {
    /// Who may ask at a place. A guard without a counterpart keeps its place closed.
    pub(super) fn access(&mut self, scope: &Scope<'_>) -> Access {
        if let Some(door) = scope.all(&DOORS).first() {
            self.close(door);
            return Access::Closed(closed_with(403));
        }
        if let Some(password) = without_counterpart(scope) {
            self.close(password);
            return Access::Closed(closed_with(403));
        }
        let rules = scope.all(&["allow", "deny"]);
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
            rules.map(|rule| rule.argument(0).to_owned()).collect::<Vec<_>>()
        };
        let (allowed, denied) = (of("allow"), of("deny"));
        let is_exception = named.windows(2).any(|two| two[0].name == "allow" && two[1].name == "deny");
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

    /// Says which limits of a place are left out.
    pub(super) fn account_limits(&mut self, block: &[Directive]) {
        for limit in block.iter().filter(|directive| directive.name == "limit_conn") {
            let text = "\"limit_conn\" has no counterpart for a place: left out; `connections_per_address_max` in \
                        `[limits]` bounds the connections of a client to all sites";
            self.note(limit, Weight::Guard, text);
        }
    }

    fn close(&mut self, directive: &Directive) {
        let text = format!(
            "\"{}\" has no counterpart: what it guards is closed (403) until you guard it in another way",
            directive.name
        );
        self.note(directive, Weight::Guard, text);
    }
}

/// The answer of a place that is closed.
pub(super) fn closed_with(status: u64) -> Keys {
    let mut answer = Keys::default();
    answer.set("status", status);
    let mut keys = Keys::default();
    keys.set("respond", Value::Table(answer));
    keys
}

//! `geo`: conditions on the address of a client, which become `allow` and `deny`.

use super::conditions::Wanted;
use super::translator::Translator;
use crate::tree::Directive;
use crate::written::Keys;

impl Translator<'_> {
    /// The addresses that an `if` lets in, where it refuses those for which a `geo` has a value; `None`: it is about something
    /// else, or has exceptions within exceptions.
    pub(super) fn addresses_by_map(&self, condition: &Directive) -> Option<Keys> {
        let (variable, is_refused) = refused_value(condition)?;
        let map = self.of_http.address_maps.iter().find(|map| map.arguments == [variable])?;
        let is_network =
            |word: &str| word.bytes().all(|byte| byte.is_ascii_hexdigit() || b".:/".contains(&byte));
        let (mut default, mut networks) = ("", Vec::new());
        for line in &map.block {
            match line.name.as_str() {
                "default" => default = line.argument(0),
                network if is_network(network) => networks.push((network, line.argument(0))),
                _ => return None,
            }
        }
        let is_refused = |value: &str| is_refused.holds(value);
        let refuses_others = is_refused(default);
        // The longest network counts for nginx: those within each other would have to agree.
        if networks.is_empty() || networks.iter().any(|(_, value)| is_refused(value) == refuses_others) {
            return None;
        }
        let networks: Vec<_> = networks.into_iter().map(|(network, _)| network.to_owned()).collect();
        let mut keys = Keys::default();
        keys.set(if refuses_others { "allow" } else { "deny" }, networks);
        Some(keys)
    }

    /// Notes that a `map` or a `geo` with this variable, if it is one, has become something else.
    pub(super) fn use_map(&mut self, variable: &str) {
        self.used_maps.insert(variable.to_owned());
    }
}

/// The variable of an `if` that refuses requests with 403, and the values with which it does.
fn refused_value(condition: &Directive) -> Option<(&str, Wanted<'_>)> {
    let [inner] = condition.block.as_slice() else { return None };
    if inner.name != "return" || inner.arguments != ["403"] {
        return None;
    }
    Wanted::of(condition)
}

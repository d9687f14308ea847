//! How often clients may ask.

use super::scope::Scope;
use super::translator::Translator;
use crate::note::Weight;
use crate::tree::Directive;
use crate::written::Keys;

impl Translator<'_> {
    /// The limit of a place; `None`: it has none.
    pub(super) fn rate(&mut self, scope: &Scope<'_>) -> Option<Keys> {
        let limits = scope.all(&["limit_req"]);
        let (first, others) = limits.split_first()?;
        if scope.word("limit_req_dry_run") == Some("on") {
            self.note(first, Weight::LeftOut, "\"limit_req_dry_run\" limits nothing: the limit is left out");
            return None;
        }
        for other in others {
            self.note(other, Weight::Guard, "a place has one limit: this \"limit_req\" is left out");
        }
        let keys = option(first, "zone").and_then(|zone| self.limit(zone, first));
        match &keys {
            Some(_) => {
                let text = "clients that ask too often get 429; as long as the burst lasts, they are answered at once";
                self.note(first, Weight::Remark, text);
            }
            None => {
                let text = "\"limit_req\" has no counterpart with this key or rate: left out, requests are not limited";
                self.note(first, Weight::Guard, text);
            }
        }
        keys
    }

    fn limit(&self, name: &str, limit: &Directive) -> Option<Keys> {
        let of_name =
            |zone: &&&Directive| option(zone, "zone").and_then(|zone| zone.split(':').next()) == Some(name);
        let zone = self.of_http.zones.iter().find(of_name)?;
        let (requests, per) = option(zone, "rate")?.split_once("r/")?;
        let requests: u64 = requests.parse().ok().filter(|requests| (1..=1_000_000).contains(requests))?;
        let mut keys = Keys::default();
        keys.set("requests", requests);
        keys.set(
            "per",
            match per {
                "s" => "1s",
                "m" => "1m",
                _ => return None,
            },
        );
        // nginx counts those beyond the one that the rate lets pass.
        let burst = option(limit, "burst").map_or(Some(0), |burst| burst.parse::<u64>().ok())?;
        keys.set("burst", burst.saturating_add(1).min(1_000_000));
        match zone.argument(0) {
            "$binary_remote_addr" | "$remote_addr" => {}
            key => {
                let field = key.strip_prefix("$http_")?;
                keys.set("key", format!("header:{}", field.replace('_', "-")));
            }
        }
        Some(keys)
    }
}

/// The value of `name=value`.
fn option<'d>(directive: &'d Directive, name: &str) -> Option<&'d str> {
    directive.arguments.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

//! Caches: `proxy_cache` and `fastcgi_cache` become the shared cache of a route.
//!
//! Not to keep a response is always right, to keep one that nginx would not is not. So a cache with a condition or a key that
//! has no counterpart is left out.

use baton_http::{LoneDollar, TextPart, text_parts};

use super::conditions::Wanted;
use super::scope::Scope;
use super::translator::Translator;
use crate::note::Weight;
use crate::tree::Directive;
use crate::values::milliseconds;
use crate::written::Keys;

impl Translator<'_> {
    /// How the responses of a place are kept, if they are. `kind`: `proxy` or `fastcgi`.
    pub(super) fn cache(&mut self, scope: &Scope<'_>, kind: &str) -> Option<Keys> {
        let of = |name: &str| format!("{kind}_{name}");
        let cache = scope.find(&of("cache")).filter(|cache| cache.argument(0) != "off")?;
        let bypassed = self.bypassed(scope, kind);
        let reason = bypassed.as_ref().err().copied().or_else(|| Self::why_uncached(scope, kind));
        if let Some(reason) = reason {
            let text =
                format!("\"{}\" has no counterpart: responses of this place are not kept", reason.name);
            self.note(reason, Weight::LeftOut, text);
            return None;
        }
        let mut keys = Keys::default();
        if let Some((variable, when)) = bypassed.ok().flatten() {
            self.use_map(variable);
            keys.set("bypass_when", when);
        }
        let ignored = scope.find(&of("ignore_headers")).map_or(&[][..], |ignored| &ignored.arguments);
        let has = |name: &str| ignored.iter().any(|field| field.eq_ignore_ascii_case(name));
        if has("Cache-Control") || has("Expires") {
            let text = "responses are kept as they say themselves: their \"Cache-Control\" is not ignored";
            self.note(cache, Weight::LeftOut, text);
        }
        if has("Set-Cookie") {
            keys.set("store_set_cookie", true);
        }
        let key = scope.find(&of("cache_key"));
        if key.is_some_and(|key| !names_query(&key.arguments.concat())) {
            keys.set("ignore_query", true);
            let text = "the query is no part of the key: the origin does not see it";
            key.into_iter().for_each(|key| self.note(key, Weight::LeftOut, text));
        }
        // nginx keeps nothing for a time that neither it nor the response says.
        for (name, seconds) in [("heuristic_max_s", 0), ("negative_s", 0), ("stale_if_unreachable_s", 0_u64)]
        {
            keys.set(name, seconds);
        }
        for valid in scope.all(&[&of("cache_valid")]) {
            self.valid(valid, &mut keys);
        }
        self.stale(scope, &of("cache_use_stale"), &mut keys);
        keys.set("obey_clients", false);
        let text = "the shared cache keeps responses, in memory: `folder` in `[shared_cache]` keeps them on a disk, too";
        self.note(cache, Weight::Remark, text);
        Some(keys)
    }

    /// The requests that a cache has nothing to do with. One condition can say so of one variable alone.
    fn bypassed<'t>(&self, scope: &Scope<'t>, kind: &str) -> Result<Option<(&'t str, Keys)>, &'t Directive> {
        let all = |name: &str| scope.all(&[&format!("{kind}_{name}")]);
        let mut variable = None;
        for directive in [all("cache_bypass"), all("no_cache")].concat() {
            for word in directive.arguments.iter().filter(|word| !HARMLESS.contains(&&***word)) {
                if *variable.get_or_insert(word) != word {
                    return Err(directive);
                }
                let conditions = self.conditions_on(word, &Wanted::Set);
                if conditions.is_none_or(|conditions| conditions.len() > 1) {
                    return Err(directive);
                }
            }
        }
        Ok(variable.and_then(|word| {
            let when = self.conditions_on(word, &Wanted::Set)?.into_iter().next()?;
            Some((word.as_str(), when))
        }))
    }

    /// What of a cache would have it keep too much.
    fn why_uncached<'t>(scope: &Scope<'t>, kind: &str) -> Option<&'t Directive> {
        let all = |name: &str| scope.all(&[&format!("{kind}_{name}")]);
        let key = all("cache_key").into_iter().find(|key| !is_known_key(&key.arguments.concat()));
        let is_other = |word: &String| !matches!(word.as_str(), "GET" | "HEAD");
        let method = all("cache_methods").into_iter().find(|methods| methods.arguments.iter().any(is_other));
        key.or(method)
    }

    fn valid(&mut self, valid: &Directive, keys: &mut Keys) {
        let Some((time, statuses)) = valid.arguments.split_last() else { return };
        let Some(time) = milliseconds(time, 1000) else { return self.leave_out(valid) };
        let seconds = (time / 1000).min(SECONDS_MAX);
        let names = |status: &str| statuses.iter().any(|one| one == status);
        if statuses.is_empty() || names("200") || names("any") {
            keys.set("default_s", seconds);
        }
        if names("404") || names("any") {
            keys.set("negative_s", seconds);
            keys.set("error_max_s", seconds.max(ERRORS_S));
        }
        if statuses.iter().any(|status| !matches!(status.as_str(), "200" | "301" | "302" | "404" | "any")) {
            let text =
                "responses with other statuses than these are kept as they say themselves: 200, 301, 404";
            self.note(valid, Weight::Remark, text);
        }
    }

    /// Which stale responses take the place of errors. nginx keeps them until they were not asked for in ten minutes.
    fn stale(&mut self, scope: &Scope<'_>, name: &str, keys: &mut Keys) {
        let Some(stale) = scope.find(name) else { return };
        for word in &stale.arguments {
            match word.as_str() {
                "error" | "timeout" => keys.set("stale_if_unreachable_s", STALE_S),
                "http_500" | "http_502" | "http_503" | "http_504" => keys.set("stale_if_error_s", STALE_S),
                "updating" => keys.set("stale_while_revalidate_s", STALE_S),
                "off" => {}
                _ => self.leave_out(stale),
            }
        }
    }

    /// Says which parts of a zone count no more.
    pub(super) fn account_caches(&mut self, block: &[Directive]) {
        for path in block.iter().filter(|directive| directive.name.ends_with("_cache_path")) {
            if let Some(bound) = path.arguments.iter().find(|word| word.starts_with("max_size=")) {
                let text =
                    format!("\"{bound}\" is for all caches together: `disk_bytes_max` in `[shared_cache]`");
                self.note(path, Weight::Remark, text);
            }
        }
    }
}

/// Values with which nothing more is kept: the cache keeps nothing for such requests either, or apart.
const HARMLESS: [&str; 3] = ["$http_authorization", "$http_upgrade", "0"];

/// Whether a key has nothing but what Baton's has: scheme, host, path, query and method.
fn is_known_key(key: &str) -> bool {
    let known = [
        "scheme",
        "proxy_host",
        "host",
        "http_host",
        "server_name",
        "request_uri",
        "uri",
        "is_args",
        "args",
        "query_string",
        "request_method",
        "proxy_port",
        "server_port",
    ];
    let names = text_parts(key, |name| Ok::<_, LoneDollar>(name.to_owned())).unwrap_or_default();
    let names: Vec<_> = names
        .iter()
        .filter_map(|part| match part {
            TextPart::Variable(name) => Some(name.as_str()),
            TextPart::Text(_) => None,
        })
        .collect();
    names.iter().any(|name| matches!(*name, "request_uri" | "uri"))
        && names.iter().all(|name| known.contains(name))
}

/// Whether a key tells queries apart.
fn names_query(key: &str) -> bool {
    ["$request_uri", "${request_uri}", "$args", "${args}", "$query_string"]
        .iter()
        .any(|name| key.contains(name))
}

/// Seconds for which nginx keeps a stale response that is not asked for (`inactive`).
const STALE_S: u64 = 600;

/// Seconds for which Baton keeps errors at most if nothing is said.
const ERRORS_S: u64 = 10;

/// A year: no longer time means more.
const SECONDS_MAX: u64 = 31_536_000;

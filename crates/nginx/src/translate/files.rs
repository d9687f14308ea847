//! How files are served, and which fields responses have.

use super::location::{Spot, Surroundings};
use super::route::place_of;
use super::scope::Scope;
use super::translator::{BY_MEDIA_TYPE, Translator};
use crate::note::Weight;
use crate::redirect::{self, template};
use crate::tree::Directive;
use crate::values::{field_value, is_constant, milliseconds};
use crate::written::{Keys, Value};

impl Translator<'_> {
    /// The keys that say how files are served. `is_within`: the paths of the place have a prefix.
    pub(super) fn files(&mut self, scope: &Scope<'_>, is_within: bool) -> Keys {
        let mut keys = Keys::default();
        self.root(scope, is_within, &mut keys);
        if let Some(index) = scope.find("index") {
            let names = index.arguments.iter();
            let (names, others): (Vec<_>, Vec<_>) =
                names.cloned().partition(|name| is_constant(name) && !name.contains('/'));
            if !others.is_empty() {
                self.leave_out(index);
            }
            if !names.is_empty() {
                keys.set("index", names);
            }
        }
        if let Some(word) = scope.word("autoindex") {
            keys.set("browse", word == "on");
        }
        if let Some(links) = scope.find("disable_symlinks") {
            match links.argument(0) {
                "off" => {}
                "on" => keys.set("symlinks", "refused"),
                _ => {
                    keys.set("symlinks", "refused");
                    self.note(links, Weight::Remark, "here no link is followed, its owner's neither");
                }
            }
        }
        keys
    }

    /// Whether the folder of a place is not known: files of another one are no answer.
    pub(super) fn has_unknown_root(scope: &Scope<'_>) -> bool {
        let root = scope.all(&["root", "alias"]).last().copied();
        root.is_some_and(|root| !is_constant(root.argument(0)) || root.argument(0).is_empty())
    }

    fn root(&mut self, scope: &Scope<'_>, is_within: bool, keys: &mut Keys) {
        let Some(root) = scope.all(&["root", "alias"]).last().copied() else { return };
        let path = root.argument(0);
        if !is_constant(path) || path.is_empty() {
            let text = format!("\"{path}\" is not known: what serves its files is closed (404)");
            return self.note(root, Weight::LeftOut, text);
        }
        let path = match path.starts_with('/') {
            true => path.to_owned(),
            false => {
                let text = format!("\"{path}\" is taken as below {PREFIX}, as Debian's nginx has it");
                self.note(root, Weight::Remark, text);
                format!("{PREFIX}/{path}")
            }
        };
        let trimmed = path.trim_end_matches('/');
        if root.name == "alias" && self.includes.exists(&path) {
            let (folder, name) = trimmed.rsplit_once('/').unwrap_or_default();
            keys.set("root", if folder.is_empty() { "/" } else { folder });
            keys.set("fallback", name);
            return;
        }
        keys.set("root", if trimmed.is_empty() { "/" } else { trimmed });
        if root.name == "root" && is_within {
            keys.set("strip_prefix", false);
        }
    }

    /// What `try_files` of this place says; `None`: nothing, or what is done anyway.
    pub(super) fn fallback<'t>(&mut self, spot: &Spot<'t>, site: &Surroundings<'t>) -> Option<Vec<String>> {
        let (own, scope) = (Scope::of(&spot.directive.block), &spot.scope);
        let Some(directive) = own.find("try_files") else {
            let missing = own.each("if").into_iter().find_map(redirect::of_missing_files);
            let target = missing.or_else(|| instead_of_404(scope, site))?;
            return Some(vec!["$path".into(), "$path/".into(), target]);
        };
        let (last, tried) = directive.arguments.split_last()?;
        let candidates: Option<Vec<_>> = tried.iter().map(|word| candidate(word)).collect();
        let status = last.strip_prefix('=').and_then(|status| status.parse::<u16>().ok());
        let named = status.and_then(|status| site.named_for(u64::from(status), scope)).unwrap_or(last);
        let last = match (status, site.has_named(named)) {
            (_, true) => Some(format!("{}$uri", place_of(named))),
            (Some(status), false) => Some(format!("={status}")),
            (None, false) => template(last).filter(|target| target.starts_with('/')),
        };
        let (Some(candidates), Some(last)) = (candidates.filter(|each| !each.is_empty()), last) else {
            self.leave_out(directive);
            return None;
        };
        let is_usual = last == "=404" && candidates.iter().all(|each| matches!(&**each, "$path" | "$path/"));
        (!is_usual).then(|| candidates.into_iter().chain([last]).collect())
    }

    /// `Cache-Control` and other fields.
    pub(super) fn fields(&mut self, scope: &Scope<'_>, is_of_files: bool, keys: &mut Keys) {
        let added = scope.all(&["add_header"]);
        let expires = scope.find("expires");
        let by_type = expires.filter(|_| is_of_files).and_then(|expires| self.rules_by_type(expires));
        let of_all = expires.filter(|_| by_type.is_none()).and_then(|expires| self.expires(expires));
        let mut cache: Vec<String> = of_all.into_iter().collect();
        let (mut once, mut several) = (Keys::default(), Keys::default());
        for directive in added {
            let [name, value, ..] = directive.arguments.as_slice() else { continue };
            let is_reserved = RESERVED.iter().any(|reserved| name.eq_ignore_ascii_case(reserved));
            // Values by media type or path, which files have, are constant.
            let is_cache_control = name.eq_ignore_ascii_case("Cache-Control");
            let may_differ = !is_reserved && (!is_cache_control || is_constant(value));
            let Some(value) = field_value(value).filter(|_| may_differ) else {
                self.leave_out(directive);
                continue;
            };
            if name.eq_ignore_ascii_case("Alt-Svc") {
                self.note(directive, Weight::Remark, "HTTP/3 is not spoken: left out");
            } else if is_cache_control {
                cache.push(value);
            } else if !value.is_empty() {
                // nginx adds; an application's own field stays.
                let list = match several.get(name) {
                    Some(Value::List(list)) => [&list[..], &[Value::from(value)]].concat(),
                    _ => vec![Value::from(value)],
                };
                several.set(name, list);
            }
        }
        let cache = cache.join(", ");
        if is_of_files {
            let everything = (!cache.is_empty()).then(|| cache_rule("*", &cache));
            let rules: Vec<_> = by_type.into_iter().flatten().chain(everything).collect();
            if !rules.is_empty() {
                keys.set("cache_control", rules);
            }
        } else if !cache.is_empty() {
            once.set("Cache-Control", cache);
        }
        let hidden = scope.all(&["proxy_hide_header"]).into_iter().chain(scope.all(&["fastcgi_hide_header"]));
        let hidden: Vec<_> = hidden.map(|field| field.argument(0).to_owned()).collect();
        let mut headers = Keys::default();
        if !is_of_files && !hidden.is_empty() {
            headers.set("remove", hidden);
        }
        for (word, fields) in [("set", once), ("add", several)] {
            if !fields.is_empty() {
                headers.set(word, fields);
            }
        }
        if !headers.is_empty() {
            keys.set("headers", headers);
        }
    }

    /// The rules for files by their media types, where `expires` has the variable of a `map` by these.
    fn rules_by_type(&mut self, expires: &Directive) -> Option<Vec<Value>> {
        let [variable] = expires.arguments.as_slice() else { return None };
        let is_it = |map: &&&Directive| map.argument(0) == BY_MEDIA_TYPE && map.argument(1) == variable;
        let map = *self.of_http.maps.iter().find(is_it)?;
        let (mut exact, mut kinds, mut all) = (Vec::new(), Vec::new(), None);
        for line in &map.block {
            let said = Directive { name: "expires".into(), ..line.clone() };
            let value = self.expires(&said);
            match (media_types(&line.name), value) {
                (_, None) => {}
                (Some(kind), Some(value)) if kind.ends_with('*') => kinds.push((kind, value)),
                (Some(one), Some(value)) => exact.push((one, value)),
                (None, Some(value)) if line.name == "default" => all = Some(value),
                (None, Some(_)) => self.leave_out(line),
            }
        }
        let rule = |(media_type, value): (String, String)| {
            let mut rule = Keys::default();
            rule.set("types", vec![media_type]);
            rule.set("value", value);
            Value::Table(rule)
        };
        let rules = exact.into_iter().chain(kinds).map(rule);
        Some(rules.chain(all.map(|value| cache_rule("*", &value))).collect())
    }

    fn expires(&mut self, expires: &Directive) -> Option<String> {
        match expires.arguments.as_slice() {
            [word] if word == "off" => None,
            [word] if word == "max" => Some("max-age=315360000".into()),
            [word] if word == "epoch" || word.starts_with('-') => Some("no-cache".into()),
            [word] => match milliseconds(word.trim_start_matches('+'), 1000) {
                Some(time) => Some(format!("max-age={}", time / 1000)),
                None => {
                    self.leave_out(expires);
                    None
                }
            },
            _ => {
                self.leave_out(expires);
                None
            }
        }
    }
}

/// A media type of a `map`, or all of a kind, which is an expression there: `~image/`.
fn media_types(word: &str) -> Option<String> {
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    };
    let expression = word.strip_prefix("~*").or_else(|| word.strip_prefix('~'));
    let (kind, subtype) = match expression {
        Some(expression) => {
            let kind = expression.trim_start_matches('^').trim_end_matches(".*");
            (kind.strip_suffix("\\/").or_else(|| kind.strip_suffix('/'))?, "*")
        }
        None => word.split_once('/')?,
    };
    (is_name(kind) && (subtype == "*" || is_name(subtype))).then(|| format!("{kind}/{subtype}"))
}

/// What `error_page 404` puts in the place of what is not found, if it is to have the status that it has itself.
fn instead_of_404<'t>(scope: &Scope<'t>, site: &Surroundings<'t>) -> Option<String> {
    match site.named_for(404, scope) {
        Some(name) => Some(format!("{}$uri", place_of(name))),
        None => {
            let page = scope.all(&["error_page"]).into_iter().find(|page| page.argument(0) == "404")?;
            let [_, sign, target] = page.arguments.as_slice() else { return None };
            template(target).filter(|target| sign == "=" && target.starts_with('/'))
        }
    }
}

/// A file that is tried, as Baton writes it.
fn candidate(word: &str) -> Option<String> {
    let behind = match word {
        "$fastcgi_script_name" => "",
        word => word.strip_prefix("$uri")?,
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'/');
    behind.bytes().all(is_plain).then(|| format!("$path{behind}"))
}

fn cache_rule(pattern: &str, value: &str) -> Value {
    let mut rule = Keys::default();
    rule.set("match", pattern);
    rule.set("value", value);
    Value::Table(rule)
}

/// Where Debian's nginx looks for what has no absolute path.
const PREFIX: &str = "/usr/share/nginx";

/// Fields that follow from content and connection.
const RESERVED: [&str; 13] = [
    "accept-ranges",
    "connection",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "date",
    "etag",
    "keep-alive",
    "last-modified",
    "server",
    "transfer-encoding",
    "vary",
];

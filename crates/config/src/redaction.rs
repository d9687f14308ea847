//! A configuration as strangers may read it: without secrets, comments and values of unknown keys.
//!
//! It is made from the text, so a configuration that is refused can be shown as well. Each kind of setting says what may be
//! shown ([`Shown`]); a key that no setting has is taken for a secret's. Variables of the environment stay names.

use std::ops::Range;

use super::error::Source;
use super::files::Files;
use super::guards::Guards;
use super::include::INCLUDE;
use super::raw::{Entries, Node, Value, parse_table};
use super::reference::{Form, sections};
use super::route::RouteSettings;
use super::setting::Section;
use super::shown::Shown;
use super::site::SiteSettings;
use super::variables::BEGINNING;

/// What stands in the place of a secret.
pub const HIDDEN: &str = "(redacted)";

/// A configuration without its secrets, and the secrets, so that they can be found elsewhere.
#[derive(Debug, Default)]
pub struct Redaction {
    /// The files one after another, as TOML.
    pub shown: String,
    hidden: Vec<String>,
}

impl Redaction {
    /// Redacts all files of a configuration.
    pub fn of(source: &Source) -> Self {
        let mut redaction = Self::default();
        for (name, text) in source.files().filter(|(_, text)| !text.is_empty()) {
            redaction.hide_variables(text);
            let shown = match parse_table(text, 0) {
                (tree, complaints) if complaints.is_empty() => redaction.table(&tree, root).to_string(),
                // With half a tree, a value may belong to another key than the one it seems to.
                _ => "# This file is not TOML, so it is not shown.\n".to_owned(),
            };
            redaction.shown.push_str(&format!("# {name}\n{shown}\n"));
        }
        // A secret that begins another one must not leave the rest of that.
        redaction.hidden.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        redaction.hidden.dedup();
        redaction
    }

    /// A text in which the configuration's secrets may occur, such as a message about it, without them.
    pub fn without_secrets(&self, text: &str) -> String {
        self.hidden.iter().fold(text.to_owned(), |text, secret| text.replace(secret, HIDDEN))
    }

    fn table(&mut self, entries: &Entries, settings: fn() -> Vec<(&'static str, Shown)>) -> toml::Table {
        let known = settings();
        let mut value = |(key, node): (&toml::Spanned<String>, &Node)| {
            let key = key.get_ref();
            let shown =
                known.iter().find(|(name, _)| name == key).map_or(Shown::Nothing, |(_, shown)| *shown);
            (key.clone(), self.value(node, shown))
        };
        entries.iter().map(&mut value).collect()
    }

    fn value(&mut self, node: &Node, shown: Shown) -> toml::Value {
        match (node.get_ref(), shown) {
            (_, Shown::Nothing) => self.hide(node),
            (Value::Table(entries), Shown::Section(settings) | Shown::ValueOrSection(settings)) => {
                self.table(entries, settings).into()
            }
            (Value::Table(entries), Shown::Names | Shown::Whole) => {
                let value = |(key, node): (&toml::Spanned<String>, &Node)| {
                    (key.get_ref().clone(), self.value(node, shown))
                };
                toml::Table::from_iter(entries.iter().map(value)).into()
            }
            (Value::Array(elements), Shown::Program) => {
                let each = elements.iter().enumerate().map(|(at, element)| {
                    self.value(element, if at == 0 { Shown::Whole } else { Shown::Nothing })
                });
                toml::Value::Array(each.collect())
            }
            (Value::Array(elements), _) => {
                toml::Value::Array(elements.iter().map(|element| self.value(element, shown)).collect())
            }
            (Value::String(text), Shown::Whole | Shown::ValueOrSection(_)) => self.text(text),
            (Value::String(text), Shown::Section(_)) if SWITCHES.contains(&&**text) => text.as_str().into(),
            (Value::Boolean(value), Shown::Whole | Shown::Section(_) | Shown::ValueOrSection(_)) => {
                (*value).into()
            }
            (Value::Integer(value), Shown::Whole | Shown::Section(_) | Shown::ValueOrSection(_)) => {
                i64::try_from(*value).unwrap_or(i64::MAX).into()
            }
            _ => self.hide(node),
        }
    }

    /// A string that may be shown, without what is secret within it.
    fn text(&mut self, text: &str) -> toml::Value {
        if text.chars().any(char::is_control) {
            // Nothing that may be shown has several lines; a key that was written in the place of its file has.
            self.note(text);
            return HIDDEN.into();
        }
        let mut secrets = credentials(text);
        secrets.extend(defaults(text));
        secrets.extend(query_values(text));
        secrets.iter().for_each(|secret| self.note(&text[secret.clone()]));
        cut(text, secrets).into()
    }

    /// Hides a value, and finds its strings elsewhere.
    fn hide(&mut self, node: &Node) -> toml::Value {
        match node.get_ref() {
            Value::String(text) => self.note(text),
            Value::Array(elements) => elements.iter().for_each(|element| _ = self.hide(element)),
            Value::Table(entries) => entries.values().for_each(|value| _ = self.hide(value)),
            Value::Integer(_) | Value::Boolean(_) | Value::Float | Value::Date => {}
        }
        HIDDEN.into()
    }

    /// Values of variables take the place of their names in messages.
    fn hide_variables(&mut self, text: &str) {
        for (at, _) in text.match_indices(BEGINNING) {
            let rest = &text[at + BEGINNING.len()..];
            let name = &rest[..rest.find([':', '}']).unwrap_or(0)];
            if let Some(value) = std::env::var(name).ok().filter(|_| !name.is_empty()) {
                self.note(&value);
            }
        }
    }

    fn note(&mut self, secret: &str) {
        if secret.len() >= SECRET_BYTES_MIN {
            self.hidden.push(secret.to_owned());
        }
    }
}

/// A text without the credentials in its URLs.
pub fn without_credentials(text: &str) -> String {
    cut(text, credentials(text))
}

/// Where users and passwords stand in URLs: `http://USER:PASSWORD@HOST`.
fn credentials(text: &str) -> Vec<Range<usize>> {
    let begins = text.match_indices("://").map(|(at, mark)| at + mark.len());
    let found = begins.filter_map(|start| {
        let authority = text[start..].split(['/', '?', '#', '"', '\'', ' ', '`']).next()?;
        authority.rfind('@').map(|len| start..start + len)
    });
    found.collect()
}

/// Where defaults of variables stand: `{env.NAME:DEFAULT}`.
fn defaults(text: &str) -> Vec<Range<usize>> {
    let found = text.match_indices(BEGINNING).filter_map(|(at, _)| {
        let variable = &text[at..at + text[at..].find('}')?];
        variable.find(':').map(|colon| at + colon + 1..at + variable.len())
    });
    found.collect()
}

/// Where the values of a query stand, but for those that are variables of a template: `?NAME=VALUE&NAME=$uri`. What has no such
/// form may be a pattern.
fn query_values(text: &str) -> Vec<Range<usize>> {
    let Some(question) = text.find('?') else { return Vec::new() };
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.[]%".contains(&byte))
    };
    let mut found = Vec::new();
    let mut at = question + 1;
    for part in text[at..].split('&') {
        match part.split_once('=') {
            Some((name, value)) if is_name(name) && !value.is_empty() && !value.starts_with('$') => {
                found.push(at + name.len() + 1..at + part.len());
            }
            _ => {}
        }
        at += part.len() + 1;
    }
    found
}

/// A text with [`HIDDEN`] in the place of its secrets.
fn cut(text: &str, mut secrets: Vec<Range<usize>>) -> String {
    secrets.sort_by_key(|secret| secret.start);
    let (mut out, mut end) = (String::new(), 0);
    // A secret may lie within another one.
    for secret in secrets.into_iter().filter(|secret| !secret.is_empty()) {
        if secret.start >= end {
            out.push_str(&text[end..secret.start]);
            out.push_str(HIDDEN);
        }
        end = end.max(secret.end);
    }
    out + &text[end..]
}

fn root() -> Vec<(&'static str, Shown)> {
    let tables = sections().into_iter().filter(|section| section.form == Form::Table);
    let mut settings: Vec<_> = tables.map(|section| (section.name, section.shown)).collect();
    settings.extend([(INCLUDE, Shown::Whole), ("site", Shown::Section(site))]);
    settings
}

fn site() -> Vec<(&'static str, Shown)> {
    let mut settings = [SiteSettings::shown(), Guards::shown(), Files::shown()].concat();
    settings.push(("route", Shown::Section(route)));
    settings
}

fn route() -> Vec<(&'static str, Shown)> {
    [RouteSettings::shown(), Guards::shown(), Files::shown()].concat()
}

/// Words that settings have beside their tables.
const SWITCHES: [&str; 6] = ["acme", "auto", "none", "off", "system", "usual"];

/// Shorter strings are found in every text.
const SECRET_BYTES_MIN: usize = 4;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn redacted(text: &str) -> Redaction {
        Redaction::of(&Source::new("b.toml".into(), text.into()))
    }

    /// Goal: every kind of secret that the schema has is hidden, and a new setting has to be put on one side. Method: the
    /// file with every setting; what is missing from what is shown is listed here.
    #[test]
    fn these_values_are_hidden_and_all_others_shown() {
        let text = include_str!("everything.toml");
        let given: toml::Table = text.parse().unwrap();
        let shown: toml::Table = redacted(text).shown.parse().unwrap();
        let mut hidden = BTreeSet::new();
        compare("", &given.into(), &shown.into(), &mut hidden);
        assert_eq!(Vec::from_iter(hidden), HIDDEN_SETTINGS);
    }

    const HIDDEN_SETTINGS: [&str; 14] = [
        "acme.email",
        "acme.external_account.key_id",
        "cluster.etcd.user",
        "site.basic_auth.users",
        "site.headers",
        "site.route.fastcgi.command",
        "site.route.fastcgi.environment.C",
        "site.route.fastcgi.params.A",
        "site.route.headers",
        "site.route.proxy.request_headers.X-Key",
        "site.route.respond.body",
        "site.route.when.cookie.a",
        "site.route.when.header.X-Beta",
        "site.route.when.query.b",
    ];

    fn compare(path: &str, given: &toml::Value, shown: &toml::Value, hidden: &mut BTreeSet<String>) {
        match (given, shown) {
            (toml::Value::Table(given), toml::Value::Table(shown)) => {
                for (key, value) in given {
                    compare(&format!("{path}.{key}"), value, &shown[key], hidden);
                }
            }
            (toml::Value::Array(given), toml::Value::Array(shown)) => {
                given.iter().zip(shown).for_each(|(given, shown)| compare(path, given, shown, hidden));
            }
            _ if given == shown => {}
            _ => {
                assert!(shown.as_str().is_some_and(|shown| shown.contains(HIDDEN)), "{path}: {shown}");
                let end = path.find(".headers.").map_or(path.len(), |at| at + ".headers".len());
                hidden.insert(path[1..end].to_owned());
            }
        }
    }

    #[test]
    fn secrets_within_strings_are_hidden() {
        let text = "[[site]]\nroot = '{env.ROOT:/secret}'\n[[site.route]]\nredirect = { to = 'https://a:b@c/d?e=f&g=$uri' }\n\
                    [[site.route]]\nregex = '^/(?<name>.*)=$'\nproxy = 'http://ada:pass@host/'\n";
        let redaction = redacted(text);
        for part in [
            "root = \"{env.ROOT:(redacted)}\"",
            "to = \"https://(redacted)@c/d?e=(redacted)&g=$uri\"",
            "regex = \"^/(?<name>.*)=$\"",
            "proxy = \"http://(redacted)@host/\"",
        ] {
            assert!(redaction.shown.contains(part), "{part} in {}", redaction.shown);
        }
        assert_eq!(
            redaction.without_secrets("no user ada:pass, no /secret"),
            "no user (redacted), no (redacted)"
        );
    }

    #[test]
    fn what_no_setting_explains_is_hidden() {
        let text = "# comment\n[server]\npasword = 'hunter2'\n[[site]]\nbasic_auth = 'hunter3'\nname = \"\"\"\n-----BEGIN\n\"\"\"\n\
                    [unknown]\nkey = [{ a = 'hunter4' }]\n";
        let redaction = redacted(text);
        for word in ["comment", "hunter", "BEGIN"] {
            assert!(!redaction.shown.contains(word), "{}", redaction.shown);
        }
        assert!(redaction.shown.contains("pasword = \"(redacted)\""), "{}", redaction.shown);
        assert_eq!(redaction.without_secrets("hunter4"), HIDDEN);
    }

    #[test]
    fn what_is_not_toml_is_not_shown() {
        let shown = redacted("[[site]]\nroot = 'secret\n").shown;
        assert!(shown.contains("not TOML") && !shown.contains("secret"), "{shown}");
    }
}

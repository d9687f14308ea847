//! A configuration made of flags, not of a file.
//!
//! The source that complaints point into is the command line itself, written out in full: so a mistake in a flag is
//! shown like a mistake in a file.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use baton_config::{Entries, Node, RawConfig, Source, Value};
use toml::Spanned;

/// Collects flags.
#[derive(Debug)]
pub(super) struct CommandLine {
    text: String,
    tree: Entries,
    site: Entries,
    routes: Vec<Node>,
}

impl CommandLine {
    /// Begins with the command's own words.
    pub(super) fn new(command: &str) -> Self {
        Self { text: command.to_owned(), tree: Entries::new(), site: Entries::new(), routes: Vec::new() }
    }

    /// Writes a word down, in quotes if a shell needs them, and says where it stands.
    pub(super) fn word(&mut self, word: &str) -> Range<usize> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
        let quote = if word.is_empty() || !word.chars().all(plain) { "'" } else { "" };
        self.text.push(' ');
        self.text.push_str(quote);
        let start = self.text.len();
        // The excerpt is one line.
        self.text.push_str(&word.replace(['\n', '\r'], " "));
        let end = self.text.len();
        self.text.push_str(quote);
        start..end
    }

    /// Writes a flag and its value down, and makes a value of it that knows its place.
    pub(super) fn flag(&mut self, flag: &str, value: &str) -> Node {
        self.word(flag);
        Spanned::new(self.word(value), Value::String(value.to_owned()))
    }

    /// Writes down a flag and its value, and makes a value of each part. One separator stands between two parts.
    pub(super) fn parts<'t>(
        &mut self,
        flag: &str,
        value: &str,
        parts: impl IntoIterator<Item = &'t str>,
    ) -> Vec<Node> {
        self.word(flag);
        let mut at = self.word(value).start;
        let place = |part: &str| {
            let start = at;
            at += part.len() + 1;
            Spanned::new(start..start + part.len(), Value::String(part.to_owned()))
        };
        parts.into_iter().map(place).collect()
    }

    /// Writes down a flag and the number that follows it, and makes a value of it that knows its place.
    pub(super) fn number(&mut self, flag: &str, value: u64) -> Node {
        self.word(flag);
        Spanned::new(self.word(&value.to_string()), Value::Integer(value.into()))
    }

    /// Writes down a flag that needs no value, and makes a value of it that knows its place.
    pub(super) fn switch(&mut self, flag: &str, value: bool) -> Node {
        Spanned::new(self.word(flag), Value::Boolean(value))
    }

    /// Sets a key of the one site that flags describe.
    pub(super) fn set_site(&mut self, key: &str, value: Node) {
        insert(&mut self.site, key, value);
    }

    /// Lets responses be compressed, as `baton serve` does unless a flag says `no`.
    pub(super) fn set_compress(&mut self, no: Option<&str>) {
        let value = match no {
            Some(flag) => self.switch(flag, false),
            None => Spanned::new(0..0, Value::Boolean(true)),
        };
        self.set_site("compress", value);
    }

    /// Adds a route to the one site that flags describe.
    pub(super) fn add_route(&mut self, entries: impl IntoIterator<Item = (String, Node)>) {
        self.routes.push(table(entries));
    }

    /// Sets a key of a section.
    pub(super) fn set(&mut self, section: &str, key: &str, value: Node) {
        let span = value.span();
        let empty = || Spanned::new(span.clone(), Value::Table(Entries::new()));
        let section = self.tree.entry(Spanned::new(span.clone(), section.to_owned())).or_insert_with(empty);
        if let Value::Table(entries) = section.get_mut() {
            insert(entries, key, value);
        }
    }

    /// Adds `--access-log`, if it was given; `-` is standard output.
    pub(super) fn add_access_log(&mut self, path: Option<&str>) {
        if let Some(path) = path {
            let mut value = self.flag("--access-log", path);
            if path == "-" {
                *value.get_mut() = Value::String("stdout".into());
            }
            self.set("log", "access", value);
        }
    }

    /// The whole, relative to a folder.
    pub(super) fn finish(mut self, base: PathBuf) -> RawConfig {
        if !self.routes.is_empty() {
            let mut routes = std::mem::take(&mut self.routes);
            // Those of `--set` come behind those of other flags.
            if let Some(Value::Array(own)) = self.site.get_mut("route").map(Spanned::get_mut) {
                routes.append(own);
            }
            self.set_site("route", array(routes));
        }
        let whole = 0..self.text.len();
        let site = Spanned::new(whole.clone(), Value::Table(self.site));
        insert(&mut self.tree, "site", Spanned::new(whole, Value::Array(vec![site])));
        RawConfig {
            source: Source::new("command line".into(), self.text),
            base,
            tree: self.tree,
            from_variables: Vec::new(),
        }
    }
}

/// An array, at the place of its first element.
pub(super) fn array(elements: Vec<Node>) -> Node {
    let span = elements.first().map_or(0..0, Node::span);
    Spanned::new(span, Value::Array(elements))
}

/// A table, at the place of its first value. Keys take the places of their values.
pub(super) fn table(pairs: impl IntoIterator<Item = (String, Node)>) -> Node {
    let mut entries = BTreeMap::new();
    let mut place = None;
    for (key, value) in pairs {
        place.get_or_insert(value.span());
        insert(&mut entries, &key, value);
    }
    Spanned::new(place.unwrap_or(0..0), Value::Table(entries))
}

fn insert(entries: &mut Entries, key: &str, value: Node) {
    entries.insert(Spanned::new(value.span(), key.to_owned()), value);
}

/// A field of a request or of a response, as a flag gives it.
pub(super) fn parse_header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("expected NAME:VALUE")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

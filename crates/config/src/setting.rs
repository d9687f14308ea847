//! The one place where a setting is declared: name, documentation, default, kind and range.
//!
//! [`settings!`] makes of such a list the checked struct, its defaults, its reader and its writer, and keeps the
//! comments, so that the reference, the manual page and `baton config --default` cannot say anything else than the
//! code does.

use std::marker::PhantomData;
use std::ops::Range;

use super::error::Complaint;
use super::kind::{Kind, Reading};
use super::raw::{Entries, Node, Value};
use super::schema::Schema;
use super::shown::Shown;

/// A setting as users see it.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Key in its table.
    pub name: &'static str,
    /// Documentation, a line each.
    pub doc: &'static [&'static str],
    /// What may be written.
    pub accepted: String,
    /// Words that are explained one by one.
    pub explained: Vec<(&'static str, &'static str)>,
    /// Value if none is given.
    pub default: toml::Value,
}

/// What can be done with a setting of a section, whatever its kind.
pub trait Field<S> {
    /// What users see of it.
    fn describe(&self, default: &S) -> Setting;

    /// Its key, and what an editor may take for its value.
    fn schema(&self, default: &S) -> (&'static str, Schema);

    /// Its key, and what others may see of it.
    fn shown(&self) -> (&'static str, Shown);

    /// Takes what the table gives; if it gives nothing, the value stays.
    fn read(&self, section: &mut S, table: &mut Table<'_>, reading: &mut Reading<'_>);

    /// Its value, as it is written.
    fn write(&self, section: &S) -> toml::Value;
}

/// A setting of a section. [`settings!`] makes one of each line; code is compiled for each kind, not for each setting.
pub(crate) struct KindField<S, K: Kind> {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static [&'static str],
    pub(crate) kind: K,
    pub(crate) get: fn(&S) -> &K::Value,
    pub(crate) get_mut: fn(&mut S) -> &mut K::Value,
}

impl<S: Section, K: Kind> Field<S> for KindField<S, K> {
    fn describe(&self, default: &S) -> Setting {
        Setting {
            name: key(self.name),
            doc: self.doc,
            accepted: self.kind.accepted(),
            explained: self.kind.explained(),
            default: self.write(default),
        }
    }

    fn schema(&self, default: &S) -> (&'static str, Schema) {
        let setting = self.describe(default);
        let lines = setting.doc.iter().map(|line| line.trim());
        let mut text = lines.collect::<Vec<_>>().join(" ");
        for (word, meaning) in &setting.explained {
            text.push_str(&format!("\n- \"{word}\": {meaning}"));
        }
        text.push_str(&format!("\nAccepted: {}.", setting.accepted));
        let is_needed = S::NEEDED.contains(&setting.name);
        let schema = Box::new(self.kind.schema());
        (setting.name, Schema::Documented(schema, text, (!is_needed).then_some(setting.default)))
    }

    fn shown(&self) -> (&'static str, Shown) {
        (key(self.name), K::SHOWN)
    }

    fn read(&self, section: &mut S, table: &mut Table<'_>, reading: &mut Reading<'_>) {
        if let Some(value) = table.take(key(self.name), &self.kind, reading) {
            *(self.get_mut)(section) = value;
        }
    }

    fn write(&self, section: &S) -> toml::Value {
        self.kind.write((self.get)(section))
    }
}

/// A table of settings.
pub trait Section: Default + 'static {
    /// Its name in the file.
    const NAME: &'static str;
    /// What its settings are about, a line each.
    const ABOUT: &'static [&'static str];
    /// Keys that must be given.
    const NEEDED: &'static [&'static str];
    /// Its settings, in order.
    const FIELDS: &'static [&'static dyn Field<Self>];

    /// Its settings with their documentation, in order.
    fn settings() -> Vec<Setting> {
        let default = Self::default();
        Self::FIELDS.iter().map(|field| field.describe(&default)).collect()
    }

    /// Its keys, and what an editor may take for the value of each.
    fn properties() -> Vec<(&'static str, Schema)> {
        let default = Self::default();
        Self::FIELDS.iter().map(|field| field.schema(&default)).collect()
    }

    /// Its settings, and what others may see of each.
    fn shown() -> Vec<(&'static str, Shown)> {
        Self::FIELDS.iter().map(|field| field.shown()).collect()
    }

    /// Takes what the table gives; what it does not give stays as in `base`.
    fn read(table: &mut Table<'_>, mut base: Self, reading: &mut Reading<'_>) -> Self {
        for field in Self::FIELDS {
            field.read(&mut base, table, reading);
        }
        base
    }

    /// The values, in the order of `settings`.
    fn write(&self) -> Vec<toml::Value> {
        Self::FIELDS.iter().map(|field| field.write(self)).collect()
    }
}

/// A table being read. It notes the keys that were asked for, and names the others at the end.
pub struct Table<'a> {
    path: String,
    entries: &'a Entries,
    asked: Vec<&'static str>,
}

impl<'a> Table<'a> {
    /// Begins to read a table; `path` is what messages call it, empty for the root.
    pub fn new(path: impl Into<String>, entries: &'a Entries) -> Self {
        Self { path: path.into(), entries, asked: Vec::new() }
    }

    /// The value of a key, if it is there.
    pub fn node(&mut self, key: &'static str) -> Option<&'a Node> {
        self.asked.push(key);
        self.entries.get(key)
    }

    /// The value of a key as a setting; nothing if it is not there or not acceptable.
    pub fn take<K: Kind>(
        &mut self,
        key: &'static str,
        kind: &K,
        reading: &mut Reading<'_>,
    ) -> Option<K::Value> {
        let node = self.node(key)?;
        reading.setting = self.name_of(key);
        kind.read(node, reading)
    }

    /// The table below a key, if it is there.
    pub fn table(&mut self, key: &'static str, reading: &mut Reading<'_>) -> Option<Self> {
        let node = self.node(key)?;
        reading.setting = self.name_of(key);
        match node.get_ref() {
            Value::Table(entries) => Some(Self::new(self.name_of(key), entries)),
            _ => reading.mismatch(node, &format!("a table: [{}]", self.name_of(key))),
        }
    }

    /// The tables of an array of tables, and their places.
    pub fn tables(&mut self, key: &'static str, reading: &mut Reading<'_>) -> Vec<(Self, Range<usize>)> {
        let Some(node) = self.node(key) else { return Vec::new() };
        let name = self.name_of(key);
        reading.setting.clone_from(&name);
        let Value::Array(elements) = node.get_ref() else {
            return reading.mismatch(node, &format!("an array of tables: [[{name}]]")).unwrap_or_default();
        };
        let table_of = |element: &'a Node| match element.get_ref() {
            Value::Table(entries) => Some((Self::new(name.clone(), entries), element.span())),
            _ => reading.mismatch(element, &format!("a table: [[{name}]]")),
        };
        elements.iter().filter_map(table_of).collect()
    }

    /// Everything that was written.
    pub fn entries(&self) -> &'a Entries {
        self.entries
    }

    /// Complains about keys that must be there and are not. `span` is where the table begins.
    pub fn need(&self, keys: &[&str], span: Range<usize>, reading: &mut Reading<'_>) {
        for key in keys.iter().filter(|key| !self.has(key)) {
            let complaint = Complaint::new(format!("`{}` is missing", self.name_of(key)));
            reading.complain(complaint.at(span.clone(), "must be given here"));
        }
    }

    /// Whether a key was written.
    pub fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// The table below a key that others read.
    pub fn peek(&self, key: &str) -> Option<Self> {
        match self.entries.get(key)?.get_ref() {
            Value::Table(entries) => Some(Self::new(self.name_of(key), entries)),
            _ => None,
        }
    }

    /// Whether a key was written with this word.
    pub fn says(&self, key: &str, word: &str) -> bool {
        self.entries.get(key).is_some_and(|node| node.get_ref().as_str() == Some(word))
    }

    /// Whether a key was written to say more than `"off"` or `false`.
    pub fn is_set(&self, key: &str) -> bool {
        let is_false = |node: &Node| matches!(node.get_ref(), Value::Boolean(false));
        self.entries.get(key).is_some_and(|node| !is_false(node)) && !self.says(key, "off")
    }

    /// Whether a key was written with something else than an empty array.
    pub fn has_elements(&self, key: &str) -> bool {
        let empty = |node: &Node| matches!(node.get_ref(), Value::Array(elements) if elements.is_empty());
        self.entries.get(key).is_some_and(|node| !empty(node))
    }

    /// Whether a key was written with a value that was refused.
    pub fn has_refused(&self, key: &str, reading: &Reading<'_>) -> bool {
        self.span_of(key).is_some_and(|span| reading.has_refused(&span))
    }

    /// The place of a key's value, if it was written.
    pub fn span_of(&self, key: &str) -> Option<Range<usize>> {
        self.entries.get(key).map(Node::span)
    }

    /// Complains about keys that no setting has.
    pub fn finish(self, reading: &mut Reading<'_>) {
        for (key, _) in self.entries.iter().filter(|(key, _)| !self.asked.contains(&key.get_ref().as_str())) {
            let place = if self.path.is_empty() { "here".into() } else { format!("in [{}]", self.path) };
            let known = self.asked.join(", ");
            let complaint = Complaint::new(format!("unknown key `{}`", key.get_ref()))
                .at(key.span(), format!("not known {place}"))
                .did_you_mean(key.get_ref(), self.asked.iter().copied())
                .help(format!("known {place}: {known}"));
            reading.complain(complaint);
        }
    }

    fn name_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

/// A section written as one value: `{ key = …, … }`.
pub(crate) struct Inline<S>(PhantomData<S>);

impl<S> Inline<S> {
    /// The kind.
    pub(crate) const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<S: Section> Kind for Inline<S> {
    type Value = S;

    const SHOWN: Shown = Shown::Section(S::shown);

    fn accepted(&self) -> String {
        let keys: Vec<_> = S::settings().iter().map(|setting| format!("{} = …", setting.name)).collect();
        format!("{{ {} }}", keys.join(", "))
    }

    fn schema(&self) -> Schema {
        Schema::Object(S::properties(), S::NEEDED)
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<S> {
        let Value::Table(entries) = node.get_ref() else {
            return reading.mismatch(node, &self.accepted());
        };
        let before = reading.complaints.len();
        let setting = reading.setting.clone();
        let mut table = Table::new(setting.clone(), entries);
        let section = S::read(&mut table, S::default(), reading);
        table.need(S::NEEDED, node.span(), reading);
        table.finish(reading);
        // The keys inside have been read; what follows belongs to the setting again.
        reading.setting = setting;
        (reading.complaints.len() == before).then_some(section)
    }

    fn write(&self, value: &S) -> toml::Value {
        let keys = S::settings().into_iter().map(|setting| setting.name.to_owned());
        toml::Value::Table(keys.zip(value.write()).collect())
    }
}

/// The key that a field stands for; `r#match` is how Rust spells the field `match`.
fn key(field: &'static str) -> &'static str {
    field.trim_start_matches("r#")
}

/// Declares a section: `name: type = default, kind;` with documentation above each. A key that it `needs` has no
/// default for users; the one given here only completes a value that is refused.
macro_rules! settings {
    (
        $(#[doc = $about:literal])*
        $section:ident in $name:literal $(needs [$($needed:literal),*])? {
            $( $(#[doc = $doc:literal])* $field:ident: $value:ty = $default:expr, $kind:expr; )*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $section { $( $(#[doc = $doc])* pub $field: $value, )* }

        impl Default for $section {
            fn default() -> Self {
                Self { $( $field: $default, )* }
            }
        }

        impl $crate::setting::Section for $section {
            const NAME: &'static str = $name;
            const ABOUT: &'static [&'static str] = &[$($about),*];
            const NEEDED: &'static [&'static str] = &[$($($needed),*)?];
            const FIELDS: &'static [&'static dyn $crate::setting::Field<Self>] = &[
                $( &$crate::setting::KindField {
                    name: stringify!($field),
                    doc: &[$($doc),*],
                    kind: $kind,
                    get: |section: &Self| &section.$field,
                    get_mut: |section: &mut Self| &mut section.$field,
                }, )*
            ];
        }
    };
}
pub(crate) use settings;

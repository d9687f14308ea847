//! A configuration of Baton, as text.

use std::collections::HashSet;
use std::fmt::{self, Write as _};

use crate::note::Note;

/// A configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Document {
    pub(crate) sections: Vec<Section>,
}

/// A table of a configuration.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    /// `[name]` or `[[name]]`.
    pub(crate) header: &'static str,
    /// What could not be taken over here.
    pub(crate) notes: Vec<Note>,
    pub(crate) keys: Keys,
}

/// The keys of a table with their values, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keys(pub(crate) Vec<(String, Value)>);

impl Keys {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Gives a key its value, in the place of the one that it has.
    pub(crate) fn set(&mut self, key: &str, value: impl Into<Value>) {
        let value = value.into();
        match self.0.iter_mut().find(|(known, _)| known == key) {
            Some((_, known)) => *known = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Text(String),
    Number(u64),
    Flag(bool),
    List(Vec<Self>),
    Table(Keys),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<Vec<Self>> for Value {
    fn from(list: Vec<Self>) -> Self {
        Self::List(list)
    }
}

impl From<Vec<String>> for Value {
    fn from(list: Vec<String>) -> Self {
        Self::List(list.into_iter().map(Self::Text).collect())
    }
}

impl From<Keys> for Value {
    fn from(keys: Keys) -> Self {
        Self::Table(keys)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write_text(text, f),
            Self::Number(number) => write!(f, "{number}"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::List(values) => {
                f.write_str("[")?;
                for (index, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if index == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
            Self::Table(keys) => {
                f.write_str("{ ")?;
                for (index, (key, value)) in keys.0.iter().enumerate() {
                    write!(f, "{}{} = {value}", if index == 0 { "" } else { ", " }, Key(key))?;
                }
                f.write_str(" }")
            }
        }
    }
}

/// A key, in quotes if it needs them.
struct Key<'a>(&'a str);

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        match !self.0.is_empty() && self.0.bytes().all(is_bare) {
            true => f.write_str(self.0),
            false => write_text(self.0, f),
        }
    }
}

/// A basic string of TOML.
fn write_text(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("\"")?;
    for character in text.chars() {
        match character {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\t' => f.write_str("\\t")?,
            control if control.is_control() => write!(f, "\\u{:04X}", u32::from(control))?,
            other => write!(f, "{other}")?,
        }
    }
    f.write_str("\"")
}

/// The whole file. Notes that belong to no section are at its head.
pub(crate) fn document(document: &Document, name: &str, notes: &[Note]) -> String {
    let mut out = String::new();
    comment(&mut out, &format!("Converted from {name}. Read what is said of each line; then: baton check"));
    let below: HashSet<_> = document.sections.iter().flat_map(|section| &section.notes).collect();
    for note in notes.iter().filter(|note| !below.contains(note)) {
        comment(&mut out, &note.to_string());
    }
    for section in &document.sections {
        out.push('\n');
        for note in &section.notes {
            comment(&mut out, &note.to_string());
        }
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(out, "{}", section.header);
        for (key, value) in &section.keys.0 {
            let _ = writeln!(out, "{} = {value}", Key(key));
        }
    }
    out
}

/// A line that begins with `#`, whatever is in the text.
fn comment(out: &mut String, text: &str) {
    out.push_str("# ");
    out.extend(text.chars().map(|character| if character.is_control() { ' ' } else { character }));
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_toml() {
        let mut table = Keys::default();
        table.set("a-b", "x\"y\\z\n\u{1}é");
        table.set("/c d", vec![Value::Number(1), Value::Flag(true)]);
        assert_eq!(
            Value::Table(table).to_string(),
            "{ a-b = \"x\\\"y\\\\z\\n\\u0001é\", \"/c d\" = [1, true] }"
        );
    }

    #[test]
    fn a_comment_is_one_line() {
        let mut out = String::new();
        comment(&mut out, "a\nb = 1\r\u{7f}");
        assert_eq!(out, "# a b = 1  \n");
    }
}

//! A configuration as it was written: a tree of values that know their place in the source. Files and the command
//! line both become this tree, so that one path checks them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::error::{Complaint, ConfigError, Source};

/// A value and its place in the source.
pub type Node = Spanned<Value>;

/// A table; the keys know their places too.
pub type Entries = BTreeMap<Spanned<String>, Node>;

/// What may be written as a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A string.
    String(String),
    /// An integer; one that no setting could take is the largest of all.
    Integer(i128),
    /// `true` or `false`.
    Boolean(bool),
    /// An array.
    Array(Vec<Node>),
    /// A table.
    Table(Entries),
    /// A floating-point number: no setting takes one.
    Float,
    /// A date: no setting takes one.
    Date,
}

/// Settings as written, not yet checked.
#[derive(Clone, Debug)]
pub struct RawConfig {
    /// The text that spans refer to.
    pub source: Source,
    /// What relative paths are relative to: the folder of the file, or the current one. Those in an included file are
    /// relative to its own folder.
    pub base: PathBuf,
    /// The settings.
    pub tree: Entries,
    /// Places of strings that are nothing but a variable: they may stand for numbers and booleans.
    pub from_variables: Vec<Range<usize>>,
}

/// One step on the way from the root of the tree to a value.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// Into a table.
    Key(&'a str),
    /// Into an array.
    Index(usize),
}

impl RawConfig {
    /// Parses TOML. `name` is what messages call the text, `base` what relative paths are relative to.
    ///
    /// # Errors
    /// All syntax errors, and no others: half a tree would cause misleading complaints.
    pub fn parse(name: String, text: String, base: &Path) -> Result<Self, ConfigError> {
        let (tree, complaints) = parse_table(&text, 0);
        let source = Source::new(name, text);
        if complaints.is_empty() {
            Ok(Self { source, base: base.to_owned(), tree, from_variables: Vec::new() })
        } else {
            Err(ConfigError::new(source, complaints))
        }
    }

    /// What relative paths at a place are relative to.
    pub(crate) fn base_at(&self, place: &Range<usize>) -> &Path {
        self.source.folder_at(place.start).unwrap_or(&self.base)
    }

    /// The place of the value at `path`, or of the nearest value around it that was written at all.
    pub fn span(&self, path: &[Step<'_>]) -> Range<usize> {
        (0..=path.len()).rev().find_map(|steps| self.find(&path[..steps])).unwrap_or(0..0)
    }

    /// The place of the value at `path`, if it was written.
    pub fn find(&self, path: &[Step<'_>]) -> Option<Range<usize>> {
        let mut node: Option<&Node> = None;
        for step in path {
            node = Some(match (step, node.map(Spanned::get_ref)) {
                (Step::Key(key), None) => self.tree.get(*key)?,
                (Step::Key(key), Some(Value::Table(table))) => table.get(*key)?,
                (Step::Index(index), Some(Value::Array(array))) => array.get(*index)?,
                _ => return None,
            });
        }
        node.map(Spanned::span)
    }
}

impl Value {
    /// What this is called in messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::String(_) => "a string",
            Self::Integer(_) => "an integer",
            Self::Boolean(_) => "a boolean",
            Self::Array(_) => "an array",
            Self::Table(_) => "a table",
            Self::Float => "a floating-point number",
            Self::Date => "a date",
        }
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }
}

/// Parses a text that begins at `place` of the source: what could be read, and all syntax errors.
pub(crate) fn parse_table(text: &str, place: usize) -> (Entries, Vec<Complaint>) {
    let (tree, errors) = DeTable::parse_recoverable(text);
    let complaint = |error: &toml::de::Error| {
        let span = error.span().unwrap_or(text.len()..text.len());
        Complaint::new("this is not TOML").at(moved(span, place), error.message())
    };
    (entries(tree.get_ref(), place), errors.iter().map(complaint).collect())
}

/// Reads one value that begins at `place` of the source: TOML, or else a string without quotes.
pub fn parse_value(text: &str, place: usize) -> Node {
    match DeValue::parse(text) {
        Ok(value) => node(&value, place),
        Err(_) => Spanned::new(place..place + text.len(), Value::String(text.to_owned())),
    }
}

fn entries(table: &DeTable<'_>, place: usize) -> Entries {
    let entry = |(key, value): (&Spanned<DeString<'_>>, &_)| {
        (Spanned::new(moved(key.span(), place), key.get_ref().clone().into_owned()), node(value, place))
    };
    table.iter().map(entry).collect()
}

fn moved(span: Range<usize>, by: usize) -> Range<usize> {
    span.start + by..span.end + by
}

/// A value that was parsed from the part of the source that begins at `place`.
fn node(value: &Spanned<DeValue<'_>>, place: usize) -> Node {
    let owned = match value.get_ref() {
        DeValue::String(text) => Value::String(text.clone().into_owned()),
        DeValue::Integer(integer) => {
            Value::Integer(i128::from_str_radix(integer.as_str(), integer.radix()).unwrap_or(i128::MAX))
        }
        DeValue::Boolean(boolean) => Value::Boolean(*boolean),
        DeValue::Array(elements) => {
            Value::Array(elements.iter().map(|element| node(element, place)).collect())
        }
        DeValue::Table(table) => Value::Table(entries(table, place)),
        DeValue::Float(_) => Value::Float,
        DeValue::Datetime(_) => Value::Date,
    };
    Spanned::new(moved(value.span(), place), owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_that_of_the_nearest_written_value() {
        let text = "[limits]\nranges_max = 5\n[[site]]\nlisten = ['a', 'bc']\n";
        let raw = RawConfig::parse("t".into(), text.into(), Path::new("/")).expect("valid");
        let shown = |path: &[Step<'_>]| &raw.source.text[raw.span(path)];
        assert_eq!(shown(&[Step::Key("limits"), Step::Key("ranges_max")]), "5");
        let listen = [Step::Key("site"), Step::Index(0), Step::Key("listen")];
        assert_eq!(shown(&listen), "['a', 'bc']");
        assert_eq!(shown(&[listen[0], listen[1], listen[2], Step::Index(1)]), "'bc'");
        let hosts = [listen[0], listen[1], Step::Key("hosts")];
        assert_eq!((shown(&hosts), raw.find(&hosts)), ("[[site]]", None));
        assert_eq!(shown(&[Step::Key("cache"), Step::Key("names")]), "");
    }

    #[test]
    fn every_syntax_error_is_reported() {
        let error =
            RawConfig::parse("t".into(), "a = \nb = 1\nc = ]\n".into(), Path::new("/")).expect_err("bad");
        let shown = error.to_string();
        assert!(shown.contains("t:1:") && shown.contains("t:3:"), "{shown}");
    }
}

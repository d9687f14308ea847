//! What a setting may be: how it is read from the source, what is accepted, how it is written back.
//!
//! Kinds nest: [`Or`] adds a word such as `"auto"` that stands for "nothing given", [`ListOf`] makes an array.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::raw::{Node, Value};
use super::report::Complaint;

/// What is common to reading all settings of one configuration.
pub(crate) struct Reading<'a> {
    /// What relative paths are relative to.
    pub(crate) base: &'a Path,
    /// The setting being read, for titles: `limits.ranges_max`.
    pub(crate) setting: String,
    /// What was wrong so far.
    pub(crate) complaints: Vec<Complaint>,
}

impl Reading<'_> {
    /// Begins a complaint about the setting being read: `problem` completes a sentence that starts with its name.
    pub(crate) fn complaint(&self, problem: &str) -> Complaint {
        Complaint::new(format!("`{}` {problem}", self.setting))
    }

    /// Records a complaint.
    pub(crate) fn complain(&mut self, complaint: Complaint) {
        self.complaints.push(complaint);
    }

    /// Complains about the setting being read, at one place.
    pub(crate) fn refuse(&mut self, span: Range<usize>, problem: &str, label: impl Into<String>) {
        let complaint = self.complaint(problem).at(span, label);
        self.complain(complaint);
    }

    /// Complains about a value of another type than the accepted one.
    pub(crate) fn mismatch(&mut self, node: &Node, accepted: &str) {
        let problem = format!("cannot be {}", node.get_ref().type_name());
        self.refuse(node.span(), &problem, format!("expected {accepted}"));
    }
}

/// A kind of setting.
pub(crate) trait Kind {
    /// What a setting of this kind is to the program.
    type Value;

    /// What may be written, as the end of "expected …".
    fn accepted(&self) -> String;

    /// Words with a meaning of their own, explained one by one in the reference.
    fn explained(&self) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }

    /// Reads a value; if it is not acceptable, complains and returns nothing.
    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Self::Value>;

    /// Writes a value so that `read` gives it back.
    fn write(&self, value: &Self::Value) -> toml::Value;
}

/// `true` or `false`.
pub(crate) struct Flag;

impl Kind for Flag {
    type Value = bool;

    fn accepted(&self) -> String {
        "true or false".into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<bool> {
        let Value::Boolean(value) = node.get_ref() else {
            reading.mismatch(node, &self.accepted());
            return None;
        };
        Some(*value)
    }

    fn write(&self, value: &bool) -> toml::Value {
        (*value).into()
    }
}

/// An integer in a range, in the unit that ends the setting's name.
pub(crate) struct Integer(pub(crate) u64, pub(crate) u64);

impl Kind for Integer {
    type Value = u64;

    fn accepted(&self) -> String {
        format!("an integer from {} to {}", grouped(self.0), grouped(self.1))
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<u64> {
        let Value::Integer(written) = node.get_ref() else {
            reading.mismatch(node, &self.accepted());
            return None;
        };
        let value = u64::try_from(*written).ok();
        let value = value.filter(|value| (self.0..=self.1).contains(value));
        if value.is_none() {
            reading.refuse(node.span(), "is out of range", format!("expected {}", self.accepted()));
        }
        value
    }

    fn write(&self, value: &u64) -> toml::Value {
        toml::Value::Integer(i64::try_from(*value).unwrap_or(i64::MAX))
    }
}

/// A number of bytes in a range: an integer, or a string with a unit.
pub(crate) struct Bytes(pub(crate) u64, pub(crate) u64);

/// Units of sizes, largest binary one first so that writing finds the shortest form.
const UNITS: [(&str, u64); 8] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];

impl Bytes {
    fn parse(text: &str) -> Option<u64> {
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let number: u64 = number.replace('_', "").parse().ok()?;
        let unit = unit.trim();
        let (_, factor) = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
        number.checked_mul(*factor)
    }

    fn shown(value: u64) -> String {
        let unit = UNITS[..4].iter().find(|(_, factor)| value >= *factor && value % factor == 0);
        unit.map_or_else(|| grouped(value), |(name, factor)| format!("\"{} {name}\"", value / factor))
    }
}

impl Kind for Bytes {
    type Value = u64;

    fn accepted(&self) -> String {
        format!(
            "bytes from {} to {}, as an integer or as \"64 KiB\"",
            Self::shown(self.0),
            Self::shown(self.1)
        )
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<u64> {
        let value = match node.get_ref() {
            Value::Integer(written) => u64::try_from(*written).ok(),
            Value::String(text) => match Self::parse(text) {
                Some(value) => Some(value),
                None => {
                    let units = UNITS.map(|(name, _)| name).join(", ");
                    let label = format!("expected a number and one of {units}");
                    reading.refuse(node.span(), "is not a size", label);
                    return None;
                }
            },
            _ => {
                reading.mismatch(node, &self.accepted());
                return None;
            }
        };
        let value = value.filter(|value| (self.0..=self.1).contains(value));
        if value.is_none() {
            reading.refuse(node.span(), "is out of range", format!("expected {}", self.accepted()));
        }
        value
    }

    fn write(&self, value: &u64) -> toml::Value {
        let shown = Self::shown(*value);
        match shown.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
            Some(text) => text.into(),
            None => Integer(self.0, self.1).write(value),
        }
    }
}

/// A string that is not empty and has no control characters.
pub(crate) struct Text;

impl Kind for Text {
    type Value = String;

    fn accepted(&self) -> String {
        "a string".into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<String> {
        let Value::String(text) = node.get_ref() else {
            reading.mismatch(node, &self.accepted());
            return None;
        };
        if text.is_empty() {
            reading.refuse(node.span(), "is empty", format!("expected {}", self.accepted()));
        } else if text.chars().any(char::is_control) {
            reading.refuse(node.span(), "has control characters", "expected printable text on one line");
        } else {
            return Some(text.clone());
        }
        None
    }

    fn write(&self, value: &String) -> toml::Value {
        value.as_str().into()
    }
}

/// The path of a file, made absolute.
pub(crate) struct FilePath;

impl Kind for FilePath {
    type Value = PathBuf;

    fn accepted(&self) -> String {
        "a path".into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<PathBuf> {
        Text.read(node, reading).map(|text| reading.base.join(text))
    }

    fn write(&self, value: &PathBuf) -> toml::Value {
        value.display().to_string().into()
    }
}

/// `word` for nothing given, or a value of another kind.
pub(crate) struct Or<K>(pub(crate) &'static str, pub(crate) K);

impl<K: Kind> Kind for Or<K> {
    type Value = Option<K::Value>;

    fn accepted(&self) -> String {
        format!("\"{}\" or {}", self.0, self.1.accepted())
    }

    fn explained(&self) -> Vec<(&'static str, &'static str)> {
        self.1.explained()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Option<K::Value>> {
        match node.get_ref().as_str() {
            Some(word) if word == self.0 => Some(None),
            _ => self.1.read(node, reading).map(Some),
        }
    }

    fn write(&self, value: &Option<K::Value>) -> toml::Value {
        value.as_ref().map_or_else(|| self.0.into(), |value| self.1.write(value))
    }
}

/// An array of values of one kind.
pub(crate) struct ListOf<K>(pub(crate) K);

impl<K: Kind> Kind for ListOf<K> {
    type Value = Vec<K::Value>;

    fn accepted(&self) -> String {
        format!("an array, each element {}", self.0.accepted())
    }

    fn explained(&self) -> Vec<(&'static str, &'static str)> {
        self.0.explained()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Vec<K::Value>> {
        let Value::Array(elements) = node.get_ref() else {
            reading.mismatch(node, &self.accepted());
            return None;
        };
        // Every element is read before the first bad one counts, so that all of them are reported.
        let values: Vec<_> = elements.iter().map(|element| self.0.read(element, reading)).collect();
        values.into_iter().collect()
    }

    fn write(&self, value: &Vec<K::Value>) -> toml::Value {
        toml::Value::Array(value.iter().map(|element| self.0.write(element)).collect())
    }
}

/// Decimal digits in groups of three, as TOML lets one write them.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            out.push('_');
        }
        out.push(digit);
    }
    out
}

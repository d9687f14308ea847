//! What a setting may be: how it is read from the source, what is accepted, how it is written back.
//!
//! Kinds nest: [`Or`] adds a word such as `"auto"` that stands for "nothing given", [`ListOf`] makes an array.

use std::ops::{Range, RangeInclusive};
use std::path::Path;

use super::error::Complaint;
use super::raw::{Node, RawConfig, Value, parse_value};
use super::schema::Schema;
use super::shown::Shown;

/// What is common to reading all settings of one configuration.
pub struct Reading<'a> {
    /// What is read.
    pub raw: &'a RawConfig,
    /// The setting being read, for titles: `limits.ranges_max`.
    pub setting: String,
    /// What was wrong so far.
    pub complaints: Vec<Complaint>,
}

impl<'a> Reading<'a> {
    /// Begins to read.
    pub fn new(raw: &'a RawConfig) -> Self {
        Self { raw, setting: String::new(), complaints: Vec::new() }
    }

    /// What relative paths at a place are relative to.
    pub fn base_at(&self, place: &Range<usize>) -> &'a Path {
        self.raw.base_at(place)
    }

    /// The value at a place; a string that is nothing but a variable is what TOML without quotes would be.
    pub(crate) fn unquoted(&self, node: &Node) -> Value {
        match node.get_ref() {
            Value::String(text) if self.raw.from_variables.contains(&node.span()) => {
                parse_value(text, 0).into_inner()
            }
            other => other.clone(),
        }
    }

    /// Begins a complaint about the setting being read: `problem` completes a sentence that starts with its name.
    pub fn complaint(&self, problem: &str) -> Complaint {
        Complaint::new(format!("`{}` {problem}", self.setting))
    }

    /// Records a complaint.
    pub fn complain(&mut self, complaint: Complaint) {
        self.complaints.push(complaint);
    }

    /// Whether the value at this place was refused. Its consequences are no further mistakes.
    pub fn has_refused(&self, value: &Range<usize>) -> bool {
        self.complaints.iter().any(|complaint| complaint.lies_in(value))
    }

    /// Complains about the setting being read, at one place.
    pub fn refuse(&mut self, span: Range<usize>, problem: &str, label: impl Into<String>) {
        let complaint = self.complaint(problem).at(span, label);
        self.complain(complaint);
    }

    /// Complains about a value of another type than the accepted one, which comes to nothing.
    pub fn mismatch<T>(&mut self, node: &Node, accepted: &str) -> Option<T> {
        let problem = format!("cannot be {}", node.get_ref().type_name());
        self.refuse(node.span(), &problem, format!("expected {accepted}"));
        None
    }
}

/// A kind of setting.
pub trait Kind {
    /// What a setting of this kind is to the program.
    type Value;

    /// What others than the operator may see of a value.
    const SHOWN: Shown;

    /// What may be written, as the end of "expected …".
    fn accepted(&self) -> String;

    /// Words with a meaning of their own, explained one by one in the reference.
    fn explained(&self) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }

    /// What an editor may take for a value: all that `read` accepts, and as little else as can be said in a line. Most are
    /// texts.
    fn schema(&self) -> Schema {
        Schema::TEXT
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

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        "true or false".into()
    }

    fn schema(&self) -> Schema {
        Schema::either([Schema::BOOLEAN, Schema::Variable])
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<bool> {
        let Value::Boolean(value) = reading.unquoted(node) else {
            return reading.mismatch(node, &self.accepted());
        };
        Some(value)
    }

    fn write(&self, value: &bool) -> toml::Value {
        (*value).into()
    }
}

/// An integer in a range, in the unit that ends the setting's name.
pub(crate) struct Integer(pub u64, pub u64);

impl Kind for Integer {
    type Value = u64;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        format!("an integer from {} to {}", grouped(self.0), grouped(self.1))
    }

    fn schema(&self) -> Schema {
        Schema::either([Schema::Integer(self.0, self.1), Schema::Variable])
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<u64> {
        let Value::Integer(written) = reading.unquoted(node) else {
            return reading.mismatch(node, &self.accepted());
        };
        in_range(u64::try_from(written).ok(), self.0..=self.1, || self.accepted(), node, reading)
    }

    fn write(&self, value: &u64) -> toml::Value {
        toml::Value::Integer(i64::try_from(*value).unwrap_or(i64::MAX))
    }
}

/// A number if it is in its range; else complains.
pub(crate) fn in_range(
    value: Option<u64>,
    range: RangeInclusive<u64>,
    accepted: impl Fn() -> String,
    node: &Node,
    reading: &mut Reading<'_>,
) -> Option<u64> {
    let value = value.filter(|value| range.contains(value));
    if value.is_none() {
        reading.refuse(node.span(), "is out of range", format!("expected {}", accepted()));
    }
    value
}

/// A text after the number at its beginning.
pub(crate) fn split_number(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '_' && c != '.').unwrap_or(text.len()))
}

/// A decimal number like `1.5`, times a unit, if that is a whole number.
pub(crate) fn times(number: &str, unit: u64) -> Option<u64> {
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if number.ends_with('.') || fraction.len() > FRACTION_DIGITS_MAX {
        return None;
    }
    let parts = 10_u128.pow(fraction.len() as u32);
    let digits: u128 = format!("{whole}{fraction}").parse().ok().filter(|_| !whole.is_empty())?;
    let product = digits.checked_mul(u128::from(unit))?;
    product.is_multiple_of(parts).then_some(product / parts)?.try_into().ok()
}

/// More are not said by people.
const FRACTION_DIGITS_MAX: usize = 9;

/// A number of bytes in a range: an integer, or a string with a unit.
pub(crate) struct Bytes(pub u64, pub u64);

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

/// Units of other programs, and what people mean by them.
const MEANT: [(&str, &str); 4] = [("k", "KiB"), ("m", "MiB"), ("g", "GiB"), ("t", "TiB")];

impl Bytes {
    fn parse(text: &str) -> Option<u64> {
        let (number, unit) = split_number(text);
        let unit = unit.trim();
        let (_, factor) = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
        times(number, *factor)
    }

    /// What was probably meant, if the unit is one that other programs have.
    fn meant(text: &str) -> Option<String> {
        let (number, unit) = split_number(text);
        times(number, 1)?;
        let (_, meant) = MEANT.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit.trim()))?;
        Some(format!("{number} {meant}"))
    }

    fn shown(value: u64) -> String {
        let unit = UNITS[..4].iter().find(|(_, factor)| value >= *factor && value.is_multiple_of(*factor));
        unit.map_or_else(|| grouped(value), |(name, factor)| format!("\"{} {name}\"", value / factor))
    }
}

impl Kind for Bytes {
    type Value = u64;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        format!(
            "bytes from {} to {}, as an integer or as \"64 KiB\"",
            Self::shown(self.0),
            Self::shown(self.1)
        )
    }

    fn schema(&self) -> Schema {
        Schema::either([Schema::Integer(self.0, self.1), Schema::TEXT])
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<u64> {
        let value = match &reading.unquoted(node) {
            Value::Integer(written) => u64::try_from(*written).ok(),
            Value::String(text) => match Self::parse(text) {
                Some(value) => Some(value),
                None => {
                    let units = UNITS.map(|(name, _)| name).join(", ");
                    let label = format!("expected a number and one of {units}");
                    let complaint = reading.complaint("is not a size").at(node.span(), label);
                    reading.complain(match Self::meant(text) {
                        Some(meant) => complaint.help(format!("did you mean `{meant}`?")),
                        None => complaint,
                    });
                    return None;
                }
            },
            _ => return reading.mismatch(node, &self.accepted()),
        };
        in_range(value, self.0..=self.1, || self.accepted(), node, reading)
    }

    fn write(&self, value: &u64) -> toml::Value {
        let shown = Self::shown(*value);
        match shown.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
            Some(text) => text.into(),
            None => Integer(self.0, self.1).write(value),
        }
    }
}

/// `word` for nothing given, or a value of another kind.
pub(crate) struct Or<K>(pub &'static str, pub K);

impl<K: Kind> Kind for Or<K> {
    type Value = Option<K::Value>;

    const SHOWN: Shown = K::SHOWN;

    fn accepted(&self) -> String {
        format!("\"{}\" or {}", self.0, self.1.accepted())
    }

    fn explained(&self) -> Vec<(&'static str, &'static str)> {
        self.1.explained()
    }

    fn schema(&self) -> Schema {
        Schema::either([Schema::Word(self.0), self.1.schema()])
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
pub(crate) struct ListOf<K>(pub K);

impl<K: Kind> Kind for ListOf<K> {
    type Value = Vec<K::Value>;

    const SHOWN: Shown = K::SHOWN;

    fn accepted(&self) -> String {
        format!("an array, each element {}", self.0.accepted())
    }

    fn explained(&self) -> Vec<(&'static str, &'static str)> {
        self.0.explained()
    }

    fn schema(&self) -> Schema {
        Schema::list_of(self.0.schema())
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Vec<K::Value>> {
        let Value::Array(elements) = node.get_ref() else {
            return reading.mismatch(node, &self.accepted());
        };
        // Reads every element before it gives up, to report all bad ones.
        let values: Vec<_> = elements.iter().map(|element| self.0.read(element, reading)).collect();
        values.into_iter().collect()
    }

    fn write(&self, value: &Vec<K::Value>) -> toml::Value {
        toml::Value::Array(value.iter().map(|element| self.0.write(element)).collect())
    }
}

/// A checked number as a size. Every configured bound fits into 64 bits.
pub(crate) fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Decimal digits in groups of three, as TOML lets one write them.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push('_');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::raw::parse_value;

    /// Reads one value; the error is the first complaint.
    fn read<K: Kind>(kind: &K, text: &str) -> Result<K::Value, String> {
        let raw = RawConfig::parse("t".into(), String::new(), Path::new("/base")).expect("TOML");
        let mut reading = Reading { setting: "it".into(), ..Reading::new(&raw) };
        let value = kind.read(&parse_value(text, 0), &mut reading);
        value.ok_or_else(|| format!("{:?}", reading.complaints))
    }

    #[test]
    fn sizes_have_units() {
        let size = Bytes(0, u64::MAX);
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("0x10", 16),
            ("'7B'", 7),
            ("'2 kB'", 2_000),
            ("'2 KiB'", 2_048),
            ("'2KIB'", 2_048),
            ("'1_000 MB'", 1_000_000_000),
            ("'3 MiB'", 3 << 20),
            ("'1 GB'", 1_000_000_000),
            ("'1 GiB'", 1 << 30),
            ("'1 TiB'", 1 << 40),
            ("'1.5 MiB'", 3 << 19),
            ("'0.25kB'", 250),
        ] {
            assert_eq!(read(&size, text), Ok(bytes), "{text}");
        }
        for text in [
            "'7'",
            "'KiB'",
            "'1 K'",
            "'1.5 B'",
            "'1. MiB'",
            "'.5 MiB'",
            "'1.2.3 MiB'",
            "'-1 B'",
            "'1 KiB 2'",
            "''",
            "'99999999999999999999 B'",
        ] {
            assert!(read(&size, text).unwrap_err().contains("is not a size"), "{text}");
        }
        assert!(read(&size, "'64m'").unwrap_err().contains("did you mean `64 MiB`?"));
        assert!(read(&size, "'99999999 TiB'").is_err(), "more bytes than a number can count");
        assert!(read(&size, "-1").unwrap_err().contains("is out of range"));
        assert!(read(&size, "true").unwrap_err().contains("cannot be a boolean"));
        assert!(read(&size, "1.5").unwrap_err().contains("cannot be a floating-point number"));
    }

    proptest! {
        #[test]
        fn sizes_are_read_as_they_are_written(bytes in prop_oneof![0..1_u64 << 50, (0..1_u64 << 20).prop_map(|n| n << 20)]) {
            let size = Bytes(0, 1 << 50);
            prop_assert_eq!(read(&size, &size.write(&bytes).to_string()), Ok(bytes));
        }

        #[test]
        fn the_bounds_of_a_range_belong_to_it(low in 0..1_000_u64, length in 0..1_000_u64) {
            let kind = Integer(low, low + length);
            let accepted = |value: u64| read(&kind, &value.to_string()).is_ok();
            prop_assert!(accepted(low) && accepted(low + length) && !accepted(low + length + 1));
            prop_assert!(low == 0 || !accepted(low - 1));
        }
    }

    #[test]
    fn a_word_may_stand_for_nothing_given() {
        let kind = Or("auto", Integer(1, 9));
        assert_eq!(read(&kind, "'auto'"), Ok(None));
        assert_eq!(read(&kind, "3"), Ok(Some(3)));
        assert!(read(&kind, "'3'").unwrap_err().contains("cannot be a string"));
    }

    #[test]
    fn all_bad_elements_of_an_array_are_reported() {
        let complaints = read(&ListOf(Integer(1, 9)), "[0, 5, 10]").unwrap_err();
        assert_eq!(complaints.matches("out of range").count(), 2, "{complaints}");
    }

    #[test]
    fn digits_are_grouped() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1_000"), (1_234_567, "1_234_567")] {
            assert_eq!(grouped(number), text);
        }
    }
}

//! Durations: an integer in the unit that ends the setting's name, or as people write them: `"10s"`, `"1m30s"`.

use std::fmt::Write;

use super::kind::{Integer, Kind, Reading, in_range, split_number, times};
use super::raw::{Node, Value};
use super::schema::Schema;
use super::shown::Shown;

/// Milliseconds in a range.
pub(crate) struct Milliseconds(pub u64, pub u64);

/// Seconds in a range.
pub(crate) struct Seconds(pub u64, pub u64);

/// Units in nanoseconds. That of milliseconds is before that of minutes, whose name begins it.
const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("ms", 1_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
];
const MS_NS: u64 = 1_000_000;
const S_NS: u64 = 1_000_000_000;

/// Words for units that people write, and the units.
const MEANT: [(&str, &[&str]); 5] = [
    ("d", &["day", "days"]),
    ("h", &["hr", "hrs", "hour", "hours"]),
    ("ms", &["msec", "msecs", "millisecond", "milliseconds"]),
    ("m", &["min", "mins", "minute", "minutes"]),
    ("s", &["sec", "secs", "second", "seconds"]),
];

impl Kind for Milliseconds {
    type Value = u64;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        accepted("milliseconds", self.0, self.1, MS_NS)
    }

    fn schema(&self) -> Schema {
        Schema::either([Schema::Integer(self.0, self.1), Schema::TEXT])
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<u64> {
        read(node, MS_NS, self.0, self.1, || self.accepted(), reading)
    }

    fn write(&self, value: &u64) -> toml::Value {
        Integer(self.0, self.1).write(value)
    }
}

impl Kind for Seconds {
    type Value = u64;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        accepted("seconds", self.0, self.1, S_NS)
    }

    fn schema(&self) -> Schema {
        Schema::either([Schema::Integer(self.0, self.1), Schema::TEXT])
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<u64> {
        read(node, S_NS, self.0, self.1, || self.accepted(), reading)
    }

    fn write(&self, value: &u64) -> toml::Value {
        Integer(self.0, self.1).write(value)
    }
}

fn accepted(unit: &str, least: u64, most: u64, unit_ns: u64) -> String {
    let shown = |value: u64| if value == 0 { "0".into() } else { format!("\"{}\"", shown(value, unit_ns)) };
    format!("{unit} as an integer, or a duration like \"1m30s\", from {} to {}", shown(least), shown(most))
}

fn read(
    node: &Node,
    unit_ns: u64,
    least: u64,
    most: u64,
    accepted: impl Fn() -> String,
    reading: &mut Reading<'_>,
) -> Option<u64> {
    let value = match reading.unquoted(node) {
        Value::Integer(written) => u64::try_from(written).ok(),
        Value::String(text) => match parse_ns(&text) {
            Some(ns) if ns % unit_ns == 0 => Some(ns / unit_ns),
            Some(_) => {
                let label = format!("expected a multiple of {}", shown(1, unit_ns));
                reading.refuse(node.span(), "is too fine", label);
                return None;
            }
            None => {
                let label = "expected numbers with one of d, h, m, s, ms, such as \"1m30s\"";
                let complaint = reading.complaint("is not a duration").at(node.span(), label);
                reading.complain(match meant(&text) {
                    Some(meant) => complaint.help(format!("did you mean `{meant}`?")),
                    None => complaint,
                });
                return None;
            }
        },
        _ => return reading.mismatch(node, &accepted()),
    };
    in_range(value, least..=most, accepted, node, reading)
}

/// A sum of numbers with units, each unit once.
fn parse_ns(text: &str) -> Option<u64> {
    let (mut sum, mut rest, mut seen) = (0_u64, text.trim(), Vec::new());
    while !rest.is_empty() {
        let (number, behind) = split_number(rest);
        let behind = behind.trim_start();
        let (unit, unit_ns) = UNITS.into_iter().find(|(unit, _)| behind.starts_with(unit))?;
        if seen.contains(&unit) {
            return None;
        }
        seen.push(unit);
        sum = sum.checked_add(times(number, unit_ns)?)?;
        rest = behind[unit.len()..].trim_start();
    }
    (!seen.is_empty()).then_some(sum)
}

/// What was probably meant by one number with a word behind it, or with none.
fn meant(text: &str) -> Option<String> {
    let (number, word) = split_number(text.trim());
    times(number, S_NS)?;
    let word = word.trim().to_ascii_lowercase();
    let unit = match word.as_str() {
        "" => "s",
        word => MEANT.iter().find(|(unit, words)| *unit == word || words.contains(&word))?.0,
    };
    Some(format!("{number}{unit}"))
}

/// In the largest units: `1m30s`.
fn shown(value: u64, unit_ns: u64) -> String {
    let mut ns = u128::from(value) * u128::from(unit_ns);
    let mut units = UNITS;
    units.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let mut text = String::new();
    for (unit, unit_ns) in units {
        let count = ns / u128::from(unit_ns);
        ns %= u128::from(unit_ns);
        if count > 0 {
            // Writing to a `String` does not fail.
            let _ = write!(text, "{count}{unit}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;
    use crate::raw::{RawConfig, parse_value};

    fn read<K: Kind>(kind: &K, text: &str) -> Result<K::Value, String> {
        let raw = RawConfig::parse("t".into(), String::new(), Path::new("/")).expect("TOML");
        let mut reading = Reading { setting: "it".into(), ..Reading::new(&raw) };
        let value = kind.read(&parse_value(text, 0), &mut reading);
        value.ok_or_else(|| format!("{:?}", reading.complaints))
    }

    #[test]
    fn durations_have_units() {
        let ms = Milliseconds(0, 7 * 86_400_000);
        for (text, expected) in [
            ("0", 0),
            ("1500", 1_500),
            ("'250ms'", 250),
            ("'10s'", 10_000),
            ("'1.5s'", 1_500),
            ("'1m30s'", 90_000),
            ("'1h 30 m'", 5_400_000),
            ("' 2 d '", 172_800_000),
            ("'1m1ms'", 60_001),
            ("'0s'", 0),
        ] {
            assert_eq!(read(&ms, text), Ok(expected), "{text}");
        }
        assert_eq!(read(&Seconds(1, 86_400), "'1h1s'"), Ok(3_601));
        for (text, expected) in [
            ("'10'", "did you mean `10s`?"),
            ("'5 min'", "did you mean `5m`?"),
            ("'2 Hours'", "did you mean `2h`?"),
            ("'10 S'", "did you mean `10s`?"),
            ("''", "is not a duration"),
            ("'s'", "is not a duration"),
            ("'-1s'", "is not a duration"),
            ("'1s1s'", "is not a duration"),
            ("'1s x'", "is not a duration"),
            ("'1..5s'", "is not a duration"),
            ("'1.5ms'", "is too fine"),
            ("'8d'", "is out of range"),
            ("-1", "is out of range"),
            ("true", "cannot be a boolean"),
            ("'99999999999d'", "is not a duration"),
        ] {
            assert!(read(&ms, text).unwrap_err().contains(expected), "{text}: {:?}", read(&ms, text));
        }
        assert!(read(&Seconds(0, 9), "'1500ms'").unwrap_err().contains("expected a multiple of 1s"));
    }

    proptest! {
        #[test]
        fn what_is_shown_is_what_is_meant(value in 1..1_u64 << 40) {
            prop_assert_eq!(parse_ns(&shown(value, MS_NS)), Some(value * MS_NS));
        }
    }
}

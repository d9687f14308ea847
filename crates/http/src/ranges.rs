//! Byte ranges (RFC 9110 section 14).

use crate::fields::list_members;
use std::ops::Deref;

/// A range of bytes that exists: `first <= last`, and `last` is within the representation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// Offset of its first byte.
    pub first: u64,
    /// Offset of its last byte, which belongs to it.
    pub last: u64,
}

impl ByteRange {
    /// How many bytes it has: at least one.
    #[expect(clippy::len_without_is_empty, reason = "no range is empty")]
    pub const fn len(self) -> u64 {
        self.last - self.first + 1
    }

    /// Whether the two have a byte in common, or none between them.
    const fn touches(self, other: Self) -> bool {
        self.first <= other.last.saturating_add(1) && other.first <= self.last.saturating_add(1)
    }

    fn joined(self, other: Self) -> Self {
        Self { first: self.first.min(other.first), last: self.last.max(other.last) }
    }
}

/// What a Range field selects of a representation of a known length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ranges {
    /// Ignore the field: answer 200 with the whole.
    Whole,
    /// Answer 206 with these parts.
    Parts(RangeList),
    /// Answer 416.
    Unsatisfiable,
}

/// At least one range, in the requested order. No two overlap or touch. A single range, the usual case, is stored
/// inline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeList(Kept);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kept {
    One([ByteRange; 1]),
    Several(Vec<ByteRange>),
}

impl Deref for RangeList {
    type Target = [ByteRange];

    fn deref(&self) -> &[ByteRange] {
        match &self.0 {
            Kept::One(range) => range,
            Kept::Several(ranges) => ranges,
        }
    }
}

impl RangeList {
    /// Adds a range, merged with those that it overlaps or touches, at the position of the earliest.
    fn add(&mut self, range: ByteRange) {
        let mut ranges = match &mut self.0 {
            Kept::One([only]) if only.touches(range) => {
                *only = only.joined(range);
                return;
            }
            Kept::One([only]) => vec![*only],
            Kept::Several(ranges) => std::mem::take(ranges),
        };
        // No two ranges of the list touch, so what `range` gains by joining one touches no other.
        let mut joined = range;
        let mut place = None;
        let mut index = 0;
        ranges.retain(|other| {
            let apart = !other.touches(range);
            if !apart {
                joined = joined.joined(*other);
                place.get_or_insert(index);
            }
            index += 1;
            apart
        });
        // Only ranges after the first merged one were removed besides it, so its index is still valid.
        ranges.insert(place.unwrap_or(ranges.len()), joined);
        self.0 = if let [only] = ranges[..] { Kept::One([only]) } else { Kept::Several(ranges) };
    }
}

/// Decides what the Range field of a GET selects of a representation of `length` bytes.
///
/// A unit other than bytes, a syntax error, or more than `ranges_max` ranges make the field ignored. Ranges are
/// counted as sent, before merging: merging thousands would be wasted work. As overlapping and touching ranges are
/// merged, a response never contains a byte twice ("Apache killer", CVE-2011-3192).
///
/// An empty representation has no range that could be answered with 206: one that asks for its last bytes
/// gets it whole, others are unsatisfiable.
pub fn select_ranges(field: &[u8], length: u64, ranges_max: usize) -> Ranges {
    let Some(set) = strip_unit(field) else {
        return Ranges::Whole;
    };
    let mut selected: Option<RangeList> = None;
    let mut count = 0;
    let mut empty_suffix = false;
    for spec in list_members(set) {
        count += 1;
        if count > ranges_max {
            return Ranges::Whole;
        }
        let Some(spec) = RangeSpec::parse(spec) else {
            return Ranges::Whole;
        };
        empty_suffix |= length == 0 && matches!(spec, RangeSpec::Suffix(1..));
        if let Some(range) = spec.within(length) {
            match &mut selected {
                None => selected = Some(RangeList(Kept::One([range]))),
                Some(list) => list.add(range),
            }
        }
    }
    match selected {
        Some(list) => Ranges::Parts(list),
        None if count == 0 || empty_suffix => Ranges::Whole,
        None => Ranges::Unsatisfiable,
    }
}

fn strip_unit(field: &[u8]) -> Option<&[u8]> {
    let (unit, set) = field.split_at_checked(b"bytes=".len())?;
    unit.eq_ignore_ascii_case(b"bytes=").then_some(set)
}

/// One `range-spec`. Numbers beyond 64 bits are as good as the greatest one: no representation reaches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeSpec {
    /// From an offset on, up to the last byte if that is named: `first <= last`.
    From {
        /// Offset of the first byte.
        first: u64,
        /// Offset of the last byte.
        last: Option<u64>,
    },
    /// So many of the last bytes.
    Suffix(u64),
}

impl RangeSpec {
    /// The only range that a Range field names, for a representation whose length is not known yet. `None`: the field is
    /// malformed, of another unit, or names several.
    pub fn only(field: &[u8]) -> Option<Self> {
        let mut specs = list_members(strip_unit(field)?);
        let spec = Self::parse(specs.next()?)?;
        specs.next().is_none().then_some(spec)
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let dash = memchr::memchr(b'-', text)?;
        match (&text[..dash], &text[dash + 1..]) {
            (b"", suffix) => Some(Self::Suffix(parse_position(suffix)?)),
            (first, b"") => Some(Self::From { first: parse_position(first)?, last: None }),
            (first, last) => {
                let (first, last) = (parse_position(first)?, parse_position(last)?);
                (first <= last).then_some(Self::From { first, last: Some(last) })
            }
        }
    }

    /// The part of it that exists.
    fn within(self, length: u64) -> Option<ByteRange> {
        let end = length.checked_sub(1)?;
        match self {
            Self::From { first, last } => {
                (first <= end).then(|| ByteRange { first, last: last.map_or(end, |last| last.min(end)) })
            }
            Self::Suffix(0) => None,
            Self::Suffix(suffix) => Some(ByteRange { first: length.saturating_sub(suffix), last: end }),
        }
    }
}

fn parse_position(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(crate::decimal::parse_decimal(digits).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc9110_14_1_2_the_only_range_of_a_field() {
        for (field, expected) in [
            ("bytes=5-9", Some(RangeSpec::From { first: 5, last: Some(9) })),
            ("Bytes= 5-", Some(RangeSpec::From { first: 5, last: None })),
            ("bytes=-5", Some(RangeSpec::Suffix(5))),
            ("bytes=5-9,", Some(RangeSpec::From { first: 5, last: Some(9) })),
            ("bytes=5-9, 20-", None),
            ("bytes=9-5", None),
            ("bytes=", None),
            ("items=5-9", None),
        ] {
            assert_eq!(RangeSpec::only(field.as_bytes()), expected, "{field}");
        }
    }
}

//! Goal: `select_ranges` selects exactly the requested bytes that exist, each once. Method: tables of RFC 9110
//! section 14, then any set of ranges against a naive set of byte positions.

use baton_http::{ByteRange, Ranges, select_ranges};
use proptest::prelude::*;

fn parts(field: &str, length: u64) -> Vec<(u64, u64)> {
    match select_ranges(field.as_bytes(), length, 8) {
        Ranges::Parts(list) => list.iter().map(|range| (range.first, range.last)).collect(),
        other => panic!("{field} of {length}: {other:?}"),
    }
}

#[test]
fn each_spec_selects_what_exists_of_it() {
    for (field, length, expected) in [
        ("bytes=0-0", 10, &[(0, 0)][..]),
        ("bytes=0-9", 10, &[(0, 9)]),
        ("Bytes=2-5", 10, &[(2, 5)]),
        ("bytes=9-", 10, &[(9, 9)]),
        ("bytes=5-100", 10, &[(5, 9)]),
        ("bytes=-1", 10, &[(9, 9)]),
        ("bytes=-100", 10, &[(0, 9)]),
        ("bytes=0-99999999999999999999999", 10, &[(0, 9)]),
        ("bytes=-99999999999999999999999", 10, &[(0, 9)]),
        ("bytes=0-", u64::MAX, &[(0, u64::MAX - 1)]),
        ("bytes=00-01", 10, &[(0, 1)]),
        ("bytes= 0-1 ,\t, 5-6", 10, &[(0, 1), (5, 6)]),
        ("bytes=5-6,0-1", 10, &[(5, 6), (0, 1)]),
        ("bytes=20-,0-1", 10, &[(0, 1)]),
        ("bytes=-0,0-1", 10, &[(0, 1)]),
    ] {
        assert_eq!(parts(field, length), expected, "{field} of {length}");
    }
}

#[test]
fn ranges_that_overlap_or_touch_become_one_in_the_place_of_the_earliest() {
    for (field, expected) in [
        ("bytes=0-5,3-8", &[(0, 8)][..]),
        ("bytes=3-8,0-5", &[(0, 8)]),
        ("bytes=0-3,4-5", &[(0, 5)]),
        ("bytes=0-3,5-6", &[(0, 3), (5, 6)]),
        ("bytes=0-1,10-11,4-5,2-3", &[(0, 5), (10, 11)]),
        ("bytes=10-11,0-1,4-5,2-3", &[(10, 11), (0, 5)]),
        ("bytes=0-1,10-11,20-21,5-30", &[(0, 1), (5, 30)]),
        ("bytes=20-21,0-1,10-11,5-30", &[(5, 30), (0, 1)]),
        ("bytes=0-1,10-11,0-99", &[(0, 99)]),
        ("bytes=0-,0-,0-,0-", &[(0, 99)]),
    ] {
        assert_eq!(parts(field, 100), expected, "{field}");
    }
}

#[test]
fn malformed_or_too_many_ranges_are_ignored() {
    for field in [
        "",
        "bytes",
        "bytes=",
        "bytes=,",
        "bytes=-",
        "bytes=a-b",
        "bytes=5-4",
        "bytes=1-2-3",
        "bytes=+1-2",
        "bytes=0x1-2",
        "bytes=1 - 2",
        "bytes=--1",
        "bytes 0-1",
        "bytes=0-1;5-6",
        "bytes=0-1,x",
        "bytes=20-10,0-1",
        "bytes:0-1",
        " bytes=0-1",
        "items=0-1",
        "none",
        "bytes=0-0,2-2,4-4,6-6,8-8,10-10,12-12,14-14,16-16",
        "bytes=0-,0-,0-,0-,0-,0-,0-,0-,0-",
        "bytes=90-,91-,92-,93-,94-,95-,96-,97-,98-",
    ] {
        assert_eq!(select_ranges(field.as_bytes(), 100, 8), Ranges::Whole, "{field}");
    }
    assert_eq!(select_ranges(b"bytes=0-0", 100, 0), Ranges::Whole, "no ranges at all allowed");
}

#[test]
fn ranges_beyond_the_end_are_unsatisfiable() {
    for (field, length) in
        [("bytes=10-", 10), ("bytes=10-20,30-40", 10), ("bytes=-0", 10), ("bytes=0-", 0), ("bytes=-0", 0)]
    {
        assert_eq!(select_ranges(field.as_bytes(), length, 8), Ranges::Unsatisfiable, "{field} of {length}");
    }
    assert_eq!(select_ranges(b"bytes=-5", 0, 8), Ranges::Whole, "all of nothing");
}

/// A range of a Range field.
#[derive(Clone, Debug)]
enum AskedRange {
    FirstLast(u64, u64),
    First(u64),
    Suffix(u64),
}

impl AskedRange {
    fn text(&self) -> String {
        match self {
            Self::FirstLast(first, last) => format!("{first}-{last}"),
            Self::First(first) => format!("{first}-"),
            Self::Suffix(suffix) => format!("-{suffix}"),
        }
    }

    fn has(&self, position: u64, length: u64) -> bool {
        match *self {
            Self::FirstLast(first, last) => (first..=last).contains(&position),
            Self::First(first) => position >= first,
            Self::Suffix(suffix) => position + suffix >= length,
        }
    }
}

fn asked() -> impl Strategy<Value = AskedRange> {
    prop_oneof![
        3 => (0..40u64, 0..10u64).prop_map(|(first, more)| AskedRange::FirstLast(first, first + more)),
        1 => (0..40u64).prop_map(AskedRange::First),
        1 => (0..40u64).prop_map(AskedRange::Suffix),
    ]
}

proptest! {
    #[test]
    fn the_parts_are_the_requested_set(
        specs in proptest::collection::vec(asked(), 1..8),
        length in 1..40u64,
    ) {
        let texts: Vec<_> = specs.iter().map(AskedRange::text).collect();
        let field = format!("bytes={}", texts.join(","));
        let wanted: Vec<_> =
            (0..length).filter(|position| specs.iter().any(|spec| spec.has(*position, length))).collect();
        match select_ranges(field.as_bytes(), length, specs.len()) {
            Ranges::Parts(list) => {
                let mut selected: Vec<_> =
                    list.iter().flat_map(|range| range.first..=range.last).collect();
                selected.sort_unstable();
                prop_assert_eq!(selected, wanted, "each byte once, and no other");
                let mut sorted: Vec<ByteRange> = list.to_vec();
                sorted.sort_unstable_by_key(|range| range.first);
                prop_assert!(sorted.windows(2).all(|pair| pair[0].last + 1 < pair[1].first), "gaps between");
                let ranks: Vec<_> = list
                    .iter()
                    .map(|range| {
                        specs.iter().position(|spec| (range.first..=range.last).any(|at| spec.has(at, length)))
                    })
                    .collect();
                prop_assert!(ranks.is_sorted(), "in the order of the request: {:?}", ranks);
            }
            Ranges::Unsatisfiable => prop_assert!(wanted.is_empty()),
            Ranges::Whole => prop_assert!(false, "{} is well-formed", field),
        }
    }
}

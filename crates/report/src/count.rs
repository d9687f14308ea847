//! Numbers of things: `1 route`, `2 routes`.

use std::fmt::Display;

/// A number and its noun, which is given for one: `2 entries` of `entry`. The noun's last word is changed.
pub fn counted(number: u64, one: &str) -> String {
    counted_as(number, number, one)
}

/// A number that is shown in another way, such as `1.2k` or `?`, and its noun, which is given for one.
pub fn counted_as(shown: impl Display, number: u64, one: &str) -> String {
    if number == 1 {
        return format!("{shown} {one}");
    }
    match one.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{shown} {stem}ies"),
        _ if one.ends_with('s') => format!("{shown} {one}es"),
        _ => format!("{shown} {one}s"),
    }
}

/// Days that are left, or minus those that are over.
pub fn days(number: i64) -> String {
    counted_as(number, number.unsigned_abs(), "day")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_one_and_others_are_several() {
        for (number, noun, told) in [
            (0, "route", "0 routes"),
            (1, "route", "1 route"),
            (2, "stored response", "2 stored responses"),
            (2, "entry", "2 entries"),
            (2, "day", "2 days"),
            (3, "process", "3 processes"),
        ] {
            assert_eq!(counted(number, noun), told);
        }
        assert_eq!((&*days(-1), &*days(9)), ("-1 day", "9 days"));
        assert_eq!(counted_as("1.2k", 1_234, "request"), "1.2k requests");
    }
}

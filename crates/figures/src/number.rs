//! Numbers for people.

/// A number with as many digits as are worth reading.
pub fn brief(value: f64) -> String {
    match value.abs() {
        _ if value.fract() == 0.0 => grouped(value as i64),
        size if size >= 100.0 => grouped(value.round() as i64),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.01 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// A number in at most six characters, for the cells of a heat map.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 999_500.0 => format!("{:.1}M", value / 1e6),
        size if size >= 9_999.5 => format!("{:.1}k", value / 1e3),
        _ => brief(value),
    }
}

/// With a comma between thousands.
fn grouped(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    format!("{}{}", if value < 0 { "-" } else { "" }, groups.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_brief() {
        let cases = [
            (1_234_567.8, "1,234,568"),
            (999.6, "1,000"),
            (-1234.0, "-1,234"),
            (12.34, "12.3"),
            (0.0, "0"),
            (2.0, "2"),
        ];
        for (value, expected) in cases {
            assert_eq!(brief(value), expected);
        }
        assert_eq!([1234.0, 12_345.0, 1_234_567.0].map(short), ["1,234", "12.3k", "1.2M"]);
    }
}

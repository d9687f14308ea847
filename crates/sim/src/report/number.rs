//! Numbers for people.

/// A number with as many digits as are worth reading.
pub(crate) fn brief(value: f64) -> String {
    match value.abs() {
        _ if value.fract() == 0.0 => grouped(value as i64),
        size if size >= 100.0 => grouped(value.round() as i64),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.01 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// With a comma between thousands.
fn grouped(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0 { format!("-{text}") } else { text }
}

//! The few rules of grammar that heads, offers and maps of names share.

/// `1*DIGIT` as a number; `None` if it is anything else or does not fit.
pub(crate) fn parse_decimal(text: &[u8]) -> Option<u64> {
    let (first, rest) = text.split_first()?;
    rest.iter().try_fold(digit(*first)?, |number, byte| number.checked_mul(10)?.checked_add(digit(*byte)?))
}

fn digit(byte: u8) -> Option<u64> {
    byte.is_ascii_digit().then(|| u64::from(byte - b'0'))
}

/// Appends `number` in decimal.
pub(crate) fn push_decimal(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Whether `name` is a token (RFC 9110 section 5.6.2), as the name of a field must be.
pub(crate) fn is_token(name: &[u8]) -> bool {
    !name.is_empty()
        && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte))
}

/// Whether two names become one variable (RFC 3875 section 4.1.18): letter case does not count, and `_` is `-`.
pub(crate) fn is_same_name(one: &[u8], other: &[u8]) -> bool {
    let folded = |byte: &u8| if *byte == b'_' { b'-' } else { byte.to_ascii_lowercase() };
    one.len() == other.len() && one.iter().map(folded).eq(other.iter().map(folded))
}

/// Whether `value` may be the value of a field: no control characters but tabs (RFC 9110 section 5.5).
pub(crate) fn is_field_value(value: &[u8]) -> bool {
    value.iter().all(|byte| *byte == b'\t' || !byte.is_ascii_control())
}

/// `text` without the blanks around it: spaces and tabs, and nothing else that might pass for them
/// (RFC 9110 section 5.6.3).
pub(crate) fn trim_blanks(text: &[u8]) -> &[u8] {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = text.iter().position(|byte| !is_blank(byte)).unwrap_or(text.len());
    let end = text.iter().rposition(|byte| !is_blank(byte)).map_or(start, |last| last + 1);
    &text[start..end]
}

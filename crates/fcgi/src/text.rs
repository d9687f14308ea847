//! The blanks of heads and maps of names.

/// `text` without the blanks around it: spaces and tabs, and nothing else that might pass for them
/// (RFC 9110 section 5.6.3).
pub(crate) fn trim_blanks(text: &[u8]) -> &[u8] {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = text.iter().position(|byte| !is_blank(byte)).unwrap_or(text.len());
    let end = text.iter().rposition(|byte| !is_blank(byte)).map_or(start, |last| last + 1);
    &text[start..end]
}

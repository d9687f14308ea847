//! Field lines of a head that was checked, and the little grammar that field values share.

/// The field lines in `section`: complete lines `Name: value CRLF`, checked by
/// [`RequestHead::parse`](crate::RequestHead::parse), in order.
pub(crate) fn field_lines(section: &[u8]) -> impl Iterator<Item = (&str, &[u8])> {
    let mut rest = section;
    std::iter::from_fn(move || {
        let end = memchr::memchr(b'\n', rest)?;
        let line = &rest[..end];
        rest = &rest[end + 1..];
        let colon = memchr::memchr(b':', line)?;
        let name = std::str::from_utf8(&line[..colon]).ok()?;
        // Takes the CR off too.
        Some((name, line[colon + 1..].trim_ascii()))
    })
}

/// The members of a comma-separated list of tokens, blanks trimmed, empty members left out
/// (RFC 9110 section 5.6.1.2). Not for lists whose members may have quoted commas.
pub(crate) fn list_members(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|member| !member.is_empty())
}

/// Whether a token may contain `byte` (RFC 9110 section 5.6.2).
pub(crate) const fn is_token_byte(byte: u8) -> bool {
    matches!(byte,
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9'
        | b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~')
}

/// Whether a field value may contain `byte`: anything but control characters; tab is allowed (RFC 9110 section 5.5).
pub(crate) const fn is_value_byte(byte: u8) -> bool {
    matches!(byte, b'\t' | 0x20..=0x7e | 0x80..=0xff)
}

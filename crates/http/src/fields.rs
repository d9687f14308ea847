//! Field lines of a head that was checked, and the little grammar that field values share.

/// The field lines in `section`: complete lines `Name: value CRLF`, checked by
/// [`RequestHead::parse`](crate::RequestHead::parse), in order.
pub(crate) fn field_lines(section: &[u8]) -> impl Iterator<Item = (&str, &[u8])> {
    field_parts(section).map_while(|(name, value)| Some((std::str::from_utf8(name).ok()?, value)))
}

/// Name and value of each complete line, as bytes; a line may end with LF alone.
pub fn field_parts(section: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
    let mut rest = section;
    std::iter::from_fn(move || {
        let end = memchr::memchr(b'\n', rest)?;
        let line = &rest[..end];
        rest = &rest[end + 1..];
        line_parts(line)
    })
}

/// Name and value of one line, without its LF.
pub(crate) fn line_parts(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr::memchr(b':', line)?;
    // Takes the CR off too.
    Some((&line[..colon], line[colon + 1..].trim_ascii()))
}

/// Whether two names are of one field: letter case does not count, and `_` is `-`.
///
/// RFC 9110 section 5.1 knows letter case alone. But applications that make variables of names (RFC 3875 section 4.1.18)
/// cannot tell `X_Remote_User` from `X-Remote-User`, so nothing here may.
pub fn is_same_field(one: impl AsRef<[u8]>, other: impl AsRef<[u8]>) -> bool {
    let (one, other) = (one.as_ref(), other.as_ref());
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| folded(*one) == folded(*other))
}

/// Whether the name begins like the name of the other field.
pub fn begins_like_field(name: &[u8], beginning: &str) -> bool {
    name.get(..beginning.len()).is_some_and(|start| is_same_field(start, beginning))
}

pub(crate) const fn folded(byte: u8) -> u8 {
    if byte == b'_' { b'-' } else { byte.to_ascii_lowercase() }
}

/// The members of a comma-separated list of tokens, blanks trimmed, empty members left out
/// (RFC 9110 section 5.6.1.2). Not for lists whose members may have quoted commas.
pub fn list_members(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|member| !member.is_empty())
}

/// Whether a token may contain `byte` (RFC 9110 section 5.6.2).
pub const fn is_token_byte(byte: u8) -> bool {
    TOKEN_BYTES[byte as usize]
}

/// Names are looked at byte by byte, in requests and in responses.
const TOKEN_BYTES: [bool; 256] = {
    let mut bytes = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        bytes[byte as usize] = matches!(byte,
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9'
            | b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~');
        byte += 1;
    }
    bytes
};

/// Whether a field value may contain `byte`: anything but control characters; tab is allowed (RFC 9110 section 5.5).
pub(crate) const fn is_value_byte(byte: u8) -> bool {
    matches!(byte, b'\t' | 0x20..=0x7e | 0x80..=0xff)
}

/// Whether this may be a field value. It looks at eight bytes at a time: nearly all values have none below a blank.
pub(crate) fn is_value(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks();
    let is_valid = |word: &[u8; 8]| is_above_controls(*word) || word.iter().copied().all(is_value_byte);
    words.iter().all(is_valid) && rest.iter().copied().all(is_value_byte)
}

/// Whether no byte is below a blank, and none is DEL. False says nothing of the bytes behind the first of these.
const fn is_above_controls(word: [u8; 8]) -> bool {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let word = u64::from_ne_bytes(word);
    let from_del = word ^ (ONES * 0x7f);
    // A byte's highest bit is set if a subtraction borrows, and was not set before.
    let below = (word.wrapping_sub(ONES * 0x20) & !word) | (from_del.wrapping_sub(ONES) & !from_del);
    below & (ONES << 7) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: eight bytes at once are judged like one. Each byte stands at each place of a word, beside bytes of every kind.
    #[test]
    fn a_value_is_one_whose_bytes_all_are() {
        for (byte, beside) in
            (0..=u8::MAX).flat_map(|byte| [b' ', b'~', b'\t', 0x80, 0xff].map(|beside| (byte, beside)))
        {
            for (len, at) in (0..19).flat_map(|len| (0..len).map(move |at| (len, at))) {
                let mut value = vec![beside; len];
                value[at] = byte;
                assert_eq!(
                    is_value(&value),
                    is_value_byte(byte),
                    "{byte:#x} at {at} of {len}, beside {beside:#x}"
                );
            }
        }
        assert!(is_value(b""));
    }

    #[test]
    fn underscores_are_hyphens_and_case_does_not_count() {
        for (one, other, same) in [
            ("X-Remote-User", "x_remote-USER", true),
            ("X_Remote_User", "X-Remote-User", true),
            ("X-Remote-User", "XRemote-User", false),
            ("A-", "A", false),
            ("A-", "A.", false),
            ("", "", true),
        ] {
            assert_eq!(is_same_field(one, other), same, "{one} {other}");
            assert_eq!(is_same_field(other, one), same, "{other} {one}");
        }
        assert!(begins_like_field(b"x_forwarded_for", "X-Forwarded-"));
        assert!(!begins_like_field(b"X-Forwarded", "X-Forwarded-"));
    }
}

//! Finds the reason for refusing a head: the cold side of [`RequestHead::parse`].
//!
//! [`RequestHead::parse`]: crate::RequestHead::parse

use crate::Refusal;
use crate::fields::{is_token_byte, is_value_byte};
use crate::line::RequestLine;

/// Why `head` was refused, looking at its lines from the first to the last. `fields_max` as it was applied.
#[cold]
pub(crate) fn diagnose(head: &[u8], fields_max: usize) -> Refusal {
    let lines = head.split_inclusive(|byte| *byte == b'\n');
    judge_lines(lines, fields_max).err().unwrap_or(Refusal::HeadIncomplete)
}

/// Checks complete and incomplete lines.
fn judge_lines<'a>(lines: impl Iterator<Item = &'a [u8]>, fields_max: usize) -> Result<(), Refusal> {
    let mut fields = None;
    for line in lines {
        let text = strip_line_end(line)?;
        match (&mut fields, text) {
            (None, b"") => {}
            (None, [TLS_HANDSHAKE, ..]) => return Err(Refusal::TlsHandshake),
            (None, _) => {
                RequestLine::split(text)?;
                fields = Some(0);
            }
            (Some(_), b"") => return Ok(()),
            (Some(count), _) if *count == fields_max => return Err(Refusal::FieldsTooMany),
            (Some(count), _) => {
                judge_field_line(text)?;
                *count += 1;
            }
        }
    }
    // Without any request line there were only empty lines, and too many of them.
    fields.map(drop).ok_or(Refusal::RequestLine)
}

/// A line without its CR LF, which the last one may still lack.
fn strip_line_end(line: &[u8]) -> Result<&[u8], Refusal> {
    let text = match line {
        [text @ .., b'\r', b'\n'] => text,
        [.., b'\n'] => return Err(Refusal::BareLineFeed),
        _ => line,
    };
    if text.contains(&b'\r') { Err(Refusal::BareCarriageReturn) } else { Ok(text) }
}

fn judge_field_line(line: &[u8]) -> Result<(), Refusal> {
    if matches!(line, [b' ' | b'\t', ..]) {
        return Err(Refusal::FoldedLine);
    }
    let colon = memchr::memchr(b':', line).ok_or(Refusal::FieldName)?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    if name.is_empty() || !name.iter().copied().all(is_token_byte) {
        return Err(Refusal::FieldName);
    }
    if !value.iter().copied().all(is_value_byte) {
        return Err(Refusal::FieldValue);
    }
    Ok(())
}

/// The type of the record that begins a TLS connection (RFC 8446 section 5.1).
const TLS_HANDSHAKE: u8 = 0x16;

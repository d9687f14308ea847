//! Says what is wrong with a head that was refused: the cold side of [`RequestHead::parse`].
//!
//! [`RequestHead::parse`]: crate::RequestHead::parse

use crate::Refusal;
use crate::fields::{is_token_byte, is_value_byte};

/// Why `head` was refused, looking at its lines from the first to the last. `fields_max` as it was applied.
#[cold]
pub(crate) fn diagnose(head: &[u8], fields_max: usize) -> Refusal {
    const TLS_HANDSHAKE_RECORD: u8 = 0x16;
    let text_start = head.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(head.len());
    let text = &head[text_start..];
    if text.first() == Some(&TLS_HANDSHAKE_RECORD) {
        return Refusal::TlsHandshake;
    }
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    let verdict = judge_line_end(&head[..text_start]).and_then(|()| {
        lines.enumerate().try_for_each(|(index, line)| {
            judge_line_end(line)?;
            let line = line.trim_ascii_end();
            match index {
                0 => judge_request_line(line),
                _ if line.is_empty() => Ok(()),
                _ if index > fields_max => Err(Refusal::FieldsTooMany),
                _ => judge_field_line(line),
            }
        })
    });
    match verdict {
        Err(refusal) => refusal,
        Ok(()) if text.is_empty() => Refusal::RequestLine,
        Ok(()) => Refusal::HeadIncomplete,
    }
}

/// In `line`, which may be several empty ones, every LF follows a CR and every CR precedes an LF.
fn judge_line_end(line: &[u8]) -> Result<(), Refusal> {
    let mut previous = None;
    for byte in line {
        match (previous, byte) {
            (Some(b'\r'), b'\n') => {}
            (Some(b'\r'), _) => return Err(Refusal::BareCarriageReturn),
            (_, b'\n') => return Err(Refusal::BareLineFeed),
            _ => {}
        }
        previous = Some(*byte);
    }
    Ok(())
}

fn judge_request_line(line: &[u8]) -> Result<(), Refusal> {
    let mut words = line.split(|byte| *byte == b' ');
    let method = words.next().unwrap_or_default();
    if method.is_empty() || !method.iter().copied().all(is_token_byte) {
        return Err(Refusal::Method);
    }
    let (Some(target @ [_, ..]), Some(version), None) = (words.next(), words.next(), words.next()) else {
        return Err(Refusal::RequestLine);
    };
    if !target.iter().all(u8::is_ascii_graphic) {
        return Err(Refusal::TargetBytes);
    }
    match version {
        b"HTTP/1.0" | b"HTTP/1.1" => Ok(()),
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            Err(Refusal::Version)
        }
        _ => Err(Refusal::RequestLine),
    }
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

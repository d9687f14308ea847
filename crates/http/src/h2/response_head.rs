//! Encodes the head of a response for HTTP/2, from the lines of its HTTP/1 form.

use super::hpack;
use crate::Stamp;
use memchr::memchr;

/// Appends the header block of a head as the house writes it: the status line, fields `Name: value`, the blank line,
/// each with CR LF. Returns where in `out` the [`Stamp::DATE_LEN`] bytes of its `Date` begin, if it has one: they stand
/// there as they are, so that a kept block is updated in place.
///
/// The block refers to no table of a connection, so it can be sent on any. Fields about an HTTP/1 connection are left
/// out (RFC 9113 section 8.2.2).
pub fn encode_response_head(lines: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let mut date_at = None;
    let mut rest = lines;
    while let Some(end) = memchr(b'\n', rest) {
        let line = rest[..end].trim_ascii_end();
        let is_first = rest.len() == lines.len();
        rest = &rest[end + 1..];
        if is_first {
            push_status_line(out, line);
            continue;
        }
        let Some(colon) = memchr(b':', line) else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii_start());
        if is_of_the_connection(name) {
            continue;
        }
        hpack::push_name(out, name);
        hpack::push_value(out, value);
        if value.len() == Stamp::DATE_LEN && name.eq_ignore_ascii_case(b"Date") {
            date_at = Some(out.len() - value.len());
        }
    }
    date_at
}

/// Appends the block of the fields behind a body, names and values.
pub fn encode_trailers<'a>(fields: impl Iterator<Item = (&'a [u8], &'a [u8])>, out: &mut Vec<u8>) {
    for (name, value) in fields.filter(|(name, _)| !is_of_the_connection(name)) {
        hpack::push_name(out, name);
        hpack::push_value(out, value);
    }
}

/// The code between the blanks of a status line.
fn push_status_line(out: &mut Vec<u8>, line: &[u8]) {
    let code = line.get("HTTP/1.1 ".len()..).and_then(<[u8]>::first_chunk);
    debug_assert!(code.is_some_and(|code| code.iter().all(u8::is_ascii_digit)), "a status line");
    hpack::push_status(out, *code.unwrap_or(b"500"));
}

/// Whether a field is about an HTTP/1 connection.
pub(super) fn is_of_the_connection(name: &[u8]) -> bool {
    let name_is = |other: &[u8]| name.eq_ignore_ascii_case(other);
    match name.len() {
        7 => name_is(b"upgrade"),
        10 => name_is(b"connection") || name_is(b"keep-alive"),
        16 => name_is(b"proxy-connection"),
        17 => name_is(b"transfer-encoding"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h2::hpack::Decoder;
    use crate::{ReplyHead, Status};

    fn encoded(lines: &[u8]) -> (Vec<(String, String)>, Option<usize>, Vec<u8>) {
        let mut out = b"before".to_vec();
        let date_at = encode_response_head(lines, &mut out);
        let (mut decoder, mut scratch, mut fields) = (Decoder::new(), Vec::new(), Vec::new());
        let mut block = decoder.fields(&out["before".len()..], &mut scratch);
        while let Some(field) = block.next_field().unwrap() {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            fields.push((text(field.name), text(field.value)));
        }
        (fields, date_at, out)
    }

    #[test]
    fn a_head_says_the_same_in_a_block() {
        let mut lines = Vec::new();
        let mut head = ReplyHead::begin(&mut lines, Status::OK);
        head.field("Server", "baton").date(&Stamp::at(784_111_777));
        ReplyHead::resume(&mut lines)
            .field("X-Custom", "A b")
            .field("ETag", "")
            .number("Content-Length", 7)
            .end();
        let (fields, date_at, out) = encoded(&lines);
        let fields: Vec<_> = fields.iter().map(|(name, value)| (&name[..], &value[..])).collect();
        let expected = [
            (":status", "200"),
            ("server", "baton"),
            ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("x-custom", "A b"),
            ("etag", ""),
            ("content-length", "7"),
        ];
        assert_eq!(fields, expected);
        assert!(out[date_at.unwrap()..].starts_with(b"Sun, 06 Nov 1994 08:49:37 GMT"));
    }

    #[test]
    fn every_status_and_no_phrase() {
        for code in [100, 103, 200, 204, 206, 299, 304, 400, 404, 431, 500, 503] {
            let mut lines = Vec::new();
            ReplyHead::begin(&mut lines, Status::new(code)).end();
            assert_eq!(encoded(&lines).0, [(":status".into(), code.to_string())]);
        }
    }

    #[test]
    fn fields_of_the_connection_stay_behind() {
        let lines =
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nKEEP-ALIVE: 5\r\nTransfer-Encoding: chunked\r\n\
            Upgrade: h2c\r\nProxy-Connection: x\r\nVary: Connection\r\n\r\n";
        let (fields, date_at, _) = encoded(lines);
        assert_eq!(fields, [(":status".into(), "200".into()), ("vary".into(), "Connection".into())]);
        assert_eq!(date_at, None);
    }
}

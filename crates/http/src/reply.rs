//! Writes the head of an answer.

use crate::decimal::push_decimal;
use crate::fields::{is_token_byte, is_value_byte};
use crate::multipart::push_content_range;
use crate::{ByteRange, Stamp, Status};

/// Appends the head of an answer to a buffer, line by line. The version is always HTTP/1.1, the server's, not the
/// client's (RFC 9110 section 6.2).
///
/// Names and values come from Baton itself or from a configuration that was checked with
/// [`field_name_is_safe`] and [`field_value_is_safe`]; debug builds assert it.
#[derive(Debug)]
pub struct ReplyHead<'b> {
    out: &'b mut Vec<u8>,
}

impl<'b> ReplyHead<'b> {
    /// Appends the status line.
    pub fn begin(out: &'b mut Vec<u8>, status: Status) -> Self {
        if status == Status::OK {
            out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
        } else {
            out.extend_from_slice(b"HTTP/1.1 ");
            push_decimal(out, u64::from(status.code()));
            // The blank stays where the phrase is missing (RFC 9112 section 4).
            out.push(b' ');
            out.extend_from_slice(status.reason().as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        Self { out }
    }

    /// Appends fields to a partly written head.
    pub fn resume(out: &'b mut Vec<u8>) -> Self {
        Self { out }
    }

    /// Appends a field.
    pub fn field(&mut self, name: &str, value: impl AsRef<[u8]>) -> &mut Self {
        let value = value.as_ref();
        debug_assert!(field_value_is_safe(value), "{name}: {}", String::from_utf8_lossy(value));
        self.name(name);
        self.out.extend_from_slice(value);
        self.end_line()
    }

    /// Appends a field whose value is a decimal number.
    pub fn number(&mut self, name: &str, number: u64) -> &mut Self {
        self.name(name);
        push_decimal(self.out, number);
        self.end_line()
    }

    /// Appends the Date field. Returns the position of its [`Stamp::DATE_LEN`] bytes in the buffer, so that a cached
    /// head can be updated in place.
    pub fn date(&mut self, stamp: &Stamp) -> usize {
        self.name("Date");
        let at = self.out.len();
        self.out.extend_from_slice(&stamp.date);
        self.end_line();
        at
    }

    /// Appends the Content-Range of a 206 with one part, of a representation of `length` bytes.
    pub fn content_range(&mut self, range: ByteRange, length: u64) -> &mut Self {
        self.name("Content-Range");
        push_content_range(self.out, range, length);
        self.end_line()
    }

    /// Appends complete lines, `Name: value CRLF` each.
    pub fn raw(&mut self, lines: &[u8]) -> &mut Self {
        debug_assert!(lines.is_empty() || lines.ends_with(b"\r\n"));
        self.out.extend_from_slice(lines);
        self
    }

    /// Appends the empty line that ends the head.
    pub fn end(&mut self) {
        self.end_line();
    }

    fn name(&mut self, name: &str) {
        debug_assert!(field_name_is_safe(name.as_bytes()), "{name}");
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b": ");
    }

    fn end_line(&mut self) -> &mut Self {
        self.out.extend_from_slice(b"\r\n");
        self
    }
}

/// Appends a field line, of a name and a value that are safe.
pub fn push_line(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    debug_assert!(field_name_is_safe(name) && field_value_is_safe(value));
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Whether a field may have this name: a token.
pub fn field_name_is_safe(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().copied().all(is_token_byte)
}

/// Whether a field may have this value: no control characters, which could end the line, and no blanks
/// around it, which a recipient would remove.
pub fn field_value_is_safe(value: &[u8]) -> bool {
    value.iter().copied().all(is_value_byte) && value.trim_ascii().len() == value.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_reads_back_as_it_was_written() {
        let mut out = b"before".to_vec();
        let mut head = ReplyHead::begin(&mut out, Status::PARTIAL_CONTENT);
        head.field("Server", "baton").number("Content-Length", 2);
        let date_at = head.date(&Stamp::at(784_111_777));
        head.content_range(ByteRange { first: 3, last: 4 }, 10).raw(b"ETag: \"a\"\r\nVary: b\r\n").end();

        assert_eq!(&out[date_at..date_at + Stamp::DATE_LEN], b"Sun, 06 Nov 1994 08:49:37 GMT");
        let mut slots = [httparse::EMPTY_HEADER; 8];
        let mut response = httparse::Response::new(&mut slots);
        let parsed = response.parse(&out["before".len()..]);
        assert_eq!(parsed, Ok(httparse::Status::Complete(out.len() - "before".len())));
        assert_eq!((response.version, response.code), (Some(1), Some(206)));
        assert_eq!(response.reason, Some("Partial Content"));
        let fields: Vec<_> = response.headers.iter().map(|field| (field.name, field.value)).collect();
        let expected: [(&str, &[u8]); 6] = [
            ("Server", b"baton"),
            ("Content-Length", b"2"),
            ("Date", b"Sun, 06 Nov 1994 08:49:37 GMT"),
            ("Content-Range", b"bytes 3-4/10"),
            ("ETag", b"\"a\""),
            ("Vary", b"b"),
        ];
        assert_eq!(fields, expected);
    }

    #[test]
    fn status_lines() {
        for (status, line) in [
            (Status::OK, "HTTP/1.1 200 OK\r\n\r\n"),
            (Status::NOT_MODIFIED, "HTTP/1.1 304 Not Modified\r\n\r\n"),
            (Status::new(299), "HTTP/1.1 299 \r\n\r\n"),
        ] {
            let mut out = Vec::new();
            ReplyHead::begin(&mut out, status).end();
            assert_eq!(out, line.as_bytes());
        }
    }

    #[test]
    fn values_that_could_end_a_line_are_not_safe() {
        for value in ["a\r\nSet-Cookie: b", "a\nb", "a\rb", "a\0b", "\x7f", " a", "a ", "\t"] {
            assert!(!field_value_is_safe(value.as_bytes()), "{value:?}");
        }
        for value in ["", "a", "a b\tc", "é", "\"a\", W/\"b\""] {
            assert!(field_value_is_safe(value.as_bytes()), "{value:?}");
        }
        assert!(field_name_is_safe(b"X-Frame-Options"));
        for name in ["", "A B", "A:", "A\r\n", "é", " A"] {
            assert!(!field_name_is_safe(name.as_bytes()), "{name:?}");
        }
    }
}

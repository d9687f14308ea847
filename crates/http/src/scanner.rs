//! Finds the end of a head as its bytes arrive.

use crate::fields::is_token_byte;
use memchr::memchr;

/// Finds the end of a head and remembers its position, so a head that arrives byte by byte costs linear time.
#[derive(Clone, Debug, Default)]
pub struct HeadScanner {
    /// Bytes looked at.
    scanned: usize,
    /// Where the line that is not complete yet begins.
    line_start: usize,
    /// Empty lines before the request line.
    blank_lines: usize,
    /// The request line was seen.
    in_fields: bool,
}

impl HeadScanner {
    /// A scanner at the beginning of a head.
    pub fn new() -> Self {
        Self::default()
    }

    /// The length of the head at the beginning of `input`, its blank line included, once that is complete.
    ///
    /// `input` is everything received since the end of the last request: from call to call it only grows.
    /// A few empty lines before the request line belong to the head (RFC 9112 section 2.2).
    ///
    /// Bytes that no request can have (a bare LF, or a first byte that begins no method, such as that of a TLS
    /// handshake) end the head at once: [`RequestHead::parse`](crate::RequestHead::parse) then says what is wrong
    /// without waiting for more input.
    pub fn find_end(&mut self, input: &[u8]) -> Option<usize> {
        loop {
            match input.get(self.line_start) {
                Some(&byte) if !self.in_fields && byte != b'\r' && !is_token_byte(byte) => {
                    return Some(self.line_start + 1);
                }
                _ => {}
            }
            let Some(distance) = memchr(b'\n', input.get(self.scanned..)?) else {
                self.scanned = input.len();
                return None;
            };
            let line_feed = self.scanned + distance;
            let end = line_feed + 1;
            let line = &input[self.line_start..line_feed];
            self.scanned = end;
            self.line_start = end;
            match line {
                b"\r" if self.in_fields || self.blank_lines == LEADING_BLANK_LINES_MAX => return Some(end),
                b"\r" => self.blank_lines += 1,
                [.., b'\r'] => self.in_fields = true,
                _ => return Some(end),
            }
        }
    }

    /// Starts the next head.
    pub fn reset(&mut self) {
        *self = Self::default();
    }
}

/// Empty lines that are skipped before a request line: some clients send one after a body.
pub const LEADING_BLANK_LINES_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(input: &[u8]) -> Option<usize> {
        HeadScanner::new().find_end(input)
    }

    #[test]
    fn a_head_ends_after_its_first_empty_line() {
        assert_eq!(scan(b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /2"), Some(27));
        assert_eq!(scan(b"GET / HTTP/1.0\r\n\r\n"), Some(18));
        assert_eq!(scan(b"GET / HTTP/1.1\r\nHost: x\r\n\r"), None);
        assert_eq!(scan(b""), None);
    }

    #[test]
    fn a_few_empty_lines_before_it_belong_to_it() {
        assert_eq!(scan(b"\r\n\r\nGET / HTTP/1.0\r\n\r\n"), Some(22));
        assert_eq!(scan(b"\r\n\r\n\r\n\r\n"), None);
        assert_eq!(scan(b"\r\n\r\n\r\n\r\n\r\nGET"), Some(10), "the fifth ends it");
    }

    #[test]
    fn what_cannot_become_a_request_is_not_waited_for() {
        assert_eq!(scan(b"GET / HTTP/1.1\nHost: x"), Some(15));
        assert_eq!(scan(b"GET / HTTP/1.1\r\nHost: x\n\n"), Some(24));
        assert_eq!(scan(b"\x16\x03\x01\x02\x00"), Some(1));
        assert_eq!(scan(b"\r\n\x16\x03"), Some(3));
        assert_eq!(scan(b" GET /"), Some(1));
        assert_eq!(scan(b"\n"), Some(1));
    }

    #[test]
    fn bytes_that_trickle_in_give_the_same_answer_once_and_reset_begins_anew() {
        let input = b"\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\nrest";
        let mut scanner = HeadScanner::new();
        for _ in 0..2 {
            for len in 0..29 {
                assert_eq!(scanner.find_end(&input[..len]), None, "{len}");
            }
            assert_eq!(scanner.find_end(input), Some(29));
            scanner.reset();
        }
    }
}

//! The head of a reply: the little of it that a load generator needs.

use memchr::memmem;

/// A longer head is refused.
pub(super) const HEAD_BYTES_MAX: usize = 8 << 10;

/// The relevant parts of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReplyHead {
    /// Length including the blank line: where the body begins.
    pub(super) head_bytes: usize,
    pub(super) status: u16,
    pub(super) content_length: Option<u64>,
    /// The server closes the connection after this reply.
    pub(super) closes: bool,
}

impl ReplyHead {
    /// Parses the head at the beginning of `received`, whose first `looked_at` bytes contain no complete head. `None`
    /// if it is not complete, or not HTTP/1.
    pub(super) fn parse(received: &[u8], looked_at: usize) -> Option<Self> {
        // The blank line may have been cut anywhere.
        let from = looked_at.saturating_sub(3);
        let end = from + memmem::find(&received[from..], b"\r\n\r\n")?;
        let mut lines =
            received[..end].split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let status_line = lines.next()?.strip_prefix(b"HTTP/1.")?;
        let mut head = Self {
            head_bytes: end + 4,
            status: number(status_line.get(2..5)?)? as u16,
            content_length: None,
            closes: status_line[0] == b'0',
        };
        for line in lines {
            // Two names matter, both begin with a c: this line spares the others a comparison.
            if !line.first()?.eq_ignore_ascii_case(&b'c') {
                continue;
            }
            if let Some(value) = value_of(line, b"content-length:") {
                head.content_length = Some(number(value)?);
            } else if let Some(value) = value_of(line, b"connection:") {
                head.closes = value.eq_ignore_ascii_case(b"close")
                    || head.closes && !value.eq_ignore_ascii_case(b"keep-alive");
            }
        }
        Some(head)
    }
}

fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (start, value) = line.split_at_checked(name.len())?;
    start.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nServer: x\r\ncontent-LENGTH:  5\r\nCache-Control: a\r\n\r\n";

    #[test]
    fn length_status_and_body_are_found() {
        let reply = [HEAD, b"12345"].concat();
        let head = ReplyHead::parse(&reply, 0).unwrap();
        assert_eq!((head.status, head.content_length, head.closes), (200, Some(5), false));
        assert_eq!(&reply[head.head_bytes..], b"12345");
    }

    #[test]
    fn a_head_is_found_wherever_it_was_cut() {
        for cut in 0..HEAD.len() {
            assert_eq!(ReplyHead::parse(&HEAD[..cut], 0), None, "cut at {cut}");
            assert_eq!(
                ReplyHead::parse(HEAD, cut).map(|head| head.head_bytes),
                Some(HEAD.len()),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn whether_the_server_closes_depends_on_version_and_connection() {
        let closes = |text: &[u8]| ReplyHead::parse(text, 0).unwrap().closes;
        assert!(!closes(b"HTTP/1.1 200 OK\r\n\r\n"));
        assert!(closes(b"HTTP/1.1 200 OK\r\nConnection: Close\r\n\r\n"));
        assert!(closes(b"HTTP/1.0 200 OK\r\n\r\n"));
        assert!(!closes(b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n\r\n"));
    }

    #[test]
    fn what_is_not_http_is_refused() {
        for text in [&b"SSH-2.0-x\r\n\r\n"[..], b"HTTP/1.1\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"\r\n\r\n"] {
            assert_eq!(ReplyHead::parse(text, 0), None);
        }
        assert_eq!(ReplyHead::parse(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", 0), None);
    }
}

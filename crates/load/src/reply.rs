//! The head of a reply: the little of it that a load generator needs.

use memchr::memmem;

/// A longer head is refused.
pub(super) const HEAD_BYTES_MAX: usize = 8 << 10;

/// Where a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyLength {
    /// After so many bytes.
    Known(u64),
    /// Where its chunks say so.
    Chunked,
    /// The head does not say.
    Unknown,
}

/// The relevant parts of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReplyHead {
    /// Length including the blank line: where the body begins.
    pub(super) head_bytes: usize,
    pub(super) status: u16,
    pub(super) length: BodyLength,
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
            length: BodyLength::Unknown,
            closes: status_line[0] == b'0',
        };
        for line in lines {
            // Three names matter: this line spares most others a comparison.
            if !matches!(line.first()?, b'c' | b'C' | b't' | b'T') {
                continue;
            }
            if let Some(value) = value_of(line, b"content-length:") {
                head.length = BodyLength::Known(number(value)?);
            } else if let Some(value) = value_of(line, b"transfer-encoding:") {
                value.eq_ignore_ascii_case(b"chunked").then_some(())?;
                head.length = BodyLength::Chunked;
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
        assert_eq!((head.status, head.length, head.closes), (200, BodyLength::Known(5), false));
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
    fn chunks_are_the_one_coding_that_is_known() {
        let coded = |coding: &str| {
            let head = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: {coding}\r\n\r\n");
            ReplyHead::parse(head.as_bytes(), 0).map(|head| head.length)
        };
        assert_eq!(coded("Chunked"), Some(BodyLength::Chunked));
        assert_eq!(coded("gzip, chunked"), None);
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

//! An origin's end of a connection of HTTP/1.

use super::answer::{Answer, Ending};
use super::cached;
use super::manner::{Manner, Query};
use super::scene::Scene;
use crate::choices::Choices;

#[derive(Debug, Default)]
pub(super) struct Http1 {
    input: Vec<u8>,
    /// The request under way was told to go on.
    is_continued: bool,
    /// No other response follows: the connection waits for its end.
    is_spent: bool,
}

impl Http1 {
    /// Reads input, and writes the responses to the requests that it completes. Returns whether the connection ends behind
    /// them.
    pub(super) fn handle_input(
        &mut self,
        input: &[u8],
        scene: Scene<'_>,
        choices: &mut Choices,
        out: &mut Vec<u8>,
    ) -> bool {
        self.input.extend_from_slice(input);
        while !self.is_spent {
            let Some(end) = self.input.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
                return false;
            };
            let head = String::from_utf8(self.input[..end].to_vec()).expect("text");
            let behind = &self.input[end + 4..];
            let mut words = head.split(' ');
            let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let (path, query) = target.split_once('?').unwrap_or((target, ""));
            let query = Query::read(path, query);
            let body = body(&head, behind);
            let is_early = query.manner == Manner::Early;
            let content = match &body {
                Some((content, _)) if !is_early => &content[..],
                _ if is_early => b"",
                _ => {
                    if has(&head, "Expect: 100-continue") && !std::mem::replace(&mut self.is_continued, true)
                    {
                        out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
                    }
                    return false;
                }
            };
            let answer = match query.manner {
                Manner::Cached => {
                    let field = |name: &str| field(&head, name);
                    let scheme = field("X-Forwarded-Proto");
                    cached::answer((query.number as u32, scheme), method, &field, scene, choices)
                }
                _ => Answer::to(query, method, content, scene),
            };
            let (response, ending) = respond(query, method, answer);
            out.extend_from_slice(&response);
            if ending == Ending::Closes {
                return true;
            }
            match body {
                Some((_, len)) if ending != Ending::Never => drop(self.input.drain(..end + 4 + len)),
                _ => self.is_spent = true,
            }
            self.is_continued = false;
        }
        false
    }

    pub(super) fn is_between_requests(&self) -> bool {
        self.input.is_empty() && !self.is_spent
    }
}

/// A response of HTTP/1, and how it ends.
fn respond(query: Query, method: &str, Answer { bytes, ending }: Answer) -> (Vec<u8>, Ending) {
    let closes = matches!(query.manner, Manner::Short | Manner::Long);
    let ending = if closes { Ending::Closes } else { ending };
    let Some(end) = bytes.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return (bytes, ending) };
    if query.manner == Manner::NoHead {
        return (bytes, ending);
    }
    let (fields, content) = (String::from_utf8(bytes[..end].to_vec()).expect("text"), &bytes[end + 4..]);
    let status = fields.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
    let mut out = format!("HTTP/1.1 {status}\r\n").into_bytes();
    for line in fields.lines().filter(|line| !line.starts_with("Status: ")) {
        out.extend_from_slice(format!("{line}\r\n").as_bytes());
    }
    let content = if method == "HEAD" { b"" } else { content };
    if has(&fields, "Content-Length: ") || status.starts_with("304") {
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(content);
        return (out, ending);
    }
    out.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
    for piece in content.chunks(CHUNK_BYTES) {
        out.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        out.extend_from_slice(piece);
        out.extend_from_slice(b"\r\n");
    }
    if ending == Ending::Complete && method != "HEAD" {
        out.extend_from_slice(b"0\r\n\r\n");
    }
    (out, ending)
}

/// The content of a body, and its length with its framing; `None`: it is incomplete.
fn body(head: &str, behind: &[u8]) -> Option<(Vec<u8>, usize)> {
    let length = head.split("\r\n").find_map(|line| line.strip_prefix("Content-Length: "));
    if let Some(length) = length {
        let length = length.parse().expect("a length");
        return behind.get(..length).map(|content| (content.to_vec(), length));
    }
    if !has(head, "Transfer-Encoding: chunked") {
        return Some((Vec::new(), 0));
    }
    let (mut content, mut at) = (Vec::new(), 0);
    loop {
        let line = behind[at..].windows(2).position(|bytes| bytes == b"\r\n")?;
        let digits = std::str::from_utf8(&behind[at..at + line]).expect("digits");
        let size = usize::from_str_radix(digits, 16).expect("a size");
        at += line + 2;
        content.extend_from_slice(behind.get(at..at + size)?);
        at += size + 2;
        if at > behind.len() {
            return None;
        }
        if size == 0 {
            return Some((content, at));
        }
    }
}

/// The value of a field, or nothing.
fn field(head: &str, name: &str) -> String {
    let is_its =
        |line: &&str| line.split_once(':').is_some_and(|(other, _)| other.eq_ignore_ascii_case(name));
    let line = head.split("\r\n").find(is_its).unwrap_or_default();
    line.split_once(": ").map_or_else(String::new, |(_, value)| value.to_owned())
}

fn has(head: &str, start: &str) -> bool {
    head.split("\r\n").any(|line| line.starts_with(start))
}

/// Small enough for several in a response.
const CHUNK_BYTES: usize = 3_000;

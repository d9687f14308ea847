//! What is asked for: each request prepared once as bytes, with what its reply must look like.

use std::borrow::Cow;
use std::ops::Range;

use super::text;

/// One request and what its reply must look like.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LoadRequest {
    /// `GET`, unless it says something else.
    pub method: Cow<'static, str>,
    /// Path and query, beginning with '/'.
    pub path: String,
    /// The length that the body must have, if known. Otherwise the first reply sets it.
    pub bytes: Option<u64>,
    /// What kind of reply is right.
    pub expects: Expects,
    /// More fields, each with its line's end.
    pub fields: String,
    /// What is sent.
    pub body: String,
}

/// What kind of reply is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Expects {
    /// Status 200 and the text of [a file that was written for the load](crate::files).
    File,
    /// Status 206 and a part of such a file.
    Part {
        /// The length of the file.
        file_bytes: u64,
        /// The first byte of the part.
        start: u64,
    },
    /// Status 200 and what a program makes.
    Page,
    /// Status 200 and a page in some coding: a server may code it better the next time.
    Coded,
    /// What the first reply had, as long as that was no 5xx: a log does not say what its site holds today.
    Replay,
}

impl Expects {
    fn may_change(self) -> bool {
        matches!(self, Self::Coded | Self::Replay)
    }
}

impl LoadRequest {
    /// For a file that [`files`](crate::files) has written. The first body of each load is compared with it.
    pub fn file(path: impl Into<String>, bytes: u64) -> Self {
        Self::new(path, Some(bytes), Expects::File)
    }

    /// For a part of such a file, asked for by `Range`.
    pub fn part(path: impl Into<String>, file_bytes: u64, part: Range<u64>) -> Self {
        let expects = Expects::Part { file_bytes, start: part.start };
        Self::new(path, Some(part.end - part.start), expects)
    }

    /// For what a program makes, of this length if it is known.
    pub fn page(path: impl Into<String>, bytes: Option<u64>) -> Self {
        Self::new(path, bytes, Expects::Page)
    }

    /// For a request of a log.
    pub fn replay(path: impl Into<String>) -> Self {
        Self::new(path, None, Expects::Replay)
    }

    /// The same, with this to post.
    #[must_use]
    pub fn posting(self, body: String) -> Self {
        Self { method: "POST".into(), body, ..self }
    }

    fn new(path: impl Into<String>, bytes: Option<u64>, expects: Expects) -> Self {
        let (fields, body) = (String::new(), String::new());
        Self { method: "GET".into(), path: path.into(), bytes, expects, fields, body }
    }

    /// The bytes to send to this host, as its clients name it.
    pub(super) fn wire(&self, host: &str, connection_per_request: bool) -> Vec<u8> {
        let Self { method, path, fields, body, .. } = self;
        let connection = if connection_per_request { "Connection: close\r\n" } else { "" };
        let length = match method.as_ref() {
            "GET" => String::new(),
            _ => format!("Content-Length: {}\r\n", body.len()),
        };
        let range = match (self.expects, self.bytes) {
            (Expects::Part { start, .. }, Some(bytes)) => {
                format!("Range: bytes={start}-{}\r\n", start + bytes - 1)
            }
            _ => String::new(),
        };
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: baton-load\r\n");
        format!("{head}{connection}{length}{range}{fields}\r\n{body}").into_bytes()
    }
}

#[derive(Clone, Debug)]
struct Prepared {
    request: LoadRequest,
    wire: Vec<u8>,
    status: Option<u16>,
    sum: Option<u64>,
    /// It is a file, with which no body has been compared.
    uncompared: bool,
}

/// The requests of a load, by number.
#[derive(Clone, Debug)]
pub(super) struct Targets {
    prepared: Vec<Prepared>,
}

impl Targets {
    /// Prepares requests to this host, as its clients name it.
    pub(super) fn new(
        host: &str,
        connection_per_request: bool,
        requests: impl IntoIterator<Item = LoadRequest>,
    ) -> Self {
        let prepare = |request: LoadRequest| {
            let uncompared = matches!(request.expects, Expects::File | Expects::Part { .. });
            let wire = request.wire(host, connection_per_request);
            Prepared { request, wire, status: None, sum: None, uncompared }
        };
        Self { prepared: requests.into_iter().map(prepare).collect() }
    }

    pub(super) fn count(&self) -> usize {
        self.prepared.len()
    }

    /// The bytes to send.
    pub(super) fn bytes(&self, target: usize) -> &[u8] {
        &self.prepared[target].wire
    }

    pub(super) fn path(&self, target: usize) -> &str {
        &self.prepared[target].request.path
    }

    /// The length of its body, as far as it is known.
    pub(super) fn body_bytes(&self, target: usize) -> Option<u64> {
        self.prepared[target].request.bytes
    }

    /// Whether a reply may have this status.
    pub(super) fn status_is(&mut self, target: usize, status: u16) -> bool {
        let prepared = &mut self.prepared[target];
        match prepared.request.expects {
            Expects::File | Expects::Page | Expects::Coded => status == 200,
            Expects::Part { .. } => status == 206,
            Expects::Replay => status < 500 && *prepared.status.get_or_insert(status) == status,
        }
    }

    /// Whether a body of this length is right.
    pub(super) fn length_is(&mut self, target: usize, bytes: u64) -> bool {
        let request = &mut self.prepared[target].request;
        request.expects.may_change() || *request.bytes.get_or_insert(bytes) == bytes
    }

    /// Whether the next body is to be compared with its file. The one after it is not.
    pub(super) fn take_uncompared(&mut self, target: usize) -> bool {
        std::mem::take(&mut self.prepared[target].uncompared)
    }

    /// Whether a file has these bytes at `offset`.
    pub(super) fn file_has(&self, target: usize, offset: u64, piece: &[u8]) -> bool {
        let LoadRequest { path, bytes, expects, .. } = &self.prepared[target].request;
        match *expects {
            Expects::Part { file_bytes, start } => text::has(path, file_bytes, start + offset, piece),
            _ => bytes.is_none_or(|bytes| text::has(path, bytes, offset, piece)),
        }
    }

    /// Whether a body with this sum is the same as before.
    pub(super) fn sum_is(&mut self, target: usize, sum: u64) -> bool {
        let prepared = &mut self.prepared[target];
        prepared.request.expects.may_change() || *prepared.sum.get_or_insert(sum) == sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(request: LoadRequest, close: bool) -> Targets {
        Targets::new("site.example", close, [request])
    }

    #[test]
    fn a_connection_per_request_is_announced() {
        let text = |close| {
            let targets = one(LoadRequest::page("/x?y", None), close);
            String::from_utf8(targets.bytes(0).to_vec()).unwrap()
        };
        assert!(text(false).starts_with("GET /x?y HTTP/1.1\r\nHost: site.example\r\n"));
        assert!(!text(false).contains("Connection"));
        assert!(text(true).contains("\r\nConnection: close\r\n"));
        assert!(text(true).ends_with("\r\n\r\n"));
    }

    #[test]
    fn more_fields_are_the_last() {
        let fields = "X-A: 1\r\n".to_owned();
        let targets = one(LoadRequest { fields, ..LoadRequest::page("/a", None) }, false);
        assert!(targets.bytes(0).ends_with(b"\r\nUser-Agent: baton-load\r\nX-A: 1\r\n\r\n"));
    }

    #[test]
    fn a_part_is_asked_for_and_compared_as_one() {
        let mut targets = one(LoadRequest::part("/a", 900, 200..300), false);
        let wire = String::from_utf8(targets.bytes(0).to_vec()).unwrap();
        assert!(wire.ends_with("\r\nRange: bytes=200-299\r\n\r\n"), "{wire}");
        assert!(targets.status_is(0, 206) && !targets.status_is(0, 200) && targets.take_uncompared(0));
        let file = text::text("/a", 900);
        assert!(targets.length_is(0, 100) && targets.file_has(0, 50, &file.as_bytes()[250..300]));
        assert!(!targets.file_has(0, 0, &file.as_bytes()[..100]), "the beginning of the file");
    }

    #[test]
    fn a_body_follows_its_length() {
        let put = LoadRequest { method: "PUT".into(), ..LoadRequest::page("/a", None).posting("bbb".into()) };
        let targets = one(put, false);
        let text = String::from_utf8(targets.bytes(0).to_vec()).unwrap();
        assert!(text.starts_with("PUT /a HTTP/1.1\r\n"), "{text}");
        assert!(text.ends_with("\r\nContent-Length: 3\r\n\r\nbbb"), "{text}");
    }

    #[test]
    fn the_first_reply_sets_what_was_not_known() {
        let mut targets = one(LoadRequest::page("/a", None), false);
        assert!(targets.length_is(0, 7) && targets.length_is(0, 7) && !targets.length_is(0, 8));
        assert!(targets.sum_is(0, 1) && !targets.sum_is(0, 2));
        assert!(targets.status_is(0, 200) && !targets.status_is(0, 404));
    }

    #[test]
    fn a_replay_takes_what_a_site_says_as_long_as_it_says_the_same() {
        let mut targets = one(LoadRequest::replay("/a"), false);
        assert!(!targets.status_is(0, 502));
        assert!(targets.status_is(0, 404) && !targets.status_is(0, 200));
        assert!(targets.length_is(0, 1) && targets.length_is(0, 2));
        assert!(targets.sum_is(0, 1) && targets.sum_is(0, 2));
    }
}

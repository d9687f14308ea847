//! Requests that a client may send, and a model of their answers.
//!
//! The model knows files, conditions, ranges and persistence, from the RFCs; it shares no code with the server.

use std::fmt::Write;
use std::ops::Range;

use baton_upstream::Protocol;

use super::choices::Choices;
use super::expected::{Content, Expected, Persistence};
use super::site::{FIXED, Folder, LISTED, MODIFIED_UNIX_SECONDS, MOVED, SiteFile};

/// A request, and its answer by the model.
#[derive(Debug)]
pub(crate) struct Request {
    /// Its first line.
    pub(crate) line: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) head_len: usize,
    pub(crate) expected: Expected,
}

/// The choices for requests within the limits of a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Whether the client speaks HTTP/2. Its requests are still text here: what they say, not how.
    pub(crate) is_http2: bool,
    /// What the application speaks.
    pub(crate) protocol: Protocol,
    /// Whether bodies of the application are digested.
    pub(crate) digests: bool,
    /// Whether the server never waits too long for the application, unless a request asks for that.
    pub(crate) is_prompt: bool,
    /// How many in a hundred are for the application.
    pub(crate) for_application: u8,
    pub(crate) body_bytes_max: usize,
    pub(crate) ranges_max: usize,
}

impl Request {
    /// A request that the server answers by itself; `number` makes its first line another one than those of the others.
    pub(crate) fn choose(folder: &Folder, bounds: Bounds, number: usize, choices: &mut Choices) -> Self {
        if !bounds.is_http2 && choices.chance(3) {
            return malformed(number, choices);
        }
        let method = choices.one(&METHODS);
        let (path, file) = match choices.number(0..12) {
            0 => (LISTED.0, None),
            1 => (FIXED, None),
            2 => (MOVED, None),
            3 => ("/missing", None),
            4 => ("/listed", None),
            _ => {
                let file = &folder.files[choices.number(0..folder.files.len())];
                (file.path, Some(file))
            }
        };
        let is_read = method == "GET" || method == "HEAD";
        let mut expected = Expected {
            status: vec![200],
            persistence: Persistence::Kept,
            is_malformed: false,
            is_applications: false,
            is_failure: false,
            may_fail: false,
            lies: false,
            is_head: method == "HEAD",
            content: Content::Page,
            fields: Vec::new(),
            tag: None,
        };
        let mut fields = String::from("Host: simulated\r\n");
        match (method, path, file) {
            // Whatever the method.
            (_, MOVED, _) => {
                expected.status = vec![302];
                expected.fields.push(("Location", format!("/elsewhere?{number}")));
            }
            ("OPTIONS", ..) => expected.status = vec![204],
            ("BREW", ..) => expected.status = vec![501],
            _ if !is_read => expected.status = vec![405],
            (_, _, Some(file)) => file_request(file, bounds, &mut fields, &mut expected, choices),
            (_, LISTED_PATH, _) => expected.content = Content::With(LISTED.1),
            (_, FIXED, _) => expected.content = Content::ByPlan,
            (_, "/listed", _) => {
                expected.status = vec![301];
                expected.fields.push(("Location", format!("/listed/?{number}")));
            }
            _ => expected.status = vec![404],
        }
        let version = persistence(bounds, &mut fields, &mut expected, choices);
        let body = match is_read && !choices.chance(5) {
            true => Body::default(),
            false => body(bounds, version, &mut fields, choices),
        };
        match body.refused {
            Some((status, true)) => expected.refuse(status),
            Some((status, false)) => {
                // Input that arrives after the answer does not change it.
                expected.status.push(status);
                expected.open();
            }
            // A client that does not wait is not told to; whether it waits is a matter of time.
            None if body.is_awaited => expected.open(),
            None => {}
        }
        Self::assemble(format!("{method} {path}?{number} {version}"), &fields, &body.bytes, expected)
    }

    /// The lines of its fields.
    pub(crate) fn field_lines(&self) -> impl Iterator<Item = &str> {
        let head = std::str::from_utf8(&self.bytes[..self.head_len]).expect("a head is ASCII");
        head.split("\r\n").skip(1).filter(|line| !line.is_empty())
    }

    /// The body, as it is sent.
    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[self.head_len..]
    }

    pub(super) fn assemble(line: String, fields: &str, body: &[u8], expected: Expected) -> Self {
        let mut bytes = format!("{line}\r\n{fields}\r\n").into_bytes();
        let head_len = bytes.len();
        bytes.extend_from_slice(body);
        Self { line, bytes, head_len, expected }
    }
}

/// Adds conditions and ranges.
pub(super) fn file_request(
    file: &SiteFile,
    bounds: Bounds,
    fields: &mut String,
    expected: &mut Expected,
    choices: &mut Choices,
) {
    expected.content = Content::Exact(file.bytes.clone());
    expected.fields.push(("ETag", file.etag.clone()));
    expected.fields.push(("Last-Modified", date(MODIFIED_UNIX_SECONDS)));
    let (field, status) = match choices.number(0..24) {
        0 => ("If-None-Match: *".into(), 304),
        1 => (format!("If-None-Match: \"x\", W/{}", file.etag), 304),
        2 => ("If-None-Match: \"x\"".into(), 200),
        3 => ("If-Match: \"x\"".into(), 412),
        4 => (format!("If-Match: {}", file.etag), 200),
        5 => (format!("If-Modified-Since: {}", date(MODIFIED_UNIX_SECONDS)), 304),
        6 => (format!("If-Modified-Since: {}", date(MODIFIED_UNIX_SECONDS - 1)), 200),
        7 => (format!("If-Unmodified-Since: {}", date(MODIFIED_UNIX_SECONDS - 1)), 412),
        _ => (String::new(), 200),
    };
    if !field.is_empty() {
        let _ = write!(fields, "{field}\r\n");
    }
    expected.status = vec![status];
    if status == 412 {
        (expected.content, expected.fields) = (Content::Page, Vec::new());
    } else if status == 200 {
        expected.fields.push(("Content-Type", file.media_type.into()));
        if choices.chance(30) {
            range_request(file, bounds, fields, expected, choices);
        }
    }
}

/// Adds ranges that neither overlap nor touch, in their order.
fn range_request(
    file: &SiteFile,
    bounds: Bounds,
    fields: &mut String,
    expected: &mut Expected,
    choices: &mut Choices,
) {
    let len = file.bytes.len();
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for _ in 0..choices.number(1..bounds.ranges_max.min(4) + 2) {
        let from = ranges.last().map_or(0, |last| last.end + 1);
        if from < len {
            let start = choices.number(from..len);
            ranges.push(start..choices.number(start + 1..len + 1));
        }
    }
    let stale = choices.chance(10);
    if stale {
        fields.push_str("If-Range: \"x\"\r\n");
    }
    let beyond = ranges.is_empty();
    let specs: Vec<String> = match ranges.last() {
        None => vec![format!("{}-", len + 5)],
        Some(last) if ranges.len() == 1 && last.end == len => vec![format!("-{}", len - last.start)],
        _ => ranges.iter().map(|range| format!("{}-{}", range.start, range.end - 1)).collect(),
    };
    let _ = write!(fields, "Range: bytes={}\r\n", specs.join(", "));
    if stale || expected.is_head || specs.len() > bounds.ranges_max {
        return;
    }
    expected.fields.retain(|(name, _)| *name != "Content-Type");
    if beyond {
        expected.status = vec![416];
        expected.content = Content::Page;
        expected.fields = vec![("Content-Range", format!("bytes */{len}"))];
        return;
    }
    expected.status = vec![206];
    if let [only] = &ranges[..] {
        let range = format!("bytes {}-{}/{len}", only.start, only.end - 1);
        expected.fields.push(("Content-Range", range));
        expected.fields.push(("Content-Type", file.media_type.into()));
        expected.content = Content::Exact(file.bytes[only.clone()].to_vec());
    } else {
        expected.content = Content::Parts(file.bytes.clone(), ranges);
    }
}

/// Chooses the version, and whether the connection goes on.
pub(super) fn persistence(
    bounds: Bounds,
    fields: &mut String,
    expected: &mut Expected,
    choices: &mut Choices,
) -> &'static str {
    if bounds.is_http2 {
        return "HTTP/2.0";
    }
    let version = if choices.chance(15) { "HTTP/1.0" } else { "HTTP/1.1" };
    let connection = match choices.number(0..10) {
        0 => "close",
        1 | 2 => "Keep-Alive",
        _ => "",
    };
    if !connection.is_empty() {
        let _ = write!(fields, "Connection: {connection}\r\n");
    }
    let kept = match (version, connection) {
        (_, "close") => false,
        ("HTTP/1.0", connection) => !connection.is_empty(),
        _ => true,
    };
    if !kept {
        expected.persistence = Persistence::Ended;
    }
    version
}

/// A body.
#[derive(Debug, Default)]
pub(super) struct Body {
    /// As it is sent.
    pub(super) bytes: Vec<u8>,
    /// Without its framing.
    pub(super) content: Vec<u8>,
    /// The status that it is refused with, and whether the head says already that it is.
    pub(super) refused: Option<(u16, bool)>,
    /// Whether the client waits for `100 Continue`.
    is_awaited: bool,
}

pub(super) fn body(bounds: Bounds, version: &str, fields: &mut String, choices: &mut Choices) -> Body {
    let mut body = Body::default();
    let kind = choices.number(0..12);
    match kind {
        0 | 1 => {}
        2..=5 => {
            body.content = vec![b'l'; choices.size(bounds.body_bytes_max)];
            let _ = write!(fields, "Content-Length: {}\r\n", body.content.len());
            body.bytes.clone_from(&body.content);
        }
        6 => {
            let _ = write!(fields, "Content-Length: {}\r\n", bounds.body_bytes_max + 1);
            body.refused = Some((413, true));
            body.bytes = vec![b't'; bounds.body_bytes_max + 1];
        }
        _ if version == "HTTP/1.0" => {}
        7..=9 if bounds.is_http2 => {
            body.content = vec![b'c'; choices.number(0..bounds.body_bytes_max)];
            body.bytes.clone_from(&body.content);
        }
        10 if bounds.is_http2 => {}
        _ if bounds.is_http2 => {
            body.refused = Some((413, false));
            body.bytes = vec![b't'; bounds.body_bytes_max + 1];
        }
        7..=9 => {
            fields.push_str("Transfer-Encoding: chunked\r\n");
            body.content = vec![b'c'; choices.number(0..bounds.body_bytes_max)];
            body.bytes = chunked(body.content.len(), choices);
        }
        10 => {
            fields.push_str("Transfer-Encoding: chunked\r\n");
            body.refused = Some((400, false));
            body.bytes = b"5\r\nhello\r\nno size\r\n".to_vec();
        }
        _ => {
            fields.push_str("Transfer-Encoding: chunked\r\n");
            body.refused = Some((413, false));
            body.bytes = chunked(bounds.body_bytes_max + 1, choices);
        }
    }
    body.is_awaited =
        body.refused.is_none() && !body.bytes.is_empty() && version != "HTTP/1.0" && choices.chance(20);
    if body.is_awaited {
        fields.push_str("Expect: 100-continue\r\n");
    }
    body
}

fn chunked(len: usize, choices: &mut Choices) -> Vec<u8> {
    let (mut out, mut left) = (Vec::new(), len);
    while left > 0 {
        let size = choices.size(left);
        left -= size;
        let extension = if choices.chance(10) { ";a=b" } else { "" };
        out.extend_from_slice(format!("{size:x}{extension}\r\n").as_bytes());
        out.resize(out.len() + size, b'c');
        out.extend_from_slice(b"\r\n");
    }
    let trailer = if choices.chance(10) { "Checksum: 0\r\n" } else { "" };
    out.extend_from_slice(format!("0\r\n{trailer}\r\n").as_bytes());
    out
}

/// Input that is no request.
fn malformed(number: usize, choices: &mut Choices) -> Request {
    let (line, fields, status) = match choices.number(0..8) {
        0 => (format!("GET /?{number} HTTP/1.1"), "", 400),
        1 => (format!("GET /?{number} HTTP/2.0"), "Host: simulated\r\n", 505),
        2 => (format!("GET  /?{number} HTTP/1.1"), "Host: simulated\r\n", 400),
        3 => (format!("GET /?{number} HTTP/1.1"), "Host: simulated\r\nno field\r\n", 400),
        4 => (format!("GET /?{number} HTTP/1.1"), "Host: a\r\nHost: b\r\n", 400),
        5 => {
            let fields = "Host: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n";
            (format!("POST /?{number} HTTP/1.1"), fields, 400)
        }
        6 => {
            let fields = "Host: a\r\nTransfer-Encoding: gzip\r\n";
            (format!("POST /?{number} HTTP/1.1"), fields, 501)
        }
        _ => (format!("GET /?{number} HTTP/1.1"), "Host: a\r\n folded\r\n", 400),
    };
    let expected = Expected {
        status: vec![status],
        persistence: Persistence::Ended,
        is_malformed: true,
        is_applications: false,
        is_failure: false,
        may_fail: false,
        lies: false,
        is_head: false,
        content: Content::Page,
        fields: Vec::new(),
        tag: None,
    };
    Request::assemble(line, fields, b"", expected)
}

/// An IMF-fixdate.
pub(crate) fn date(unix_seconds: u64) -> String {
    String::from_utf8(baton_http::Stamp::at(unix_seconds).date.to_vec()).unwrap()
}

const METHODS: [&str; 14] = [
    "GET", "GET", "GET", "GET", "GET", "GET", "GET", "GET", "HEAD", "HEAD", "POST", "PUT", "OPTIONS", "BREW",
];

const LISTED_PATH: &str = LISTED.0;

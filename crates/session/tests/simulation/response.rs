//! A strict reader of responses: it accepts what this server has reason to write, and shares no code with it.

use std::fmt;

/// A response, whole or as far as it has come.
#[derive(Clone)]
pub(crate) struct Response {
    pub(crate) status: u16,
    fields: Vec<(String, String)>,
    /// The content, without the framing.
    pub(crate) content: Vec<u8>,
    /// Bytes behind the head, framing included.
    pub(crate) body_bytes: usize,
    /// Bytes of the whole response.
    pub(crate) len: usize,
    pub(crate) is_complete: bool,
    /// Whether only the end of the connection ends it.
    pub(crate) ends_with_connection: bool,
}

impl Response {
    /// The value of a field that may occur only once.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut values = self.fields.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        let value = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "{name} comes twice: {self:?}");
        value
    }

    /// A response of HTTP/2 whose head has come.
    ///
    /// # Panics
    /// If the head is not well-formed.
    pub(crate) fn of_fields(fields: Vec<(String, String)>) -> Self {
        let mut fields = fields.into_iter();
        let first = fields.next().filter(|(name, value)| name == ":status" && value.len() == 3);
        let status = first.and_then(|(_, value)| value.parse().ok()).expect("a status comes first");
        let fields: Vec<_> = fields.collect();
        for (name, value) in &fields {
            let is_token = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            assert!(!name.is_empty() && name.bytes().all(is_token), "no name: {name:?}");
            assert!(!value.bytes().any(|byte| byte.is_ascii_control()), "no value: {value:?}");
            let is_of_http1 = ["connection", "keep-alive", "transfer-encoding", "upgrade"].contains(&&**name);
            assert!(!is_of_http1, "{name} is about a connection of HTTP/1");
        }
        Self {
            status,
            fields,
            content: Vec::new(),
            body_bytes: 0,
            len: 0,
            is_complete: false,
            ends_with_connection: false,
        }
    }

    /// A part of the content of a response of HTTP/2.
    pub(crate) fn push_content(&mut self, content: &[u8]) {
        self.content.extend_from_slice(content);
        self.body_bytes += content.len();
    }

    /// Whether the connection goes on after it.
    pub(crate) fn keeps_connection(&self) -> bool {
        self.field("Connection").is_none_or(|value| value == "keep-alive") && !self.ends_with_connection
    }

    /// Reads the response at the beginning of `stream`, if its head is complete. `is_head`: it answers a `HEAD`.
    ///
    /// # Panics
    /// If it is not well-formed.
    pub(crate) fn read(stream: &[u8], is_head: bool) -> Option<Self> {
        let head_len = find(stream, b"\r\n\r\n")? + 4;
        let head = std::str::from_utf8(&stream[..head_len - 4]).expect("a head is ASCII");
        let mut lines = head.split("\r\n");
        let status_line = lines.next().unwrap_or_default();
        let status = status_line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.split(' ').next());
        let status: u16 = status
            .filter(|digits| digits.len() == 3)
            .and_then(|digits| digits.parse().ok())
            .unwrap_or_else(|| panic!("no status line: {status_line:?}"));
        let fields = lines
            .map(|line| {
                let (name, value) = line.split_once(": ").unwrap_or_else(|| panic!("no field: {line:?}"));
                let is_token = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
                assert!(!name.is_empty() && name.bytes().all(is_token), "no name: {line:?}");
                assert!(!value.bytes().any(|byte| byte.is_ascii_control()), "no value: {line:?}");
                (name.to_owned(), value.to_owned())
            })
            .collect();
        let mut response = Self {
            status,
            fields,
            content: Vec::new(),
            body_bytes: 0,
            len: head_len,
            is_complete: true,
            ends_with_connection: false,
        };
        let length = response.field("Content-Length").map(|text| text.parse::<usize>().expect("a length"));
        let is_chunked = response.field("Transfer-Encoding").is_some_and(|coding| coding == "chunked");
        assert!(length.is_none() || !is_chunked, "two framings: {response:?}");
        if !(is_head || status < 200 || status == 204 || status == 304) {
            response.read_body(&stream[head_len..], length, is_chunked);
        }
        response.len += response.body_bytes;
        Some(response)
    }

    fn read_body(&mut self, rest: &[u8], length: Option<usize>, is_chunked: bool) {
        match length {
            Some(length) => {
                self.body_bytes = length.min(rest.len());
                self.content = rest[..self.body_bytes].to_vec();
                self.is_complete = self.body_bytes == length;
            }
            None if is_chunked => {
                let end = self.read_chunks(rest);
                self.is_complete = end.is_some();
                self.body_bytes = end.unwrap_or(rest.len());
            }
            None => {
                self.ends_with_connection = true;
                self.is_complete = false;
                self.body_bytes = rest.len();
                self.content = rest.to_vec();
            }
        }
    }

    /// Where the last chunk ends, if it has come.
    fn read_chunks(&mut self, rest: &[u8]) -> Option<usize> {
        let mut at = 0;
        loop {
            let line_len = find(&rest[at..], b"\r\n")?;
            let digits = std::str::from_utf8(&rest[at..at + line_len]).expect("a size is ASCII");
            let size = usize::from_str_radix(digits, 16).unwrap_or_else(|_| panic!("no size: {digits:?}"));
            at += line_len + 2;
            let there = &rest[at..rest.len().min(at + size)];
            self.content.extend_from_slice(there);
            at += size;
            let end = rest.get(at..at + 2)?;
            assert_eq!(end, b"\r\n", "the data of a chunk ends where its size says");
            at += 2;
            if size == 0 {
                return Some(at);
            }
        }
    }

    /// The parts of a `multipart/byteranges`: the range that each says, of how many, and its bytes.
    pub(crate) fn parts(&self) -> Vec<(String, Vec<u8>)> {
        let media_type = self.field("Content-Type").unwrap_or_default();
        let boundary = media_type.strip_prefix("multipart/byteranges; boundary=").expect("a form");
        let delimiter = format!("\r\n--{boundary}");
        let (mut parts, mut rest) = (Vec::new(), &self.content[..]);
        loop {
            rest = rest.strip_prefix(delimiter.as_bytes()).expect("a delimiter");
            if rest == b"--\r\n" {
                return parts;
            }
            let head_len = find(rest, b"\r\n\r\n").expect("a part has a head") + 4;
            let head = String::from_utf8(rest[..head_len].to_vec()).expect("a part's head is ASCII");
            let range = head.split("\r\n").find_map(|line| line.strip_prefix("Content-Range: "));
            let range = range.expect("a part says its range").to_owned();
            rest = &rest[head_len..];
            let len = find(rest, delimiter.as_bytes()).expect("a part ends");
            parts.push((range, rest[..len].to_vec()));
            rest = &rest[len..];
        }
    }
}

/// Without the content, which is long.
impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} with {} bytes behind the head", self.status, self.fields, self.body_bytes)
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

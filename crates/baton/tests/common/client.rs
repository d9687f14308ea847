//! A minimal client of HTTP/1: bytes out, responses in, each read to exactly its end.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use memchr::memmem;

use super::agent::Body;
use super::protocol::Protocol;
use super::stream::Stream;
use super::take_front;

/// A connection.
pub(crate) struct Client {
    stream: Stream,
    /// Input after the last response.
    ahead: Vec<u8>,
    /// The request that was begun last is a `HEAD`.
    is_head: bool,
    /// The body of that request is sent in chunks.
    is_chunked: bool,
    /// What is to come of its response's body.
    framing: Framing,
}

/// Where the body of a response ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// After so many more bytes.
    Length(usize),
    Chunks,
    /// With the connection.
    Close,
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// The status line, without its line end.
    pub(crate) line: String,
    /// Names in lower case, in order.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::connect_over(address, Protocol::Http)
    }

    /// Connects in clear or over TLS.
    pub(crate) fn connect_over(address: SocketAddr, protocol: Protocol) -> Self {
        let stream = Stream::connect(address, protocol);
        Self { stream, ahead: Vec::new(), is_head: false, is_chunked: false, framing: Framing::Length(0) }
    }

    /// The socket itself.
    pub(crate) fn stream(&self) -> &TcpStream {
        self.stream.tcp()
    }

    /// Sends these bytes, with one call.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).expect("sent");
    }

    /// Sends nothing more.
    pub(crate) fn finish_sending(&mut self) {
        self.stream.finish_sending().expect("half closed");
    }

    /// Asks for a path and reads the response.
    pub(crate) fn get(&mut self, path: &str) -> Response {
        self.ask("GET", path, "")
    }

    /// Sends a request without a body and reads the response. `fields` are complete lines.
    pub(crate) fn ask(&mut self, method: &str, path: &str, fields: &str) -> Response {
        self.ask_host("localhost", method, path, fields)
    }

    /// The same, of a virtual host.
    pub(crate) fn ask_host(&mut self, host: &str, method: &str, path: &str, fields: &str) -> Response {
        self.send(format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n"));
        self.response_to(method)
    }

    /// Sends the head of a request.
    pub(crate) fn begin(&mut self, method: &str, host: &str, path: &str, fields: &str, body: Body) {
        self.is_head = method == "HEAD";
        self.is_chunked = matches!(body, Body::Open);
        let body = match body {
            Body::None => String::new(),
            Body::Length(length) => format!("Content-Length: {length}\r\n"),
            Body::Open => "Transfer-Encoding: chunked\r\n".to_owned(),
        };
        self.send(format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{fields}{body}\r\n"));
    }

    /// Sends a part of a body, as far as the server takes it: it may have answered and closed.
    pub(crate) fn send_body(&mut self, bytes: &[u8]) {
        let sent = match self.is_chunked {
            false => self.stream.write_all(bytes),
            true if bytes.is_empty() => Ok(()),
            true => {
                self.stream.write_all(&[format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat())
            }
        };
        drop(sent);
    }

    /// Says that the body is complete.
    pub(crate) fn finish_body(&mut self) {
        if self.is_chunked {
            drop(self.stream.write_all(b"0\r\n\r\n"));
        }
    }

    /// Reads the response to a request other than HEAD.
    pub(crate) fn response(&mut self) -> Response {
        self.response_to("GET")
    }

    /// Reads one response, up to its last byte and no further.
    ///
    /// One without a length must say that it ends with the connection.
    pub(crate) fn response_to(&mut self, method: &str) -> Response {
        let response = self.answer_to(method);
        assert_eq!(response.field("transfer-encoding"), None, "nothing here is sent in chunks");
        response
    }

    /// Reads one response of an application, which may come in chunks.
    pub(crate) fn answer_to(&mut self, method: &str) -> Response {
        self.is_head = method == "HEAD";
        let mut response = self.head_of_response();
        loop {
            let len = response.body.len();
            let piece = self.piece().unwrap_or_else(|| panic!("the body is cut off after {len} bytes"));
            if piece.is_empty() {
                return response;
            }
            response.body.extend(piece);
        }
    }

    /// Reads the head of the response to the request that was begun, and learns where its body ends.
    pub(crate) fn head_of_response(&mut self) -> Response {
        let response = self.head();
        let has_none = self.is_head || response.status < 200 || matches!(response.status, 204 | 304);
        self.framing = match (response.field("transfer-encoding"), response.field("content-length")) {
            _ if has_none => Framing::Length(0),
            (Some(coding), length) => {
                assert_eq!((coding, length), ("chunked", None));
                Framing::Chunks
            }
            (None, Some(length)) => Framing::Length(length.parse().expect("a length")),
            (None, None) => {
                assert_eq!(response.field("connection"), Some("close"), "where does the body end?");
                Framing::Close
            }
        };
        response
    }

    /// Reads some bytes of that body; an empty piece is its end. `None`: the connection ended before it.
    pub(crate) fn piece(&mut self) -> Option<Vec<u8>> {
        match self.framing {
            Framing::Length(0) => Some(Vec::new()),
            Framing::Length(left) => {
                if self.ahead.is_empty() && !matches!(self.try_to_fill(), Ok(1..)) {
                    return None;
                }
                let now = left.min(self.ahead.len());
                self.framing = Framing::Length(left - now);
                Some(take_front(&mut self.ahead, now))
            }
            Framing::Chunks => {
                let head = loop {
                    match memmem::find(&self.ahead, b"\r\n") {
                        Some(at) => break at + 2,
                        None if matches!(self.try_to_fill(), Ok(1..)) => {}
                        None => return None,
                    }
                };
                let digits = std::str::from_utf8(&self.ahead[..head - 2]).expect("digits");
                let size = usize::from_str_radix(digits, 16).expect("the size of a chunk");
                if size == 0 {
                    return self.last_chunk();
                }
                let whole = head + size + 2;
                while self.ahead.len() < whole {
                    if !matches!(self.try_to_fill(), Ok(1..)) {
                        return None;
                    }
                }
                let chunk = take_front(&mut self.ahead, whole);
                assert!(chunk.ends_with(b"\r\n"), "a chunk that is longer than it says");
                Some(chunk[head..whole - 2].to_vec())
            }
            Framing::Close => {
                if !self.ahead.is_empty() {
                    return Some(std::mem::take(&mut self.ahead));
                }
                match self.try_to_fill() {
                    Ok(0) => self.framing = Framing::Length(0),
                    Ok(_) => {}
                    Err(_) => return None,
                }
                Some(std::mem::take(&mut self.ahead))
            }
        }
    }

    /// Reads the end of a body in chunks, with the fields that may stand there.
    fn last_chunk(&mut self) -> Option<Vec<u8>> {
        let end = loop {
            match memmem::find(&self.ahead, b"\r\n\r\n") {
                Some(at) => break at + 4,
                None if matches!(self.try_to_fill(), Ok(1..)) => {}
                None => return None,
            }
        };
        self.ahead.drain(..end);
        self.framing = Framing::Length(0);
        Some(Vec::new())
    }

    /// Reads one chunk of a body; an empty one is the end.
    pub(crate) fn chunk(&mut self) -> Vec<u8> {
        self.framing = Framing::Chunks;
        self.piece().expect("a whole chunk")
    }

    /// Reads until the connection ends, by FIN or reset; returns the bytes read.
    pub(crate) fn until_the_end(&mut self) -> Vec<u8> {
        while matches!(self.try_to_fill(), Ok(1..)) {}
        std::mem::take(&mut self.ahead)
    }

    /// Reads the head of a response, and leaves its body.
    pub(crate) fn head(&mut self) -> Response {
        let end = loop {
            match memmem::find(&self.ahead, b"\r\n\r\n") {
                Some(at) => break at + 4,
                None => assert!(self.fill(), "no response, but the end, after {:?}", lossy(&self.ahead)),
            }
        };
        let head = take_front(&mut self.ahead, end);
        Response::parse(std::str::from_utf8(&head).expect("a head in ASCII"))
    }

    /// Reads some bytes of a body.
    pub(crate) fn take(&mut self, count: usize) -> Vec<u8> {
        while self.ahead.len() < count {
            assert!(self.fill(), "the end after {} of {count} bytes", self.ahead.len());
        }
        take_front(&mut self.ahead, count)
    }

    /// Reads everything up to the end of the connection, which must come in order: a reset is a failure.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        while self.fill() {}
        std::mem::take(&mut self.ahead)
    }

    /// Whether something has arrived that has not been taken, without waiting.
    pub(crate) fn has_input(&self) -> bool {
        let stream = self.stream();
        stream.set_nonblocking(true).expect("a socket");
        let has = stream.peek(&mut [0]).is_ok();
        stream.set_nonblocking(false).expect("a socket");
        has
    }

    /// Whether the server closes the connection, in order, without another byte.
    pub(crate) fn expect_end(&mut self) {
        let rest = self.rest();
        assert!(rest.is_empty(), "something instead of the end: {:?}", lossy(&rest));
    }

    /// Reads once; `false`: this is the end.
    fn fill(&mut self) -> bool {
        match self.try_to_fill() {
            Ok(count) => count > 0,
            Err(error) => panic!("{error}, after {:?}", lossy(&self.ahead)),
        }
    }

    fn try_to_fill(&mut self) -> io::Result<usize> {
        let mut bytes = [0; 65_536];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(count) => {
                    self.ahead.extend_from_slice(&bytes[..count]);
                    return Ok(count);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Response {
    /// Parses a head, strictly.
    fn parse(head: &str) -> Self {
        let mut lines = head.strip_suffix("\r\n\r\n").expect("a head").split("\r\n");
        let line = lines.next().expect("a status line").to_owned();
        let code = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3));
        let status = code.and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{line:?}"));
        let field = |line: &str| {
            let (name, value) = line.split_once(": ").unwrap_or_else(|| panic!("{line:?}"));
            assert!(!name.is_empty() && !name.contains(' ') && value == value.trim(), "{line:?}");
            (name.to_ascii_lowercase(), value.to_owned())
        };
        Self { status, line, fields: lines.map(field).collect(), body: Vec::new() }
    }

    /// The value of a field that may be there once.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut values = self.fields.iter().filter(|(field, _)| field == name).map(|(_, value)| &**value);
        let value = values.next();
        assert_eq!(values.next(), None, "{name} is there twice");
        value
    }

    /// Whether the status is this one, with this reason, which HTTP/2 does not have.
    pub(crate) fn says(&self, status: u16, reason: &str) -> bool {
        self.line == format!("HTTP/1.1 {status} {reason}") || self.line == format!("HTTP/2 {status}")
    }

    /// The body as text.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(400)]).into_owned()
}

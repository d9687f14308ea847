//! A minimal client: bytes out, responses in, each read to exactly its end.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use super::server::PATIENCE;

/// A connection.
pub(crate) struct Client {
    stream: TcpStream,
    /// Input after the last response.
    ahead: Vec<u8>,
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
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        // Separate writes must arrive separately.
        stream.set_nodelay(true).expect("an option");
        Self { stream, ahead: Vec::new() }
    }

    /// The socket itself.
    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends these bytes, with one call.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).expect("sent");
    }

    /// Sends nothing more.
    pub(crate) fn finish_sending(&mut self) {
        self.stream.shutdown(Shutdown::Write).expect("half closed");
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

    /// Reads the response to a request other than HEAD.
    pub(crate) fn response(&mut self) -> Response {
        self.response_to("GET")
    }

    /// Reads one response, up to its last byte and no further.
    ///
    /// One without a length must say that it ends with the connection.
    pub(crate) fn response_to(&mut self, method: &str) -> Response {
        let mut response = self.head();
        if method == "HEAD" || response.status < 200 || matches!(response.status, 204 | 304) {
            return response;
        }
        assert_eq!(response.field("transfer-encoding"), None, "nothing here is sent in chunks");
        match response.field("content-length") {
            Some(length) => {
                let length: usize = length.parse().expect("a length");
                while self.ahead.len() < length {
                    assert!(self.fill(), "the body ends after {} of {length} bytes", self.ahead.len());
                }
                response.body = self.ahead.drain(..length).collect();
            }
            None => {
                assert_eq!(response.field("connection"), Some("close"), "where does the body end?");
                response.body = self.rest();
            }
        }
        response
    }

    /// Reads one response of an application, which may come in chunks.
    pub(crate) fn answer_to(&mut self, method: &str) -> Response {
        let mut response = self.head();
        if method == "HEAD" || matches!(response.status, 204 | 304) {
            return response;
        }
        response.body = match (response.field("transfer-encoding"), response.field("content-length")) {
            (Some(coding), length) => {
                assert_eq!((coding, length), ("chunked", None));
                self.chunks()
            }
            (None, Some(length)) => self.take(length.parse().expect("a length")),
            (None, None) => {
                assert_eq!(response.field("connection"), Some("close"), "where does the body end?");
                self.rest()
            }
        };
        response
    }

    fn chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let mut chunk = self.chunk();
            if chunk.is_empty() {
                return body;
            }
            body.append(&mut chunk);
        }
    }

    /// Reads one chunk of a body; an empty one is the end.
    pub(crate) fn chunk(&mut self) -> Vec<u8> {
        let mut line = self.take(1);
        while !line.ends_with(b"\r\n") {
            line.extend(self.take(1));
        }
        let digits = std::str::from_utf8(&line).expect("digits").trim_end();
        let size = usize::from_str_radix(digits, 16).expect("the size of a chunk");
        let mut chunk = self.take(size + 2);
        assert!(chunk.ends_with(b"\r\n"), "a chunk that is longer than it says");
        chunk.truncate(size);
        chunk
    }

    /// Reads until the connection ends, by FIN or reset; returns the bytes read.
    pub(crate) fn until_the_end(&mut self) -> Vec<u8> {
        let mut bytes = [0; 65_536];
        while let Ok(count @ 1..) = self.stream.read(&mut bytes) {
            self.ahead.extend_from_slice(&bytes[..count]);
        }
        std::mem::take(&mut self.ahead)
    }

    /// Reads the head of a response, and leaves its body.
    pub(crate) fn head(&mut self) -> Response {
        let end = loop {
            match self.ahead.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                Some(at) => break at + 4,
                None => assert!(self.fill(), "no response, but the end, after {:?}", lossy(&self.ahead)),
            }
        };
        let head: Vec<u8> = self.ahead.drain(..end).collect();
        Response::parse(std::str::from_utf8(&head).expect("a head in ASCII"))
    }

    /// Reads some bytes of a body.
    pub(crate) fn take(&mut self, count: usize) -> Vec<u8> {
        while self.ahead.len() < count {
            assert!(self.fill(), "the end after {} of {count} bytes", self.ahead.len());
        }
        self.ahead.drain(..count).collect()
    }

    /// Reads everything up to the end of the connection, which must come in order: a reset is a failure.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        while self.fill() {}
        std::mem::take(&mut self.ahead)
    }

    /// Whether the server closes the connection, in order, without another byte.
    pub(crate) fn expect_end(&mut self) {
        let rest = self.rest();
        assert!(rest.is_empty(), "something instead of the end: {:?}", lossy(&rest));
    }

    /// Reads once; `false`: this is the end.
    fn fill(&mut self) -> bool {
        let mut bytes = [0; 65_536];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return false,
                Ok(count) => {
                    self.ahead.extend_from_slice(&bytes[..count]);
                    return true;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => panic!("{error}, after {:?}", lossy(&self.ahead)),
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

    /// The body as text.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(400)]).into_owned()
}

//! The client: one end of a TCP connection, and the responses it reads.

use std::collections::VecDeque;
use std::io::Write;
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;

use super::{GENEROUS, read_some};

/// A client, and its input beyond the last response.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    ahead: VecDeque<u8>,
}

/// A response that a client has read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// The head as it came.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// The body ended where the head said.
    pub(crate) is_complete: bool,
}

impl Client {
    /// A client, and the server's end of its connection: not blocking, as a server has it.
    pub(crate) fn connect() -> (Self, OwnedFd) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let client = Self::connect_to(listener.local_addr().expect("an address"));
        let (accepted, _) = listener.accept().expect("a connection");
        accepted.set_nonblocking(true).expect("a socket");
        (client, accepted.into())
    }

    /// A client of a server that listens.
    pub(crate) fn connect_to(address: impl ToSocketAddrs) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(GENEROUS)).expect("a limit");
        Self { stream, ahead: VecDeque::new() }
    }

    /// Reads one response to `method`, to the end given by its head.
    pub(crate) fn read_response(&mut self, method: &str) -> Response {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            match self.next_byte() {
                Some(byte) => head.push(byte),
                None => panic!("no whole head: {:?}", String::from_utf8_lossy(&head)),
            }
        }
        let head = String::from_utf8(head).expect("heads of tests are text");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let mut body = Vec::new();
        let has_none = method == "HEAD" || matches!(status, 100..=199 | 204 | 304);
        let is_complete = if has_none {
            true
        } else if let Some(length) = field(&head, "Content-Length") {
            let length = length.parse().expect("a number");
            self.read_some(&mut body, length)
        } else if field(&head, "Transfer-Encoding") == Some("chunked") {
            self.read_chunks(&mut body)
        } else {
            self.read_some(&mut body, usize::MAX);
            true
        };
        Response { status, head, body, is_complete }
    }

    /// Everything up to the end of the connection.
    pub(crate) fn read_to_end(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.read_some(&mut bytes, usize::MAX);
        bytes
    }

    /// Reads exactly so many bytes.
    pub(crate) fn read_exactly(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        assert!(self.read_some(&mut bytes, count), "it ended after {bytes:?}");
        bytes
    }

    /// Waits for so many bytes, and leaves them to be read.
    pub(crate) fn look_at(&mut self, count: usize) {
        let bytes = self.read_exactly(count);
        bytes.into_iter().rev().for_each(|byte| self.ahead.push_front(byte));
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server's end takes it");
    }

    fn read_chunks(&mut self, body: &mut Vec<u8>) -> bool {
        loop {
            let mut line = String::new();
            while !line.ends_with("\r\n") {
                let Some(byte) = self.next_byte() else { return false };
                line.push(char::from(byte));
            }
            let length = usize::from_str_radix(line.trim_end(), 16).expect("the length of a chunk");
            if !self.read_some(body, length) {
                return false;
            }
            let mut end = Vec::new();
            if !self.read_some(&mut end, 2) {
                return false;
            }
            assert_eq!(end, b"\r\n", "a chunk ends with its line");
            if length == 0 {
                return true;
            }
        }
    }

    /// Reads `count` bytes, or to the end of the connection: false.
    fn read_some(&mut self, into: &mut Vec<u8>, mut count: usize) -> bool {
        while count > 0 {
            if self.ahead.is_empty() && !self.read_ahead() {
                return false;
            }
            let now = self.ahead.len().min(count);
            into.extend(self.ahead.drain(..now));
            count -= now;
        }
        true
    }

    fn next_byte(&mut self) -> Option<u8> {
        if self.ahead.is_empty() && !self.read_ahead() {
            return None;
        }
        self.ahead.pop_front()
    }

    fn read_ahead(&mut self) -> bool {
        let mut buffer = vec![0; 64 << 10];
        // A connection that is reset has ended, too.
        let read = match read_some(&mut self.stream, &mut buffer) {
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => 0,
            read => read.expect("a response in time"),
        };
        self.ahead.extend(&buffer[..read]);
        read > 0
    }
}

impl Response {
    /// The value of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        field(&self.head, name)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

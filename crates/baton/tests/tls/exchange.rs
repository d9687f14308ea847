//! Responses over TLS of any size, and how the connection ends behind them.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;

use rustls::{ClientConnection, StreamOwned};

use super::client::Connection;
use crate::common::take_front;

/// A connection whose responses are read one by one.
pub(crate) struct Exchange {
    stream: StreamOwned<ClientConnection, TcpStream>,
    /// Input behind the last response.
    ahead: Vec<u8>,
}

/// A response with its body, without the framing of chunks.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl From<Connection> for Exchange {
    fn from(connection: Connection) -> Self {
        Self { stream: connection.into_stream(), ahead: Vec::new() }
    }
}

impl Exchange {
    pub(crate) fn send(&mut self, request: &str) {
        self.stream.write_all(request.as_bytes()).expect("sent");
    }

    /// Below TLS.
    pub(crate) fn tcp(&mut self) -> &mut TcpStream {
        &mut self.stream.sock
    }

    /// Changes the key of this side, and asks the server to change its own.
    pub(crate) fn refresh_keys(&mut self) {
        self.stream.conn.refresh_traffic_keys().expect("TLS 1.3");
        self.stream.flush().expect("sent");
    }

    /// Reads one response.
    pub(crate) fn answer(&mut self) -> Answer {
        let head = String::from_utf8(self.until(b"\r\n\r\n")).expect("text");
        let field = |name| head.lines().find_map(|line| line.strip_prefix(name));
        let body = match field("Content-Length: ") {
            Some(length) => self.take(length.parse().expect("a number")),
            None => {
                assert_eq!(field("Transfer-Encoding: "), Some("chunked"));
                self.chunks()
            }
        };
        Answer { head, body }
    }

    fn chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let line = String::from_utf8(self.until(b"\r\n")).expect("text");
            let size = usize::from_str_radix(line.trim_end(), 16).expect("the size of a chunk");
            body.extend(self.take(size));
            assert_eq!(self.take(2), b"\r\n");
            if size == 0 {
                return body;
            }
        }
    }

    /// Reads up to and including these bytes.
    fn until(&mut self, end: &[u8]) -> Vec<u8> {
        loop {
            if let Some(at) = memchr::memmem::find(&self.ahead, end) {
                return take_front(&mut self.ahead, at + end.len());
            }
            assert!(self.fill().expect("more"), "the connection ends");
        }
    }

    /// Reads so many bytes.
    pub(crate) fn take(&mut self, count: usize) -> Vec<u8> {
        while self.ahead.len() < count {
            assert!(self.fill().expect("more"), "the connection ends after {} of {count}", self.ahead.len());
        }
        take_front(&mut self.ahead, count)
    }

    /// Reads until the server says that nothing follows.
    ///
    /// # Errors
    /// The connection ends in another way.
    pub(crate) fn rest(&mut self) -> io::Result<Vec<u8>> {
        while self.fill()? {}
        Ok(std::mem::take(&mut self.ahead))
    }

    /// Reads once; `false`: the server has said that nothing follows.
    fn fill(&mut self) -> io::Result<bool> {
        let mut bytes = vec![0; 64 * 1024];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(count) => {
                    self.ahead.extend_from_slice(&bytes[..count]);
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

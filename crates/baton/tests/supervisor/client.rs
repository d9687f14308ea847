//! A client that does no more than it is told: one connection, requests and answers as bytes.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A connection that stays open.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("connect");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("timeout");
        Self { stream: BufReader::new(stream) }
    }

    /// Asks without reading the answer.
    pub(crate) fn ask(&mut self, path: &str) -> io::Result<()> {
        write!(self.stream.get_mut(), "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
    }

    /// Reads the head of an answer: its status and the length of its body.
    pub(crate) fn head(&mut self) -> io::Result<(u16, usize)> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status =
            line.split(' ').nth(1).and_then(|word| word.parse().ok()).ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            match line.trim_end().split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("Content-Length") => {
                    length = value.parse().expect("a length");
                }
                Some(_) => {}
                None => return Ok((status, length)),
            }
        }
    }

    /// Reads so many bytes of a body.
    pub(crate) fn body(&mut self, bytes: usize) -> io::Result<Vec<u8>> {
        let mut body = vec![0; bytes];
        self.stream.read_exact(&mut body)?;
        Ok(body)
    }

    /// Asks, and reads the answer.
    pub(crate) fn get(&mut self, path: &str) -> io::Result<Answer> {
        self.ask(path)?;
        let (status, length) = self.head()?;
        Ok(Answer { status, body: self.body(length)? })
    }
}

/// Asks on a connection of its own.
pub(crate) fn get(address: SocketAddr, path: &str) -> Answer {
    Client::connect(address).get(path).expect("an answer")
}

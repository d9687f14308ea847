//! An origin that does what the path of a request tells it to: answers well, badly, late, in part, or not at all.

#![allow(dead_code, reason = "each suite uses a part of it")]

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use memchr::memmem;
use rustix::net::sockopt::set_socket_linger;

use crate::common::server::PATIENCE;
use crate::common::take_front;

/// An origin on a port of its own, with a thread for each connection.
#[derive(Clone)]
pub(crate) struct Origin {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

/// A request as the origin has read it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// The connection on which it came, counted from 0.
    pub(crate) connection: usize,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

/// A connection to the origin.
pub(crate) struct Peer {
    stream: TcpStream,
    number: usize,
    ahead: Vec<u8>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Origin {
    /// Serves each connection with `serve`, until that returns.
    pub(crate) fn start(serve: fn(&mut Peer)) -> Self {
        Self::start_on(TcpListener::bind("127.0.0.1:0").expect("a port"), serve)
    }

    /// The same on this listener.
    pub(crate) fn start_on(listener: TcpListener, serve: fn(&mut Peer)) -> Self {
        let address = listener.local_addr().expect("an address");
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let origin = Self { address, seen: Arc::clone(&seen) };
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().map_while(Result::ok).enumerate() {
                stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
                let _ = stream.set_nodelay(true);
                let mut peer = Peer { stream, number, ahead: Vec::new(), seen: Arc::clone(&seen) };
                std::thread::spawn(move || serve(&mut peer));
            }
        });
        origin
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The requests so far whose line contains this.
    pub(crate) fn seen(&self, what: &str) -> Vec<Seen> {
        let seen = self.seen.lock().expect("no panic");
        seen.iter().filter(|one| one.line().contains(what)).cloned().collect()
    }
}

impl Seen {
    /// The request line.
    pub(crate) fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }

    /// The path.
    pub(crate) fn path(&self) -> &str {
        self.line().split(' ').nth(1).unwrap_or_default()
    }

    /// The values of the fields of this name.
    pub(crate) fn fields(&self, name: &str) -> Vec<&str> {
        let pairs = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        pairs.filter(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).collect()
    }

    /// The value of the only field of this name.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let all = self.fields(name);
        assert!(all.len() < 2, "{name}: {all:?}");
        all.first().copied()
    }
}

impl Peer {
    /// The number of the connection.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Reads the head of a request; `None`: the connection has ended before it.
    pub(crate) fn head(&mut self) -> Option<Seen> {
        let end = loop {
            match memmem::find(&self.ahead, b"\r\n\r\n") {
                Some(at) => break at + 4,
                None if self.fill() => {}
                None => return None,
            }
        };
        let head = take_front(&mut self.ahead, end);
        let head = String::from_utf8(head).expect("a head in UTF-8");
        Some(Seen { connection: self.number, head, body: Vec::new() })
    }

    /// Reads the body behind a head. `false`: it was cut.
    pub(crate) fn body(&mut self, seen: &mut Seen) -> bool {
        if seen.field("transfer-encoding") == Some("chunked") {
            loop {
                match self.chunk() {
                    Some(chunk) if chunk.is_empty() => return true,
                    Some(chunk) => seen.body.extend(chunk),
                    None => return false,
                }
            }
        }
        let length = seen.field("content-length").map_or(0, |length| length.parse().expect("a length"));
        self.take(length).map(|body| seen.body = body).is_some()
    }

    /// Reads a chunk; an empty one is the end. `None`: the body was cut.
    pub(crate) fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = usize::from_str_radix(&self.line()?, 16).expect("a size");
        let chunk = self.take(size)?;
        assert_eq!(self.line()?, "", "the end of a chunk");
        Some(chunk)
    }

    /// Reads a request and its body, and notes it; `None`: the connection has ended before.
    pub(crate) fn request(&mut self) -> Option<Seen> {
        let mut seen = self.head()?;
        if !self.body(&mut seen) {
            return None;
        }
        self.note(&seen);
        Some(seen)
    }

    /// Notes a request.
    pub(crate) fn note(&self, seen: &Seen) {
        self.seen.lock().expect("no panic").push(seen.clone());
    }

    /// Sends bytes. The proxy may be gone.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.write_all(bytes.as_ref());
    }

    /// Sends bytes. `false`: the proxy is gone.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// Sends a whole response.
    pub(crate) fn answer(&mut self, fields: &str, body: impl AsRef<[u8]>) {
        let body = body.as_ref();
        let head = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {}\r\n\r\n", body.len());
        self.send([head.as_bytes(), body].concat());
    }

    /// Ends the connection by a reset.
    pub(crate) fn reset(&mut self) {
        set_socket_linger(&self.stream, Some(std::time::Duration::ZERO)).expect("a reset");
    }

    /// Sends nothing more.
    pub(crate) fn end_output(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
    }

    /// Reads at least one byte; empty at the end.
    pub(crate) fn piece(&mut self) -> Vec<u8> {
        if self.ahead.is_empty() {
            self.fill();
        }
        std::mem::take(&mut self.ahead)
    }

    /// Waits until the proxy ends the connection.
    pub(crate) fn wait_for_end(&mut self) {
        while !self.piece().is_empty() {}
    }

    /// A line without its end.
    fn line(&mut self) -> Option<String> {
        loop {
            match memmem::find(&self.ahead, b"\r\n") {
                Some(at) => {
                    let mut line = take_front(&mut self.ahead, at + 2);
                    line.truncate(at);
                    return Some(String::from_utf8(line).expect("text"));
                }
                None if self.fill() => {}
                None => return None,
            }
        }
    }

    fn take(&mut self, count: usize) -> Option<Vec<u8>> {
        while self.ahead.len() < count {
            if !self.fill() {
                return None;
            }
        }
        Some(take_front(&mut self.ahead, count))
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
                Err(_) => return false,
            }
        }
    }
}

//! A client that asks and is answered, whatever protocol carries that.

use std::fmt;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};

use super::client::{Client, Response};
use super::http2::Http2;
use super::protocol::Protocol;

/// A user agent: one connection, one request at a time.
pub(crate) enum Agent {
    Http1(Box<Client>),
    Http2(Box<Http2>),
}

/// The body of a request, as its head announces it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    None,
    /// Of so many bytes.
    Length(usize),
    /// Of a length that the head does not say.
    Open,
}

/// A body that broke off: the bytes before.
#[derive(PartialEq, Eq)]
pub(crate) struct CutOff(pub(crate) Vec<u8>);

impl fmt::Debug for CutOff {
    /// Without printing megabytes.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(bytes) = self;
        write!(formatter, "cut off after {} bytes, {:?} …", bytes.len(), &bytes[..bytes.len().min(40)])
    }
}

impl Agent {
    pub(crate) fn connect(address: SocketAddr, protocol: Protocol) -> Self {
        match protocol.is_http2() {
            true => Self::Http2(Box::new(Http2::connect(address, protocol))),
            false => Self::Http1(Box::new(Client::connect_over(address, protocol))),
        }
    }

    /// The same as a load balancer that sends these bytes before the client's.
    pub(crate) fn connect_behind(address: SocketAddr, protocol: Protocol, header: &[u8]) -> Self {
        if protocol.is_http2() {
            let client = Http2::connect_behind(address, protocol, header).expect("a connection");
            return Self::Http2(Box::new(client));
        }
        let client = Client::connect_over(address, protocol);
        client.stream().write_all(header).expect("sent");
        Self::Http1(Box::new(client))
    }

    /// The socket itself.
    pub(crate) fn tcp(&self) -> &TcpStream {
        match self {
            Self::Http1(client) => client.stream(),
            Self::Http2(client) => client.tcp(),
        }
    }

    /// Asks for a path and reads the response.
    pub(crate) fn get(&mut self, path: &str) -> Response {
        self.ask("GET", path, "")
    }

    /// The same; `None`: the server had said that the connection takes no more requests (GOAWAY), and has not begun this one.
    pub(crate) fn get_unless_closing(&mut self, path: &str) -> Option<Response> {
        if let Self::Http2(client) = self {
            client.begin("GET", "localhost", path, "", Body::None).ok()?;
            let mut response = match client.head() {
                Err(error) if error.is_go_away() && error.is_remote() => return None,
                head => head.expect("a response"),
            };
            response.body = self.body().expect("all of it");
            return Some(response);
        }
        Some(self.get(path))
    }

    /// Sends a request without a body and reads the response. `fields` are complete lines.
    pub(crate) fn ask(&mut self, method: &str, path: &str, fields: &str) -> Response {
        self.ask_host("localhost", method, path, fields)
    }

    /// The same, of a virtual host.
    pub(crate) fn ask_host(&mut self, host: &str, method: &str, path: &str, fields: &str) -> Response {
        self.begin(method, host, path, fields, Body::None);
        self.response()
    }

    /// Sends a request with a body and reads the response.
    pub(crate) fn send(&mut self, method: &str, path: &str, body: &[u8]) -> Response {
        self.begin(method, "localhost", path, "", Body::Length(body.len()));
        self.send_body(body);
        self.finish_body();
        self.response()
    }

    /// Sends the head of a request.
    pub(crate) fn begin(&mut self, method: &str, host: &str, path: &str, fields: &str, body: Body) {
        match self {
            Self::Http1(client) => client.begin(method, host, path, fields, body),
            Self::Http2(client) => client.begin(method, host, path, fields, body).expect("a stream"),
        }
    }

    /// Waits for `100 Continue`.
    pub(crate) fn expect_continue(&mut self) {
        match self {
            Self::Http1(client) => assert_eq!(client.head().status, 100),
            Self::Http2(client) => client.expect_continue(),
        }
    }

    /// Sends a part of the body.
    pub(crate) fn send_body(&mut self, bytes: &[u8]) {
        match self {
            Self::Http1(client) => client.send_body(bytes),
            Self::Http2(client) => client.send_body(bytes, false),
        }
    }

    /// Says that the body is complete.
    pub(crate) fn finish_body(&mut self) {
        match self {
            Self::Http1(client) => client.finish_body(),
            Self::Http2(client) => client.finish_body(),
        }
    }

    /// The head of the response.
    pub(crate) fn head(&mut self) -> Response {
        match self {
            Self::Http1(client) => client.head_of_response(),
            Self::Http2(client) => client.head().expect("a response"),
        }
    }

    /// Some bytes of the body; an empty piece is its end.
    pub(crate) fn piece(&mut self) -> Result<Vec<u8>, CutOff> {
        let piece = match self {
            Self::Http1(client) => client.piece(),
            Self::Http2(client) => client.piece().ok(),
        };
        piece.ok_or(CutOff(Vec::new()))
    }

    /// The rest of the body.
    pub(crate) fn body(&mut self) -> Result<Vec<u8>, CutOff> {
        let mut body = Vec::new();
        loop {
            match self.piece() {
                Ok(piece) if piece.is_empty() => return Ok(body),
                Ok(piece) => body.extend(piece),
                Err(_) => return Err(CutOff(body)),
            }
        }
    }

    /// At least so many bytes of the body.
    pub(crate) fn at_least(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < count {
            let piece = self.piece().expect("no end");
            assert!(!piece.is_empty(), "the body ends after {} of {count} bytes", bytes.len());
            bytes.extend(piece);
        }
        bytes
    }

    /// The response, all of it.
    pub(crate) fn response(&mut self) -> Response {
        let mut response = self.head();
        response.body =
            self.body().unwrap_or_else(|CutOff(body)| panic!("cut off after {} bytes", body.len()));
        response
    }
}

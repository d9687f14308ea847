//! Clients of each version of HTTP, in clear and over TLS.

use std::fmt;

use crate::common::agent::{Agent, Body};
use crate::common::client::{Client, Response};
use crate::common::protocol::Protocol;
use crate::common::server::Server;

/// A version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Http10,
    Http11,
    Http2,
}

/// What a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asker {
    pub(crate) version: Version,
    pub(crate) is_secure: bool,
}

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    /// Complete lines.
    pub(crate) fields: String,
    pub(crate) body: Sent,
}

/// The body of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    Nothing,
    /// So many bytes.
    Whole(usize),
    /// Announced, and never sent.
    Withheld(usize),
}

impl Asker {
    pub(crate) const ALL: [Self; 6] = [
        Self { version: Version::Http10, is_secure: false },
        Self { version: Version::Http11, is_secure: false },
        Self { version: Version::Http2, is_secure: false },
        Self { version: Version::Http10, is_secure: true },
        Self { version: Version::Http11, is_secure: true },
        Self { version: Version::Http2, is_secure: true },
    ];

    /// Asks on a new connection.
    pub(crate) fn ask(self, server: &Server, request: &Request) -> Response {
        let server = server.over(self.protocol());
        let (announced, sent) = match request.body {
            Sent::Nothing => (None, None),
            Sent::Whole(len) => (Some(len), Some(vec![b'x'; len])),
            Sent::Withheld(len) => (Some(len), None),
        };
        if self.version == Version::Http10 {
            return ask_http10(&mut server.connect(), request, announced, &sent.unwrap_or_default());
        }
        let mut agent = Agent::connect(server.address(), server.protocol());
        let body = announced.map_or(Body::None, Body::Length);
        agent.begin(request.method, HOST, &request.path, &request.fields, body);
        if let Some(sent) = sent {
            agent.send_body(&sent);
            agent.finish_body();
        }
        agent.response()
    }

    fn protocol(self) -> Protocol {
        match (self.version, self.is_secure) {
            (Version::Http10 | Version::Http11, false) => Protocol::Http,
            (Version::Http10 | Version::Http11, true) => Protocol::Https,
            (Version::Http2, false) => Protocol::H2c,
            (Version::Http2, true) => Protocol::H2,
        }
    }
}

impl fmt::Display for Asker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = match self.version {
            Version::Http10 => "1.0",
            Version::Http11 => "1.1",
            Version::Http2 => "2",
        };
        write!(formatter, "{version}{}", if self.is_secure { " TLS" } else { "" })
    }
}

fn ask_http10(client: &mut Client, request: &Request, announced: Option<usize>, body: &[u8]) -> Response {
    let Request { method, path, fields, .. } = request;
    let length = announced.map_or(String::new(), |length| format!("Content-Length: {length}\r\n"));
    let head = format!("{method} {path} HTTP/1.0\r\nHost: {HOST}\r\n{fields}{length}\r\n");
    client.send([head.as_bytes(), body].concat());
    client.answer_to(method)
}

const HOST: &str = "localhost";

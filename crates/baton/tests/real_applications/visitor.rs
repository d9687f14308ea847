//! A visitor with a browser's habits: one connection, cookies, forms.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::common::agent::{Agent, Body};
use crate::common::client::Response;
use crate::common::protocol::Protocol;

/// The host of all requests, for any address, so that links are equal.
pub(crate) const HOST: &str = "wiki.test";

/// A client with cookies.
pub(crate) struct Visitor {
    address: SocketAddr,
    protocol: Protocol,
    agent: Option<Agent>,
    cookies: BTreeMap<String, String>,
    /// Values of cookies that were given to this visitor only.
    secrets: Vec<String>,
}

impl Visitor {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self::over(address, Protocol::Http)
    }

    pub(crate) fn over(address: SocketAddr, protocol: Protocol) -> Self {
        Self { address, protocol, agent: None, cookies: BTreeMap::new(), secrets: Vec::new() }
    }

    /// This visitor's own tokens, which differ between visitors.
    pub(crate) fn secrets(&self) -> &[String] {
        &self.secrets
    }

    /// The connection that is kept.
    pub(crate) fn agent(&mut self) -> &mut Agent {
        self.agent.get_or_insert_with(|| Agent::connect(self.address, self.protocol))
    }

    pub(crate) fn get(&mut self, path: &str) -> Response {
        self.ask("GET", path, "")
    }

    /// A request without a body. `fields` are complete lines.
    pub(crate) fn ask(&mut self, method: &str, path: &str, fields: &str) -> Response {
        self.send(method, path, fields, b"")
    }

    /// Sends a form.
    pub(crate) fn post(&mut self, path: &str, form: &[(&str, &str)]) -> Response {
        let pairs: Vec<_> =
            form.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
        let media_type = "Content-Type: application/x-www-form-urlencoded\r\n";
        self.send("POST", path, media_type, pairs.join("&").as_bytes())
    }

    /// Sends a form with a file.
    pub(crate) fn upload(
        &mut self,
        path: &str,
        form: &[(&str, &str)],
        file: (&str, &str, &[u8]),
    ) -> Response {
        const BORDER: &str = "----a-border-that-is-nowhere-else";
        let (name, file_name, content) = file;
        let mut body = Vec::new();
        for (name, value) in form {
            body.extend(
                format!("--{BORDER}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
                    .bytes(),
            );
        }
        body.extend(
            format!(
                "--{BORDER}\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{file_name}\"\r\n\
                 Content-Type: image/png\r\n\r\n"
            )
            .bytes(),
        );
        body.extend_from_slice(content);
        body.extend(format!("\r\n--{BORDER}--\r\n").bytes());
        self.send("POST", path, &format!("Content-Type: multipart/form-data; boundary={BORDER}\r\n"), &body)
    }

    fn send(&mut self, method: &str, path: &str, fields: &str, body: &[u8]) -> Response {
        let cookies: Vec<_> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut fields = format!("User-Agent: visitor\r\n{fields}");
        if !cookies.is_empty() {
            fields.push_str(&format!("Cookie: {}\r\n", cookies.join("; ")));
        }
        let length = if method == "POST" { Body::Length(body.len()) } else { Body::None };
        let agent = self.agent();
        agent.begin(method, HOST, path, &fields, length);
        agent.send_body(body);
        agent.finish_body();
        let answer = agent.response();
        if answer.field("connection") == Some("close") {
            self.agent = None;
        }
        self.remember(&answer);
        answer
    }

    fn remember(&mut self, answer: &Response) {
        for (_, value) in answer.fields.iter().filter(|(name, _)| name == "set-cookie") {
            let pair = value.split(';').next().unwrap_or_default();
            let (name, content) = pair.split_once('=').expect("a cookie");
            if matches!(content, "deleted" | "" | "\"\"") {
                self.cookies.remove(name);
            } else {
                self.secrets.push(content.to_owned());
                self.cookies.insert(name.to_owned(), content.to_owned());
            }
        }
    }
}

/// The value of a form's hidden field.
pub(crate) fn hidden<'a>(page: &'a str, name: &str) -> &'a str {
    let start = format!("name=\"{name}\" value=\"");
    let rest = page.split_once(&start).unwrap_or_else(|| panic!("no field {name} in {page}")).1;
    rest.split('"').next().unwrap_or_default()
}

fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

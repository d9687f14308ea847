//! What an origin is told of the client, and of the way of the request: `Via`, `Forwarded`, `X-Forwarded-*`.

use super::claims::{Claims, Hop};
use crate::decimal::push_decimal;
use crate::fields::{is_token_byte, list_members};
use crate::{RequestHead, Version};
use std::io::Write;
use std::net::IpAddr;

/// The client, as the server knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForwardedClient {
    /// Its address; `None` on a Unix socket.
    pub address: Option<IpAddr>,
    /// Whether it has come over TLS.
    pub is_https: bool,
    /// Whether it is a proxy whose own words about its client are believed.
    pub is_trusted: bool,
}

/// The one truth about a client: what a trusted proxy says of it, and what the server sees. Allocates nothing for others.
#[derive(Debug)]
pub(super) struct ClientFacts<'a> {
    believed: Claims<'a>,
    /// The other end of the connection.
    nearest: Hop<'a>,
    is_https: bool,
    head: &'a RequestHead<'a>,
}

impl Claims<'_> {
    /// Appends what they say as fields in both dialects, for an application that knows by itself which proxy says it.
    pub fn push_fields(&self, out: &mut Vec<u8>) {
        if !self.hops.is_empty() {
            push_addresses(out, self.hops.iter());
        }
        if let Some(is_https) = self.is_https {
            push_parts(out, &[b"X-Forwarded-Proto: ", scheme(is_https), b"\r\n"]);
        }
        if let Some(host) = &self.host {
            push_parts(out, &[b"X-Forwarded-Host: ", host, b"\r\n"]);
        }
        if *self != Claims::default() {
            let hops = if self.hops.is_empty() { &[Hop::UNKNOWN] } else { &self.hops[..] };
            let push_host = self.host.as_ref().map(|host| |out: &mut Vec<u8>| out.extend_from_slice(host));
            push_forwarded(out, hops.iter(), self.is_https, push_host);
        }
    }
}

impl<'a> ClientFacts<'a> {
    /// `claims`: the head with the words of the client. `head`: what goes on.
    pub(super) fn of(claims: &RequestHead<'a>, head: &'a RequestHead<'a>, client: ForwardedClient) -> Self {
        let believed = if client.is_trusted { Claims::of(claims) } else { Claims::default() };
        let address = client.address.map(|address| Hop::Address(address.to_canonical(), None));
        let is_https = believed.is_https.unwrap_or(client.is_https);
        Self { believed, nearest: address.unwrap_or(Hop::UNKNOWN), is_https, head }
    }

    /// Appends the lines for the origin.
    pub(super) fn push(&self, out: &mut Vec<u8>) {
        // Of a client on a Unix socket alone there is nothing to say.
        if self.nearest != Hop::UNKNOWN || !self.believed.hops.is_empty() {
            push_addresses(out, self.hops());
        }
        push_parts(out, &[b"X-Forwarded-Proto: ", scheme(self.is_https), b"\r\n"]);
        let has_host = self.believed.host.is_some() || self.head.host.is_some();
        let push_host = has_host.then_some(|out: &mut Vec<u8>| self.push_host(out));
        if let Some(push_host) = &push_host {
            out.extend_from_slice(b"X-Forwarded-Host: ");
            push_host(out);
            out.extend_from_slice(b"\r\n");
        }
        push_forwarded(out, self.hops(), Some(self.is_https), push_host);
    }

    /// The client first, the other end of the connection last.
    fn hops(&self) -> impl Iterator<Item = &Hop<'a>> {
        self.believed.hops.iter().chain([&self.nearest])
    }

    fn push_host(&self, out: &mut Vec<u8>) {
        match &self.believed.host {
            Some(host) => out.extend_from_slice(host),
            None => push_host(out, self.head),
        }
    }
}

const fn scheme(is_https: bool) -> &'static [u8] {
    if is_https { b"https" } else { b"http" }
}

/// Appends `X-Forwarded-For`.
fn push_addresses<'h>(out: &mut Vec<u8>, hops: impl Iterator<Item = &'h Hop<'h>>) {
    let mut separator: &[u8] = b"X-Forwarded-For: ";
    for hop in hops {
        out.extend_from_slice(separator);
        separator = b", ";
        match hop {
            Hop::Address(ip, None) => push_ip(out, *ip),
            Hop::Address(IpAddr::V4(ip), Some(port)) => push_display(out, format_args!("{ip}:{port}")),
            Hop::Address(ip, Some(port)) => push_display(out, format_args!("[{ip}]:{port}")),
            Hop::Word(word) if word.iter().copied().all(is_token_byte) => out.extend_from_slice(word),
            Hop::Word(_) => out.extend_from_slice(b"unknown"),
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends `Forwarded`, whose first element is about the client (RFC 7239 section 4).
fn push_forwarded<'h>(
    out: &mut Vec<u8>,
    hops: impl Iterator<Item = &'h Hop<'h>>,
    is_https: Option<bool>,
    push_host: Option<impl Fn(&mut Vec<u8>)>,
) {
    let mut separator: &[u8] = b"Forwarded: for=";
    for (index, hop) in hops.enumerate() {
        out.extend_from_slice(separator);
        separator = b", for=";
        push_node(out, hop);
        if index > 0 {
            continue;
        }
        if let Some(is_https) = is_https {
            push_parts(out, &[b";proto=", scheme(is_https)]);
        }
        if let Some(push_host) = &push_host {
            out.extend_from_slice(b";host=\"");
            let host_at = out.len();
            push_host(out);
            if out[host_at..].iter().copied().all(is_token_byte) {
                out.remove(host_at - 1);
            } else {
                out.push(b'"');
            }
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends a node (RFC 7239 section 6).
fn push_node(out: &mut Vec<u8>, hop: &Hop<'_>) {
    let is_hidden = |word: &[u8]| {
        word.strip_prefix(b"_").is_some_and(|rest| {
            !rest.is_empty()
                && rest.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
        })
    };
    match hop {
        Hop::Address(ip @ IpAddr::V4(_), None) => push_ip(out, *ip),
        Hop::Address(IpAddr::V4(ip), Some(port)) => push_display(out, format_args!("\"{ip}:{port}\"")),
        Hop::Address(ip, None) => push_display(out, format_args!("\"[{ip}]\"")),
        Hop::Address(ip, Some(port)) => push_display(out, format_args!("\"[{ip}]:{port}\"")),
        Hop::Word(word) if is_hidden(word) => out.extend_from_slice(word),
        Hop::Word(_) => out.extend_from_slice(b"unknown"),
    }
}

/// Appends host and port as the client asked for them.
pub(super) fn push_host(out: &mut Vec<u8>, head: &RequestHead<'_>) {
    let Some(host) = head.host else { return };
    out.extend_from_slice(host.as_bytes());
    if let Some(port) = head.port {
        out.push(b':');
        push_decimal(out, u64::from(port));
    }
}

/// Appends `Via` (RFC 9110 section 7.6.3).
pub(super) fn push_via(out: &mut Vec<u8>, version: Version, pseudonym: &str) {
    let version = match version {
        Version::Http10 => "1.0 ",
        Version::Http11 => "1.1 ",
        Version::Http2 => "2 ",
    };
    push_parts(out, &["Via: ", version, pseudonym, "\r\n"].map(str::as_bytes));
}

/// How often a `Via` field names `pseudonym`.
pub(super) fn times_in_via(value: &[u8], pseudonym: &str) -> usize {
    let received_by = |member: &[u8]| {
        let by = member.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty()).nth(1);
        by.is_some_and(|by| by == pseudonym.as_bytes())
    };
    list_members(value).filter(|member| received_by(member)).count()
}

fn push_parts(out: &mut Vec<u8>, parts: &[&[u8]]) {
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

/// Every request to an origin has the client's address twice, so the machinery of formats is left out.
fn push_ip(out: &mut Vec<u8>, ip: IpAddr) {
    let IpAddr::V4(ip) = ip else { return push_display(out, format_args!("{ip}")) };
    let [first, rest @ ..] = ip.octets();
    push_decimal(out, u64::from(first));
    for octet in rest {
        out.push(b'.');
        push_decimal(out, u64::from(octet));
    }
}

fn push_display(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // A vector takes everything.
    let _ = out.write_fmt(text);
}

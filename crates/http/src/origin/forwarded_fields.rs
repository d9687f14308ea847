//! What an origin is told of the client, and of the way of the request: `Via`, `Forwarded`, `X-Forwarded-*`.

use crate::decimal::push_decimal;
use crate::fields::{begins_like_field, is_same_field, is_token_byte, list_members};
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

/// The client's own words of this kind, which are only passed on if they are believed.
#[derive(Debug, Default)]
pub(super) struct Claims<'a> {
    forwarded: Vec<&'a [u8]>,
    x_for: Vec<&'a [u8]>,
    x_proto: Option<&'a [u8]>,
    x_host: Option<&'a [u8]>,
}

impl<'a> Claims<'a> {
    /// Takes a field that must not go on as it is. Others of the kind pass if they are believed.
    pub(super) fn take(&mut self, name: &[u8], value: &'a [u8], is_trusted: bool) -> bool {
        let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
        match name.len() {
            9 if is("Forwarded") => self.forwarded.push(value),
            15 if is("X-Forwarded-For") => self.x_for.push(value),
            16 if is("X-Forwarded-Host") => self.x_host = self.x_host.or(Some(value)),
            17 if is("X-Forwarded-Proto") => self.x_proto = self.x_proto.or(Some(value)),
            // Applications that turn names into variables cannot tell `X_Forwarded_For` from `X-Forwarded-For`.
            _ => return is_claim(name) && (!is_trusted || name.contains(&b'_')),
        }
        true
    }

    /// Appends the lines for the origin.
    pub(super) fn push(&self, out: &mut Vec<u8>, head: &RequestHead<'_>, client: ForwardedClient) {
        let ForwardedClient { address, is_https, is_trusted } = client;
        let address = address.map(|address| address.to_canonical());
        let proto: &[u8] = if is_https { b"https" } else { b"http" };
        let believed = |claim: Option<&'a [u8]>| claim.filter(|claim| is_trusted && !claim.is_empty());

        let earlier = if is_trusted { &self.x_for[..] } else { &[] };
        if address.is_some() || !earlier.is_empty() {
            out.extend_from_slice(b"X-Forwarded-For: ");
            push_list(out, earlier);
            match address {
                Some(address) => push_display(out, format_args!("{address}")),
                None => out.extend_from_slice(b"unknown"),
            }
            out.extend_from_slice(b"\r\n");
        }
        push_parts(out, &[b"X-Forwarded-Proto: ", believed(self.x_proto).unwrap_or(proto), b"\r\n"]);
        if let Some(x_host) = believed(self.x_host) {
            push_parts(out, &[b"X-Forwarded-Host: ", x_host, b"\r\n"]);
        } else if head.host.is_some() {
            out.extend_from_slice(b"X-Forwarded-Host: ");
            push_host(out, head);
            out.extend_from_slice(b"\r\n");
        }

        out.extend_from_slice(b"Forwarded: ");
        push_list(out, if is_trusted { &self.forwarded } else { &[] });
        match address {
            Some(IpAddr::V4(address)) => push_display(out, format_args!("for={address}")),
            Some(IpAddr::V6(address)) => push_display(out, format_args!("for=\"[{address}]\"")),
            None => out.extend_from_slice(b"for=unknown"),
        }
        out.extend_from_slice(b";proto=");
        out.extend_from_slice(proto);
        if let Some(host) = head.host {
            let is_token = head.port.is_none() && host.bytes().all(is_token_byte);
            let quote: &[u8] = if is_token { b"" } else { b"\"" };
            push_parts(out, &[b";host=", quote]);
            push_host(out, head);
            out.extend_from_slice(quote);
        }
        out.extend_from_slice(b"\r\n");
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

/// Names that tell an application who the client is or what it asked for, underscores taken for hyphens.
fn is_claim(name: &[u8]) -> bool {
    is_same_field(name, "X-Real-IP") || begins_like_field(name, "X-Forwarded-")
}

/// Appends the values, each with a comma behind it.
fn push_list(out: &mut Vec<u8>, values: &[&[u8]]) {
    for value in values.iter().filter(|value| !value.is_empty()) {
        push_parts(out, &[value, b", "]);
    }
}

fn push_parts(out: &mut Vec<u8>, parts: &[&[u8]]) {
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

fn push_display(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // A vector takes everything.
    let _ = out.write_fmt(text);
}

//! What a proxy in front of this server says of its client: in `X-Forwarded-*`, or in `Forwarded` (RFC 7239).
//!
//! Both families say the same things. They are read into one value, from which the server writes both anew, so that they
//! cannot contradict each other behind it.

use crate::fields::{begins_like_field, is_same_field, list_members};
use crate::{Authority, RequestHead};
use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// What the fields of a request say of the client behind a proxy. Worth nothing unless that proxy is trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims<'a> {
    /// The client, and the proxies behind it but the last one, from which the request comes.
    pub hops: Vec<Hop<'a>>,
    /// Whether the client has come over TLS.
    pub is_https: Option<bool>,
    /// Host and port for which the client has asked: what [`Authority::parse`] reads.
    pub host: Option<Cow<'a, [u8]>>,
}

/// A station on the way of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hop<'a> {
    /// Its address, and perhaps its port.
    Address(IpAddr, Option<u16>),
    /// Another word for it: `unknown`, `_hidden`, or rubbish.
    Word(Cow<'a, [u8]>),
}

impl<'a> Claims<'a> {
    /// Reads a head. If it has one of `X-Forwarded-For`, `-Proto` and `-Host`, `Forwarded` counts for nothing: most proxies
    /// write the former, and some pass on the latter as their client has sent it.
    pub fn of(head: &RequestHead<'a>) -> Self {
        let mut claims = Self::default();
        let (mut has_older, mut forwarded) = (false, Vec::new());
        for (name, value) in head.fields() {
            let is = |other: &str| name.eq_ignore_ascii_case(other);
            match name.len() {
                9 if is("Forwarded") => forwarded.push(value),
                15 if is("X-Forwarded-For") => claims.hops.extend(list_members(value).map(Hop::of)),
                16 if is("X-Forwarded-Host") => claims.note_host(first_member(value)),
                17 if is("X-Forwarded-Proto") => claims.note_scheme(first_member(value)),
                _ => continue,
            }
            has_older |= name.len() != "Forwarded".len();
        }
        if !has_older {
            forwarded.into_iter().for_each(|value| claims.note_forwarded(value));
        }
        claims
    }

    /// The first word counts: that of the client's own proxy.
    fn note_scheme(&mut self, scheme: &[u8]) {
        let is = |names: [&str; 2]| names.iter().any(|name| scheme.eq_ignore_ascii_case(name.as_bytes()));
        let said = match () {
            () if is(["https", "wss"]) => Some(true),
            () if is(["http", "ws"]) => Some(false),
            () => None,
        };
        self.is_https = self.is_https.or(said);
    }

    fn note_host(&mut self, host: impl Into<Cow<'a, [u8]>>) {
        let host = host.into();
        if self.host.is_none() && Authority::parse(&host).is_some() {
            self.host = Some(host);
        }
    }

    /// Scheme and host are those of the first element: the client's (RFC 7239 section 4).
    fn note_forwarded(&mut self, value: &'a [u8]) {
        for element in split_unquoted(value, b',') {
            let is_first = self.hops.is_empty();
            let mut hop = None;
            for pair in split_unquoted(element, b';') {
                let Some(equals) = memchr::memchr(b'=', pair) else { continue };
                let (name, value) = (pair[..equals].trim_ascii(), unquoted(&pair[equals + 1..]));
                match () {
                    () if name.eq_ignore_ascii_case(b"for") => hop = Some(Hop::of_cow(value)),
                    () if is_first && name.eq_ignore_ascii_case(b"proto") => self.note_scheme(&value),
                    () if is_first && name.eq_ignore_ascii_case(b"host") => self.note_host(value),
                    () => {}
                }
            }
            if !element.trim_ascii().is_empty() {
                self.hops.push(hop.unwrap_or(Hop::UNKNOWN));
            }
        }
    }
}

impl<'a> Hop<'a> {
    /// One of which nothing is said.
    pub const UNKNOWN: Self = Self::Word(Cow::Borrowed(b"unknown"));

    /// Reads a member of `X-Forwarded-For`, or the value of `for=`.
    pub fn of(text: &'a [u8]) -> Self {
        Self::of_cow(Cow::Borrowed(text))
    }

    fn of_cow(text: Cow<'a, [u8]>) -> Self {
        match address_of(&text) {
            Some((ip, port)) => Self::Address(ip.to_canonical(), port),
            None => Self::Word(text),
        }
    }
}

/// Whether a field tells an origin or an application who the client is, or what it has asked for. Clients that are not trusted
/// have none: nothing else tells the server's word from theirs.
pub fn is_claim(name: &[u8]) -> bool {
    is_told_anew(name) || is_same_field(name, "X-Real-IP") || begins_like_field(name, "X-Forwarded-")
}

/// Whether the server writes the field itself, also for clients that are trusted.
pub fn is_told_anew(name: &[u8]) -> bool {
    let is = |other: &str| is_same_field(name, other);
    match name.len() {
        9 => is("Forwarded"),
        15 => is("X-Forwarded-For"),
        16 => is("X-Forwarded-Host"),
        17 => is("X-Forwarded-Proto"),
        _ => false,
    }
}

/// `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:80`.
fn address_of(text: &[u8]) -> Option<(IpAddr, Option<u16>)> {
    let text = std::str::from_utf8(text).ok()?;
    if let Ok(ip) = text.parse() {
        return Some((ip, None));
    }
    if let Some(ip) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        return Some((ip.parse::<Ipv6Addr>().ok()?.into(), None));
    }
    let address: SocketAddr = text.parse().ok()?;
    Some((address.ip(), Some(address.port())))
}

fn first_member(value: &[u8]) -> &[u8] {
    list_members(value).next().unwrap_or_default()
}

/// The parts between separators that stand in no quoted string.
fn split_unquoted(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |byte| {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            _ => return *byte == separator && !is_quoted,
        }
        false
    })
}

/// The value of a token or a quoted string.
fn unquoted(text: &[u8]) -> Cow<'_, [u8]> {
    let text = text.trim_ascii();
    let Some(inner) = text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")) else {
        return Cow::Borrowed(text);
    };
    if memchr::memchr(b'\\', inner).is_none() {
        return Cow::Borrowed(inner);
    }
    let mut is_escaped = false;
    let is_kept = |byte: &u8| {
        is_escaped = *byte == b'\\' && !is_escaped;
        !is_escaped
    };
    Cow::Owned(inner.iter().copied().filter(is_kept).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HeadLimits;

    fn claims(fields: &str) -> (Vec<String>, Option<bool>, Option<String>) {
        let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n");
        let head = RequestHead::parse(text.as_bytes(), &HeadLimits::default()).unwrap();
        let Claims { hops, is_https, host } = Claims::of(&head);
        let hop = |hop: &Hop<'_>| match hop {
            Hop::Address(ip, port) => format!("{ip} {}", port.unwrap_or(0)),
            Hop::Word(word) => String::from_utf8_lossy(word).into_owned(),
        };
        let host = host.map(|host| String::from_utf8(host.into_owned()).unwrap());
        (hops.iter().map(hop).collect(), is_https, host)
    }

    fn said(
        hops: &[&str],
        is_https: Option<bool>,
        host: Option<&str>,
    ) -> (Vec<String>, Option<bool>, Option<String>) {
        (hops.iter().map(|hop| (*hop).to_owned()).collect(), is_https, host.map(str::to_owned))
    }

    #[test]
    fn both_families_say_the_same() {
        for (fields, expected) in [
            ("A: b", said(&[], None, None)),
            (
                "X-Forwarded-For: 192.0.2.1, ::ffff:192.0.2.2:, unknown\r\nX-Forwarded-For: [2001:db8::1]:8\r\n\
                 X-Forwarded-Proto: HTTPS, http\r\nX-Forwarded-Host: b.test:8443, c",
                said(
                    &["192.0.2.1 0", "::ffff:192.0.2.2:", "unknown", "2001:db8::1 8"],
                    Some(true),
                    Some("b.test:8443"),
                ),
            ),
            ("X-Forwarded-For: ::ffff:192.0.2.2", said(&["192.0.2.2 0"], None, None)),
            ("X-Forwarded-Proto: gopher\r\nX-Forwarded-Host: a b", said(&[], None, None)),
            (
                "Forwarded: For=\"[2001:db8::1]:8\";Proto=https; host=\"b.test:8443\", for=192.0.2.1;proto=http;host=c",
                said(&["2001:db8::1 8", "192.0.2.1 0"], Some(true), Some("b.test:8443")),
            ),
            // RFC 7239 sections 4, 6.2, 6.3.
            (
                "Forwarded: for=_a;by=\"x,y;z\"\r\nForwarded: proto=http, for=\"u\\\"\\\\n,k\"",
                said(&["_a", "unknown", "u\"\\n,k"], None, None),
            ),
            // What a client has sent through a proxy that knows the other family.
            ("Forwarded: for=6.6.6.6;proto=http\r\nX-Forwarded-Proto: https", said(&[], Some(true), None)),
        ] {
            assert_eq!(claims(fields), expected, "{fields}");
        }
    }

    #[test]
    fn claims_have_names() {
        for (name, expected) in [
            ("forwarded", true),
            ("X_Forwarded_For", true),
            ("X-Forwarded-Anything", true),
            ("x-real-ip", true),
            ("X-Forwarded", false),
            ("Forwarded-For", false),
        ] {
            assert_eq!(is_claim(name.as_bytes()), expected, "{name}");
        }
    }
}

//! Which pages of other origins may read what a route answers (Fetch Standard, section 3.2: CORS).
//!
//! What is the same for all responses of a route is among its field rules: `Vary: Origin`, or `*` for every origin. Here
//! is what depends on the request: its origin, and the preflight with which a browser asks first.

use std::fmt;
use std::str::FromStr;

use baton_http::{Method, ReplyHead, RequestHead, is_token_byte};

/// What pages of other origins may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cors {
    /// Whose pages.
    pub origins: Origins,
    /// Value of `Access-Control-Allow-Methods`.
    pub methods: String,
    /// Value of `Access-Control-Allow-Headers`; `None`: whatever a preflight asks for.
    pub headers: Option<String>,
    /// Value of `Access-Control-Expose-Headers`; `None`: pages see what browsers always show.
    pub exposed: Option<String>,
    /// Whether requests may have cookies and passwords.
    pub credentials: bool,
    /// For how long browsers remember a preflight, in seconds.
    pub max_age_s: u64,
}

/// Origins of pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origins {
    /// All of them. Field rules say so; no response depends on the request.
    All,
    /// Origins that one of these patterns matches.
    Some(Vec<OriginPattern>),
}

/// One origin, or several: `https://a.example`, `https://*.example.org`, `http://localhost:*`, `null`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OriginPattern {
    /// `null`, the origin of pages without one: of files, or in a sandbox. Every site can make such a page.
    Null,
    /// With a scheme and a host.
    Tuple {
        /// In lower case, without `://`.
        scheme: String,
        /// In lower case; of several hosts, what follows `*`.
        host: String,
        /// Whether it is any host below that one.
        is_below: bool,
        /// The port as origins say it.
        port: OriginPort,
    },
}

/// The port of an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginPort {
    /// The port of the scheme, which origins leave out.
    Default,
    /// This one.
    Given(u16),
    /// Any.
    Any,
}

/// A page may read this response.
#[derive(Clone, Copy, Debug)]
pub struct Allowed<'a> {
    cors: &'a Cors,
    origin: &'a str,
}

/// A browser asks whether a page may ask.
#[derive(Clone, Copy, Debug)]
pub struct Preflight<'a> {
    cors: &'a Cors,
    head: &'a RequestHead<'a>,
}

impl Cors {
    /// What the response to this request says of its own origin, beside what field rules say to all.
    pub fn allowed<'a>(&'a self, head: &RequestHead<'a>) -> Option<Allowed<'a>> {
        let Origins::Some(patterns) = &self.origins else { return None };
        let origin = head.only_field(ORIGIN)?;
        patterns.iter().any(|pattern| pattern.matches(origin)).then_some(Allowed { cors: self, origin })
    }

    /// The preflight that a request is, if it is one.
    pub fn preflight<'a>(&'a self, head: &'a RequestHead<'a>) -> Option<Preflight<'a>> {
        let is_preflight = head.method == Method::Options
            && head.only_field(ORIGIN).is_some()
            && head.only_field(ASKED_METHOD).is_some();
        is_preflight.then_some(Preflight { cors: self, head })
    }
}

impl Allowed<'_> {
    /// Appends the fields of a response.
    pub fn push(&self, head: &mut ReplyHead<'_>) {
        head.field(ALLOW_ORIGIN, self.origin);
        if self.cors.credentials {
            head.field(ALLOW_CREDENTIALS, "true");
        }
        if let Some(exposed) = &self.cors.exposed {
            head.field(EXPOSE_HEADERS, exposed);
        }
    }
}

impl Preflight<'_> {
    /// The fields of the answer beside those of every response of the route, as complete lines. An origin that is not
    /// allowed learns nothing.
    pub fn lines(&self) -> Vec<u8> {
        let Self { cors, head } = self;
        let mut lines = Vec::new();
        let mut reply = ReplyHead::resume(&mut lines);
        if cors.headers.is_none() {
            reply.field("Vary", ASKED_HEADERS);
        }
        if cors.origins != Origins::All && cors.allowed(head).is_none() {
            return lines;
        }
        reply.field("Access-Control-Allow-Methods", &cors.methods);
        match (&cors.headers, head.only_field(ASKED_HEADERS)) {
            (Some(listed), _) if !listed.is_empty() => {
                reply.field("Access-Control-Allow-Headers", listed);
            }
            (None, Some(asked)) if is_list_of_names(asked) => {
                reply.field("Access-Control-Allow-Headers", asked);
            }
            _ => {}
        }
        reply.number("Access-Control-Max-Age", cors.max_age_s);
        lines
    }
}

impl OriginPattern {
    /// Whether it matches the value of an `Origin` field. Browsers write origins in one way (RFC 6454, section 6.1), so any
    /// other spelling is none.
    pub fn matches(&self, origin: &str) -> bool {
        let Self::Tuple { scheme, host, is_below, port } = self else { return origin == NULL };
        let rest = origin.strip_prefix(scheme.as_str()).and_then(|rest| rest.strip_prefix("://"));
        let Some((own_host, own_port)) = rest.and_then(split_port) else { return false };
        let port_matches = match (port, own_port) {
            (OriginPort::Any, _) | (OriginPort::Default, None) => true,
            (OriginPort::Given(port), Some(own)) => *port == own,
            (OriginPort::Default, Some(_)) | (OriginPort::Given(_), None) => false,
        };
        let host_matches = match is_below {
            false => own_host == host,
            true => {
                own_host.strip_suffix(host.as_str()).is_some_and(|labels| labels.split('.').all(is_label))
            }
        };
        port_matches && host_matches
    }
}

/// Why a text is no pattern of origins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadOrigin {
    /// It has no `://`, or something odd before it.
    Scheme,
    /// It has a path, a query or a user.
    Path,
    /// The host is no name or address, or has a `*` elsewhere than in place of its first labels.
    Host,
    /// The port is none.
    Port,
}

impl FromStr for OriginPattern {
    type Err = BadOrigin;

    fn from_str(text: &str) -> Result<Self, BadOrigin> {
        if text == NULL {
            return Ok(Self::Null);
        }
        let (scheme, rest) = text.split_once("://").ok_or(BadOrigin::Scheme)?;
        let scheme = scheme.to_ascii_lowercase();
        let is_of_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        if !scheme.starts_with(|first: char| first.is_ascii_alphabetic()) || !scheme.bytes().all(is_of_scheme)
        {
            return Err(BadOrigin::Scheme);
        }
        if rest.contains(['/', '?', '#', '@']) {
            return Err(BadOrigin::Path);
        }
        let (rest, port) = match rest.strip_suffix(":*") {
            Some(rest) => (rest, OriginPort::Any),
            None => {
                let (host, port) = split_port(rest).ok_or(BadOrigin::Port)?;
                let usual = match &*scheme {
                    "http" => Some(80),
                    "https" => Some(443),
                    _ => None,
                };
                let port = port.filter(|port| Some(*port) != usual);
                (host, port.map_or(OriginPort::Default, OriginPort::Given))
            }
        };
        let host = rest.to_ascii_lowercase();
        let (is_below, host) = match host.strip_prefix("*.") {
            Some(name) => (true, format!(".{name}")),
            None => (false, host),
        };
        let name = host.strip_prefix('.').filter(|_| is_below).unwrap_or(&host);
        let is_address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        let is_host = match is_address {
            Some(address) => !is_below && address.parse::<std::net::Ipv6Addr>().is_ok(),
            None => name.split('.').all(is_label),
        };
        if is_host { Ok(Self::Tuple { scheme, host, is_below, port }) } else { Err(BadOrigin::Host) }
    }
}

impl fmt::Display for OriginPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Tuple { scheme, host, is_below, port } = self else { return f.write_str(NULL) };
        write!(f, "{scheme}://{}{host}", if *is_below { "*" } else { "" })?;
        match port {
            OriginPort::Default => Ok(()),
            OriginPort::Given(port) => write!(f, ":{port}"),
            OriginPort::Any => f.write_str(":*"),
        }
    }
}

/// The host, and the port if there is one. `None`: what follows the host is no port.
fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    let host_len = match text.starts_with('[') {
        true => text.find(']')? + 1,
        false => text.find(':').unwrap_or(text.len()),
    };
    let (host, rest) = text.split_at(host_len);
    let Some(port) = rest.strip_prefix(':') else { return rest.is_empty().then_some((host, None)) };
    // A number has one spelling.
    let number: u16 = port.parse().ok()?;
    (number.to_string() == port).then_some((host, Some(number)))
}

fn is_label(label: &str) -> bool {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    !label.is_empty() && label.bytes().all(is_fine)
}

/// Whether it is what a browser says of the fields that a page wants to send. It becomes a part of the response.
fn is_list_of_names(text: &str) -> bool {
    text.len() <= NAMES_BYTES_MAX
        && text.split(',').all(|name| {
            let name = name.trim_matches([' ', '\t']);
            !name.is_empty() && name.bytes().all(is_token_byte)
        })
}

const ORIGIN: &str = "Origin";
const ASKED_METHOD: &str = "Access-Control-Request-Method";
const ASKED_HEADERS: &str = "Access-Control-Request-Headers";

/// The field that says whose pages may read a response.
pub const ALLOW_ORIGIN: &str = "Access-Control-Allow-Origin";
/// The field that says whether such a page may send cookies and passwords.
pub const ALLOW_CREDENTIALS: &str = "Access-Control-Allow-Credentials";
/// The field that says which fields it may read.
pub const EXPOSE_HEADERS: &str = "Access-Control-Expose-Headers";

const NULL: &str = "null";

/// Pages ask for a few names.
const NAMES_BYTES_MAX: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> OriginPattern {
        text.parse().unwrap_or_else(|why| panic!("{text}: {why:?}"))
    }

    #[test]
    fn only_what_is_meant_matches() {
        let https = "https://app.example";
        let below = "https://*.example.com";
        for (text, origin, is_it) in [
            (https, "https://app.example", true),
            (https, "https://app.example.evil.com", false),
            (https, "https://evilapp.example", false),
            (https, "https://app.example:443", false),
            (https, "https://app.example:8443", false),
            (https, "http://app.example", false),
            (https, "HTTPS://app.example", false),
            (https, "https://App.example", false),
            (https, "https://app.example/", false),
            (https, "https://app.example.", false),
            (https, "https://a@app.example", false),
            (https, "https://app.example, https://evil.com", false),
            (https, "null", false),
            (https, "", false),
            ("https://app.example:8443", "https://app.example:8443", true),
            ("https://app.example:8443", "https://app.example", false),
            ("https://app.example:8443", "https://app.example:08443", false),
            ("https://app.example:8443", "https://app.example:8443.evil.com", false),
            ("https://app.example:443", "https://app.example", true),
            (below, "https://a.example.com", true),
            (below, "https://a.b.example.com", true),
            (below, "https://example.com", false),
            (below, "https://.example.com", false),
            (below, "https://evilexample.com", false),
            (below, "https://a..example.com", false),
            (below, "https://evil.com/.example.com", false),
            (below, "https://evil.com#.example.com", false),
            (below, "https://evil.com:80.example.com", false),
            (below, "https://evil.com\\.example.com", false),
            (below, "https://a.example.com.evil.com", false),
            (below, "https://a.example.com:1", false),
            ("http://localhost:*", "http://localhost:3000", true),
            ("http://localhost:*", "http://localhost", true),
            ("http://localhost:*", "http://localhost:x", false),
            ("http://localhost:*", "http://localhost:65536", false),
            ("http://[::1]:3000", "http://[::1]:3000", true),
            ("http://[::1]:3000", "http://[::1]3000", false),
            ("null", "null", true),
            ("null", "Null", false),
            ("Capacitor://LocalHost", "capacitor://localhost", true),
        ] {
            assert_eq!(pattern(text).matches(origin), is_it, "{text} and {origin}");
        }
    }

    #[test]
    fn what_is_no_origin_is_refused() {
        for (text, why) in [
            ("app.example", BadOrigin::Scheme),
            ("//app.example", BadOrigin::Scheme),
            ("*://app.example", BadOrigin::Scheme),
            ("https://app.example/", BadOrigin::Path),
            ("https://app.example?x", BadOrigin::Path),
            ("https://a:b@app.example", BadOrigin::Path),
            ("https://", BadOrigin::Host),
            ("https://*", BadOrigin::Host),
            ("https://*app.example", BadOrigin::Host),
            ("https://a.*.example", BadOrigin::Host),
            ("https://b\u{fc}cher.example", BadOrigin::Host),
            ("https://app.example.", BadOrigin::Host),
            ("https://[::1", BadOrigin::Port),
            ("https://*.[::1]", BadOrigin::Port),
            ("https://a:0x50", BadOrigin::Port),
            ("https://a:", BadOrigin::Port),
        ] {
            assert_eq!(text.parse::<OriginPattern>(), Err(why), "{text}");
        }
    }

    #[test]
    fn patterns_are_read_as_they_are_written() {
        for text in
            ["https://a.example", "https://*.a.example:81", "http://localhost:*", "null", "http://[::1]"]
        {
            assert_eq!(pattern(text).to_string(), text);
        }
    }

    #[test]
    fn names_that_break_out_of_a_field_are_not_repeated() {
        assert!(is_list_of_names("content-type,x-a, x-b"));
        for bad in ["", "a,,b", "a b", "a;b", "a\u{e4}", &"x".repeat(NAMES_BYTES_MAX + 1)] {
            assert!(!is_list_of_names(bad), "{bad:?}");
        }
    }
}

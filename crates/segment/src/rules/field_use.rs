//! Which fields of a client's request reach the origin of a cached route, and which of them are a part of the key.
//!
//! What changes the answer is in the key, is named by Vary, or does not go on: else one client chooses the answer that
//! others get ("web cache poisoning"). Applications answer to fields that no Vary names, and every framework has its own.
//! So a field goes on beside the key only if it is on a list here, or on the operator's. All others are a part of it.

use super::RouteRules;
use baton_http::origin::{Claims, is_claim};
use baton_http::{Authority, RequestHead, begins_like_field, is_same_field, without_root};

/// What becomes of a field on the way to the origin of a cached route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldUse {
    /// The field goes on, and tells responses apart only if Vary says so.
    Forward,
    /// The field goes on, and is a part of the key.
    Key,
    /// The field does not go on.
    Withhold,
    /// The cache has its own, or none: conditions and ranges, of which it asks for others than the client, and
    /// Accept-Encoding, in the form that counts for Vary
    /// ([`push_reduced_codings`](super::push_reduced_codings)).
    Rewrite,
}

impl FieldUse {
    /// What becomes of a field. `is_trusted`: the client is a proxy whose words about its own clients are believed.
    pub fn of(rules: &RouteRules, is_trusted: bool, name: &[u8]) -> Self {
        let is = |other: &&str| is_same_field(name, other);
        if REWRITTEN.iter().any(is) {
            Self::Rewrite
        } else if WITHHELD.iter().any(is) {
            Self::Withhold
        } else if is_claim(name) {
            Self::of_claim(is_trusted, name)
        } else if is_forwarded(name) || rules.unkeyed_fields.iter().any(|other| is_same_field(name, other)) {
            Self::Forward
        } else {
            Self::Key
        }
    }

    /// Of `X-Forwarded-For` and its relatives the server writes its own, from which [`KeyedFields`] takes what counts.
    fn of_claim(is_trusted: bool, name: &[u8]) -> Self {
        let is_address =
            ["X-Real-IP", "X-Forwarded-By", "X-Forwarded-Server"].iter().any(|own| is_same_field(name, own));
        match () {
            () if TOLD_ANEW.iter().any(|own| is_same_field(name, own)) || !is_trusted => Self::Withhold,
            () if is_address => Self::Forward,
            () => Self::Key,
        }
    }
}

/// The fields of a request that are a part of its key, in one form.
#[derive(Debug, Default)]
pub struct KeyedFields(Vec<u8>);

impl KeyedFields {
    /// The longest in bytes: what exceeds it goes past the cache.
    pub const BYTES_MAX: usize = 4096;

    /// The fields in the key of a request for `host`. Allocates nothing without any. `None`: they are too long.
    pub fn of(
        rules: &RouteRules,
        is_trusted: bool,
        head: &RequestHead<'_>,
        host: (&str, Option<u16>),
    ) -> Option<Self> {
        let mut text = Vec::new();
        for (name, value) in head.fields() {
            if FieldUse::of(rules, is_trusted, name.as_bytes()) == FieldUse::Key {
                push_line(&mut text, name.as_bytes(), value);
            }
        }
        if let Some(said) = is_trusted.then(|| Claims::of(head)).and_then(|claims| claims.host)
            && Authority::parse(&said).is_none_or(|said| {
                !without_root(said.host).eq_ignore_ascii_case(without_root(host.0)) || said.port != host.1
            })
        {
            push_line(&mut text, b"x-forwarded-host", &said.to_ascii_lowercase());
        }
        (text.len() <= Self::BYTES_MAX).then_some(Self(text))
    }

    /// A line for each, in the order of the request: `name:value`.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

fn push_line(text: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    text.extend(name.iter().map(|byte| if *byte == b'_' { b'-' } else { byte.to_ascii_lowercase() }));
    text.push(b':');
    text.extend_from_slice(value);
    text.push(b'\n');
}

/// Fields that go on beside the key: those by which browsers and clients differ without asking for another response, or
/// for which applications send Vary; of the connection, which go no further; and what names a request or its way.
fn is_forwarded(name: &[u8]) -> bool {
    // Lengths tell most names apart: a browser's fields cost a comparison or two.
    let all: &[&str] = match name.len() {
        2 => &["TE", "B3"],
        3 => &["DNT", "Via", "RTT", "ECT", "DPR"],
        4 => &["Host", "From"],
        5 => &["Width"],
        6 => &["Accept", "Cookie", "Pragma", "Expect", "CF-Ray"],
        7 => &["Referer", "Upgrade", "Trailer", "Warning", "Purpose", "Baggage"],
        8 => &["Priority", "CDN-Loop", "Downlink"],
        9 => &["Save-Data", "X-Varnish"],
        10 => &["Connection", "User-Agent", "Keep-Alive", "Early-Data", "Tracestate", "Request-Id"],
        11 => &["Traceparent", "X-Client-IP", "X-Azure-Ref", "X-Amz-Cf-Id", "CMCD-Object", "CMCD-Status"],
        12 => {
            &["X-Request-Id", "CMCD-Request", "CMCD-Session", "Max-Forwards", "Sentry-Trace", "Content-Type"]
        }
        13 => &["Authorization", "Cache-Control", "Device-Memory", "Uber-Trace-Id"],
        14 => &["Accept-Charset", "True-Client-IP", "Viewport-Width", "HTTP2-Settings"],
        15 => &["Accept-Language", "X-Amzn-Trace-Id"],
        16 => &[
            "Fastly-Client-IP",
            "Proxy-Connection",
            "X-Azure-ClientIP",
            "X-Correlation-Id",
            "CF-Connecting-IP",
            "X-Azure-SocketIP",
        ],
        17 => &["Transfer-Encoding"],
        18 => &["CF-Connecting-IPv6"],
        19 => &["X-Cluster-Client-IP", "Proxy-Authorization"],
        21 => &["X-Cloud-Trace-Context", "X-Playback-Session-Id"],
        25 => &["Upgrade-Insecure-Requests", "CloudFront-Viewer-Address"],
        _ => &[],
    };
    all.iter().any(|own| is_same_field(name, own))
        || BEGINNINGS.iter().any(|own| begins_like_field(name, own))
}

/// What browsers say of themselves, and names of requests.
const BEGINNINGS: [&str; 3] = ["Sec-", "X-B3-", "X-Datadog-"];

const REWRITTEN: [&str; 7] = [
    "Accept-Encoding",
    "If-Match",
    "If-Modified-Since",
    "If-None-Match",
    "If-Range",
    "If-Unmodified-Since",
    "Range",
];

/// What the server says of the client itself, whatever the client says.
const TOLD_ANEW: [&str; 4] = ["Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"];

/// Fields that take the place of host, path or method. A key that has them is not enough: what is asked for by another
/// method may change something, and a purge of the URL would mean other content.
const WITHHELD: [&str; 12] = [
    // The host.
    "X-Host",
    "X-Host-Override",
    "X-Original-Host",
    "X-HTTP-Host-Override",
    "Fastly-Host",
    // The path: IIS, Symfony, Zend.
    "X-Original-URL",
    "X-Original-URI",
    "X-Rewrite-URL",
    // The method: Rails, Laravel, Express.
    "X-HTTP-Method",
    "X-HTTP-Method-Override",
    "X-Method-Override",
    // What Next.js answers with instead of the page.
    "X-Middleware-Subrequest",
];

#[cfg(test)]
mod tests {
    use super::*;
    use baton_http::HeadLimits;

    #[test]
    fn what_is_not_known_is_a_part_of_the_key() {
        let rules = RouteRules { unkeyed_fields: vec!["X-Device".into()], ..RouteRules::default() };
        for (name, expected) in [
            ("X-Forwarded-Host", FieldUse::Withhold),
            ("x_forwarded_HOST", FieldUse::Withhold),
            ("X-Forwarded-Prefix", FieldUse::Withhold),
            ("Forwarded", FieldUse::Withhold),
            ("X-Real-IP", FieldUse::Withhold),
            ("X-Original-URL", FieldUse::Withhold),
            ("X-HTTP-Method-Override", FieldUse::Withhold),
            ("Range", FieldUse::Rewrite),
            ("if_none_match", FieldUse::Rewrite),
            ("Accept-Encoding", FieldUse::Rewrite),
            ("Cookie", FieldUse::Forward),
            ("Accept-Language", FieldUse::Forward),
            ("sec-fetch-mode", FieldUse::Forward),
            ("X-Request-ID", FieldUse::Forward),
            ("x_device", FieldUse::Forward),
            ("RSC", FieldUse::Key),
            ("X-Envoy-Original-Path", FieldUse::Key),
            ("Origin", FieldUse::Key),
            ("X-Requested-With", FieldUse::Key),
            ("", FieldUse::Key),
        ] {
            assert_eq!(FieldUse::of(&rules, false, name.as_bytes()), expected, "{name}");
        }
        for (name, expected) in [
            ("X-Forwarded-For", FieldUse::Withhold),
            ("X-Forwarded-Prefix", FieldUse::Key),
            ("X-Forwarded-Port", FieldUse::Key),
            ("X-Real-IP", FieldUse::Forward),
        ] {
            assert_eq!(FieldUse::of(&rules, true, name.as_bytes()), expected, "{name} of a trusted proxy");
        }
    }

    #[test]
    fn keyed_fields_have_one_form_and_a_bound() {
        let keyed = |is_trusted, fields: &str| {
            let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n");
            let head = RequestHead::parse(text.as_bytes(), &HeadLimits::default()).unwrap();
            let keyed = KeyedFields::of(&RouteRules::default(), is_trusted, &head, ("a", None))?;
            Some(String::from_utf8(keyed.0).unwrap())
        };
        assert_eq!(keyed(false, "Accept: b\r\nX-Forwarded-Host: c").as_deref(), Some(""));
        assert_eq!(keyed(false, "RSC: 1\r\nrsc:  2 ").as_deref(), Some("rsc:1\nrsc:2\n"));
        assert_eq!(keyed(true, "X-Forwarded-Host: A").as_deref(), Some(""));
        assert_eq!(keyed(true, "X-Forwarded-Host: B").as_deref(), Some("x-forwarded-host:b\n"));
        assert_eq!(keyed(true, "Forwarded: for=c;host=\"b:8\"").as_deref(), Some("x-forwarded-host:b:8\n"));
        assert_eq!(keyed(false, &format!("A: {}", "b".repeat(KeyedFields::BYTES_MAX))), None);
    }
}

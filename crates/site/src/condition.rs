//! Conditions on requests: what routes, guards, caches and logs can depend on beside the path.
//!
//! A condition is a list of tests, all of which have to hold. A test is about one part of the request: a field, a cookie, a
//! parameter of the query, the method, the client's address or certificate. It wants one of some values, or none of some others.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

use baton_http::{Method, RequestHead};
use baton_pattern::TextPatterns;

use crate::address_range::AddressSet;

/// A condition on requests.
#[derive(Clone, Debug)]
pub struct Condition {
    tests: Vec<Test>,
}

/// A test of one part of a request.
#[derive(Clone, Debug)]
pub struct Test {
    /// What is looked at.
    pub subject: Subject,
    /// What has to be there.
    pub wanted: Wanted,
    /// As it was written, for explanations.
    pub text: String,
}

/// A part of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The fields of this name.
    Header(String),
    /// The cookies of this name, in any case: many applications look no closer, and a condition may be a guard.
    Cookie(String),
    /// The parameters of this name in the query, in any case, decoded.
    Query(String),
    /// The method.
    Method,
    /// The client's address.
    From,
    /// The client's certificate.
    ClientCertificate,
}

/// What a test wants.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// The part is there, whatever it is.
    Present,
    /// The part is not there.
    Absent,
    /// One of the values matches `any`, and none matches `none`.
    Text {
        /// `None`: whatever is there or not.
        any: Option<TextPatterns>,
        /// `None`: nothing is excluded.
        none: Option<TextPatterns>,
    },
    /// The address is one of `any`, and none of `none`.
    Address {
        /// `None`: every address.
        any: Option<AddressSet>,
        /// Addresses that are excluded.
        none: AddressSet,
    },
}

/// What conditions see of a request.
#[derive(Clone, Copy, Debug)]
pub struct RequestView<'a> {
    /// The head.
    pub head: &'a RequestHead<'a>,
    /// The client's address; `None`: a Unix socket.
    pub address: Option<IpAddr>,
    /// Whether the client has a certificate, which the site's authorities have issued.
    pub has_certificate: bool,
}

impl<'a> RequestView<'a> {
    /// The method as the client has spelled it. An extended CONNECT is the `GET` that asks for the same over HTTP/1 (RFC 8441).
    pub fn method(&self) -> &'a [u8] {
        let head = self.head;
        match head.method == Method::Connect && head.path.starts_with(b"/") {
            true => b"GET",
            false => head.line.split(|byte| *byte == b' ').next().unwrap_or_default(),
        }
    }
}

impl Condition {
    /// A condition: all of these tests.
    pub fn new(tests: Vec<Test>) -> Self {
        Self { tests }
    }

    /// Whether it holds.
    pub fn holds(&self, view: &RequestView<'_>) -> bool {
        self.failed(view).is_none()
    }

    /// The first test that fails; `None`: the condition holds.
    pub fn failed(&self, view: &RequestView<'_>) -> Option<&Test> {
        self.tests.iter().find(|test| !test.holds(view))
    }
}

/// The tests as they were written.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<_> = self.tests.iter().map(|test| test.text.as_str()).collect();
        f.write_str(&texts.join(", "))
    }
}

impl Test {
    fn holds(&self, view: &RequestView<'_>) -> bool {
        let (any, none) = match &self.wanted {
            Wanted::Present => return self.subject.some(view, &mut |_| true),
            Wanted::Absent => return !self.subject.some(view, &mut |_| true),
            Wanted::Address { any, none } => {
                let address = view.address;
                return any.as_ref().is_none_or(|any| any.contains(address)) && !none.contains(address);
            }
            Wanted::Text { any, none } => (any, none),
        };
        let has = |patterns: &TextPatterns| self.subject.some(view, &mut |value| patterns.match_any(value));
        any.as_ref().is_none_or(has) && !none.as_ref().is_some_and(has)
    }
}

impl Subject {
    /// The first of its values in a request.
    pub(crate) fn first(&self, view: &RequestView<'_>) -> Option<Vec<u8>> {
        let mut found = None;
        self.some(view, &mut |value| {
            found = Some(value.to_vec());
            true
        });
        found
    }

    /// Whether one of its values in a request is wanted.
    fn some(&self, view: &RequestView<'_>, wants: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        let head = view.head;
        match self {
            Self::Header(name) => head.fields_of(name).any(wants),
            Self::Cookie(name) => {
                let fields = head.fields_of("Cookie");
                let mut cookies = fields.flat_map(|value| value.split(|byte| *byte == b';'));
                cookies.any(|cookie| {
                    let (own, value) = split_at_sign(cookie.trim_ascii());
                    own.eq_ignore_ascii_case(name.as_bytes()) && wants(value)
                })
            }
            Self::Query(name) => {
                let query = head.query.unwrap_or_default();
                let mut parameters = query.split(|byte| *byte == b'&').filter(|one| !one.is_empty());
                parameters.any(|parameter| {
                    let (own, value) = split_at_sign(parameter);
                    form_decoded(own).eq_ignore_ascii_case(name.as_bytes()) && wants(&form_decoded(value))
                })
            }
            Self::Method => wants(view.method()),
            Self::ClientCertificate => view.has_certificate && wants(b""),
            // It has a set of its own.
            Self::From => false,
        }
    }
}

/// The name and the value of a cookie or a parameter; without a `=`, the value is empty.
fn split_at_sign(pair: &[u8]) -> (&[u8], &[u8]) {
    match pair.iter().position(|byte| *byte == b'=') {
        Some(at) => (&pair[..at], &pair[at + 1..]),
        None => (pair, b""),
    }
}

/// A part of a query as forms encode it: no spelling leads around a condition.
fn form_decoded(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.iter().any(|byte| matches!(byte, b'%' | b'+')) {
        return Cow::Borrowed(text);
    }
    let digit = |at: usize| text.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let (mut decoded, mut at) = (Vec::with_capacity(text.len()), 0);
    while let Some(byte) = text.get(at) {
        let (plain, len) = match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => ((high * 16 + low) as u8, 3),
            (b'+', ..) => (b' ', 1),
            (byte, ..) => (*byte, 1),
        };
        decoded.push(plain);
        at += len;
    }
    Cow::Owned(decoded)
}

#[cfg(test)]
mod tests {
    use baton_http::HeadLimits;
    use baton_pattern::GlobExtent;

    use super::*;

    fn text(any: &[&str], none: &[&str]) -> Wanted {
        let compile = |texts: &[&str]| {
            (!texts.is_empty()).then(|| TextPatterns::compile(texts, GlobExtent::Whole).expect("patterns"))
        };
        Wanted::Text { any: compile(any), none: compile(none) }
    }

    fn holds(subject: Subject, wanted: Wanted, line: &str, fields: &str) -> bool {
        let text = format!("{line} HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
        let head = RequestHead::parse(text.as_bytes(), &HeadLimits::default()).unwrap();
        let condition = Condition::new(vec![Test { subject, wanted, text: String::new() }]);
        condition.holds(&RequestView {
            head: &head,
            address: Some("192.0.2.1".parse().unwrap()),
            has_certificate: false,
        })
    }

    #[test]
    fn fields_are_compared_by_name_and_value() {
        let beta = || Subject::Header("X-Beta".into());
        for (wanted, fields, expected) in [
            (Wanted::Present, "x-beta: \r\n", true),
            (Wanted::Present, "X-Alpha: 1\r\n", false),
            (Wanted::Absent, "", true),
            (text(&["1", "y*"], &[]), "X-Beta: no\r\nX-Beta: yes\r\n", true),
            (text(&["1"], &[]), "X-Beta: 11\r\n", false),
            (text(&["1"], &[]), "", false),
            (text(&[], &["1"]), "", true),
            (text(&[], &["1"]), "X-Beta: 2\r\nX-Beta: 1\r\n", false),
            (text(&["*"], &["n*"]), "X-Beta: no\r\n", false),
        ] {
            assert_eq!(holds(beta(), wanted.clone(), "GET /", fields), expected, "{wanted:?} {fields}");
        }
    }

    #[test]
    fn cookies_and_parameters_have_names() {
        let cookie = || Subject::Cookie("id".into());
        assert!(holds(cookie(), text(&["7"], &[]), "GET /", "Cookie: a=1; id=7\r\n"));
        assert!(holds(cookie(), text(&["7"], &[]), "GET /", "Cookie: ID=7\r\n"));
        assert!(!holds(cookie(), text(&["7"], &[]), "GET /", "Cookie: xid=7; idx=7\r\n"));
        let debug = || Subject::Query("debug".into());
        for (target, expected) in [
            ("/?debug=1", true),
            ("/?a&debug=1", true),
            ("/?%64ebug=%31", true),
            ("/?DeBug=1", true),
            ("/?debug", false),
            ("/?debug=11", false),
            ("/debug=1", false),
        ] {
            assert_eq!(holds(debug(), text(&["1"], &[]), &format!("GET {target}"), ""), expected, "{target}");
        }
        assert!(holds(debug(), Wanted::Present, "GET /?debug", ""));
        assert!(holds(debug(), text(&["a b"], &[]), "GET /?debug=a+b", ""));
    }

    #[test]
    fn methods_and_addresses_are_tested() {
        assert!(holds(Subject::Method, text(&["POST"], &[]), "POST /", "Content-Length: 0\r\n"));
        assert!(!holds(Subject::Method, text(&[], &["POST"]), "POST /", "Content-Length: 0\r\n"));
        let set = |text: &str| AddressSet {
            ranges: crate::address_range::OuterRanges::from_iter([text.parse().unwrap()]),
            has_local: false,
        };
        let from = |any: Option<&str>, none: Option<&str>| Wanted::Address {
            any: any.map(set),
            none: none.map(set).unwrap_or_default(),
        };
        assert!(holds(Subject::From, from(Some("192.0.2.0/24"), None), "GET /", ""));
        assert!(!holds(Subject::From, from(Some("192.0.2.0/24"), Some("192.0.2.1")), "GET /", ""));
        assert!(!holds(Subject::From, from(Some("10.0.0.0/8"), None), "GET /", ""));
        assert!(holds(Subject::From, from(None, Some("10.0.0.0/8")), "GET /", ""));
    }
}

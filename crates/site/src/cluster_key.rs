//! The key of a route to the cluster: requests with the same key go to the same node, while loads allow it.

use std::borrow::Cow;
use std::fmt;

use baton_http::{RequestHead, is_token_byte};
use baton_upstream::ChoiceKey;

use crate::condition::{RequestView, Subject};
use crate::json_pointer::JsonPointer;

/// The part of a request that its node is chosen by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ClusterKey {
    /// The path.
    #[default]
    Path,
    /// The path with its query.
    Query,
    /// The first field, or the first cookie, of a name.
    Part(Subject),
    /// So many bytes of the body, or all of a shorter one.
    BodyPrefix(usize),
    /// A value in a body of JSON.
    Json(JsonPointer),
}

/// Bytes of a body that are read before a node is chosen, at most; a value of JSON that does not end within them is not found.
/// They are held in memory for each such request.
pub const KEY_BODY_BYTES_MAX: usize = 64 * 1024;

impl ClusterKey {
    /// The key as it is written in the configuration: what [`Display`](fmt::Display) shows.
    ///
    /// # Errors
    /// What a key has to look like.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (kind, argument) = text.split_once(':').map_or((text, None), |(kind, rest)| (kind, Some(rest)));
        let name = |what: &str| match argument {
            Some(name) if !name.is_empty() && name.bytes().all(is_token_byte) => Ok(name.to_owned()),
            _ => Err(format!("expected `{kind}:NAME`, with the name of a {what}")),
        };
        match (kind, argument) {
            ("path", None) => Ok(Self::Path),
            ("query", None) => Ok(Self::Query),
            ("header", _) => name("field").map(Subject::Header).map(Self::Part),
            ("cookie", _) => name("cookie").map(Subject::Cookie).map(Self::Part),
            ("body-prefix", _) => match argument.and_then(|bytes| bytes.parse().ok()) {
                Some(bytes @ 1..=KEY_BODY_BYTES_MAX) => Ok(Self::BodyPrefix(bytes)),
                _ => Err(format!("expected `body-prefix:BYTES`, 1 to {KEY_BODY_BYTES_MAX}")),
            },
            ("json", _) => match argument.and_then(JsonPointer::parse) {
                Some(pointer) => Ok(Self::Json(pointer)),
                None => {
                    Err("expected `json:/NAME`, a pointer as in RFC 6901: `json:/messages/0/content`".into())
                }
            },
            _ => Err(format!("expected {}", Self::FORMS)),
        }
    }

    /// The forms, for errors and references.
    pub const FORMS: &str =
        "\"path\", \"query\", \"header:NAME\", \"cookie:NAME\", \"body-prefix:BYTES\" or \"json:/POINTER\"";

    /// Bytes of a body, or all of a shorter one, that have to be there before a node is chosen; 0: none.
    pub fn body_bytes(&self) -> usize {
        match self {
            Self::BodyPrefix(bytes) => *bytes,
            Self::Json(_) => KEY_BODY_BYTES_MAX,
            _ => 0,
        }
    }

    /// The key of a request. `body`: its first [`body_bytes`](Self::body_bytes). `None`: it has none, or an empty one.
    pub fn of<'a>(&self, head: &'a RequestHead<'_>, body: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        let key = match self {
            Self::Path => Cow::Borrowed(head.path),
            Self::Query => match head.query {
                None => Cow::Borrowed(head.path),
                Some(query) => Cow::Owned([head.path, b"?", query].concat()),
            },
            Self::Part(subject) => {
                Cow::Owned(subject.first(&RequestView { head, address: None, has_certificate: false })?)
            }
            Self::BodyPrefix(bytes) => Cow::Borrowed(&body[..body.len().min(*bytes)]),
            Self::Json(pointer) => Cow::Owned(pointer.find(&body[..body.len().min(KEY_BODY_BYTES_MAX)])?),
        };
        Some(key).filter(|key| !key.is_empty())
    }

    /// By what a node is chosen for a request, whose path takes the place of a key that is missing.
    pub fn choice(&self, head: &RequestHead<'_>, body: &[u8]) -> ChoiceKey {
        match self {
            Self::Path => ChoiceKey::Path,
            _ => self.of(head, body).map_or(ChoiceKey::Missing, |key| ChoiceKey::own(&key)),
        }
    }
}

impl fmt::Display for ClusterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Query => f.write_str("query"),
            Self::Part(Subject::Header(name)) => write!(f, "header:{name}"),
            Self::Part(Subject::Cookie(name)) => write!(f, "cookie:{name}"),
            Self::BodyPrefix(bytes) => write!(f, "body-prefix:{bytes}"),
            Self::Json(pointer) => write!(f, "json:{pointer}"),
            Self::Path | Self::Part(_) => f.write_str("path"),
        }
    }
}

#[cfg(test)]
mod tests {
    use baton_http::HeadLimits;

    use super::*;

    #[test]
    fn each_key_is_a_part_of_the_request() {
        let text =
            b"POST /a?b=c HTTP/1.1\r\nHost: h\r\nX-Tenant: t1\r\nX-Tenant: t2\r\nCookie: a=1; sid=s7\r\n\r\n";
        let head = RequestHead::parse(text, &HeadLimits::default()).unwrap();
        let body = br#"{"model":"m","messages":[{"content":"You are"}]}"#;
        for (key, expected) in [
            ("path", Some("/a")),
            ("query", Some("/a?b=c")),
            ("header:x-tenant", Some("t1")),
            ("header:x-other", None),
            ("cookie:sid", Some("s7")),
            ("cookie:none", None),
            ("body-prefix:8", Some("{\"model\"")),
            ("json:/messages/0/content", Some("You are")),
            ("json:/messages/1/content", None),
        ] {
            let parsed = ClusterKey::parse(key).unwrap();
            assert_eq!(parsed.to_string(), key);
            let found = parsed.of(&head, body);
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{key}");
            let choice = match (key, expected) {
                ("path", _) => ChoiceKey::Path,
                (_, Some(found)) => ChoiceKey::own(found.as_bytes()),
                _ => ChoiceKey::Missing,
            };
            assert_eq!(parsed.choice(&head, body), choice, "{key}");
        }
        let all = ClusterKey::parse("body-prefix:65536").unwrap();
        assert_eq!((all.of(&head, body).as_deref(), all.of(&head, b"")), (Some(&body[..]), None));
    }

    #[test]
    fn what_is_no_key_is_told_what_it_lacks() {
        for (text, words) in [
            ("header", "the name of a field"),
            ("cookie:a b", "the name of a cookie"),
            ("body-prefix:0", "1 to 65536"),
            ("body-prefix:65537", "1 to 65536"),
            ("json:model", "RFC 6901"),
            ("path:x", "\"path\", \"query\""),
        ] {
            let told = ClusterKey::parse(text).unwrap_err();
            assert!(told.contains(words), "{text}: {told}");
        }
    }
}

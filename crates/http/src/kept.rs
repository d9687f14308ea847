//! The head of a request that outlives the buffer in which it arrived.

use crate::fields::{begins_like_field, field_lines, is_same_field};
use crate::names::Names;
use crate::reply::push_line;
use crate::request::HeadParts;
use crate::{BodyFraming, Conditions, HeadLimits, Method, Refusal, RequestHead, Version};

/// A head with bytes of its own. It was parsed once: [`get`](Self::get) finds the parts by their offsets.
#[derive(Clone, Debug)]
pub struct KeptHead {
    bytes: Box<[u8]>,
    method: Method,
    version: Version,
    line: Span,
    target: Span,
    path: Span,
    query: Option<Span>,
    host: Option<Span>,
    port: Option<u16>,
    keep_alive: bool,
    framing: BodyFraming,
    expects_continue: bool,
    range: Option<Span>,
    /// If-Match, If-None-Match, If-Modified-Since, If-Unmodified-Since, If-Range, and all lines if a list goes on.
    conditions: [Option<Span>; 6],
    accept: Option<Span>,
    accept_encoding: Option<Span>,
    referer: Option<Span>,
    user_agent: Option<Span>,
    section: Span,
    names: Names,
    keeps_underscores: bool,
}

impl RequestHead<'_> {
    /// The head with bytes of its own.
    pub fn keep(&self) -> KeptHead {
        KeptHead::of(self)
    }

    /// The head with these fields in the place of all others [by their names](is_same_field).
    /// It is without those in `dropped`.
    ///
    /// # Errors
    /// The head exceeds the limits.
    pub fn with_fields(
        &self,
        fields: &[(&str, &[u8])],
        dropped: &[&str],
        limits: &HeadLimits,
    ) -> Result<KeptHead, Refusal> {
        let is_replaced = |name: &str| {
            fields.iter().any(|(own, _)| is_same_field(name, own))
                || dropped.iter().any(|own| is_same_field(name, own))
        };
        let added = fields.iter().map(|(name, value)| name.len() + value.len() + ": \r\n".len());
        let len = self.line.len() + "\r\n".len() + self.section.len() + added.sum::<usize>();
        let mut bytes = Vec::with_capacity(len);
        bytes.extend_from_slice(self.line);
        bytes.extend_from_slice(b"\r\n");
        let section_at = bytes.len();
        let kept = self.fields().filter(|(name, _)| !is_replaced(name));
        for (name, value) in kept.chain(fields.iter().copied()) {
            push_line(&mut bytes, name.as_bytes(), value);
        }
        let (line, section) = bytes.split_at(section_at);
        let parts = HeadParts {
            version: self.version,
            line: &line[..line.len() - "\r\n".len()],
            method: self.line.split(|byte| *byte == b' ').next().unwrap_or_default(),
            target: self.target,
            section,
            unframed: self.framing,
        };
        let fields = field_lines(section).map(|(name, value)| (name.as_bytes(), value));
        Ok(KeptHead::of(&RequestHead::judge(&parts, fields, limits)?))
    }
}

/// Where in the bytes a part stands.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: u32,
    end: u32,
}

impl KeptHead {
    fn of(head: &RequestHead<'_>) -> Self {
        let mut bytes = Vec::with_capacity(head.line.len() + head.section.len() + "\r\n".len());
        bytes.extend_from_slice(head.line);
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(head.section);
        let (from, len) = (head.line.as_ptr() as usize, bytes.len());
        // What does not stand in the head, such as the path of a target that has none, is put behind it.
        let mut span = |part: &[u8]| {
            let start = (part.as_ptr() as usize).wrapping_sub(from);
            let start = if start <= len && part.len() <= len - start {
                start
            } else {
                bytes.extend_from_slice(part);
                bytes.len() - part.len()
            };
            Span { start: start as u32, end: (start + part.len()) as u32 }
        };
        Self {
            method: head.method,
            version: head.version,
            line: span(head.line),
            target: span(head.target),
            path: span(head.path),
            query: head.query.map(&mut span),
            host: head.host.map(str::as_bytes).map(&mut span),
            port: head.port,
            keep_alive: head.keep_alive,
            framing: head.framing,
            expects_continue: head.expects_continue,
            range: head.range.map(&mut span),
            conditions: head.conditions.parts().map(|part| part.map(&mut span)),
            accept: head.accept.map(&mut span),
            accept_encoding: head.accept_encoding.map(&mut span),
            referer: head.referer.map(&mut span),
            user_agent: head.user_agent.map(&mut span),
            section: span(head.section),
            names: head.names,
            keeps_underscores: head.keeps_underscores,
            bytes: bytes.into(),
        }
    }

    /// The head.
    pub fn get(&self) -> RequestHead<'_> {
        let at = |span: Span| &self.bytes[span.start as usize..span.end as usize];
        RequestHead {
            method: self.method,
            version: self.version,
            line: at(self.line),
            target: at(self.target),
            path: at(self.path),
            query: self.query.map(at),
            host: self.host.and_then(|host| std::str::from_utf8(at(host)).ok()),
            port: self.port,
            keep_alive: self.keep_alive,
            framing: self.framing,
            expects_continue: self.expects_continue,
            range: self.range.map(at),
            conditions: Conditions::of_parts(self.conditions.map(|part| part.map(at))),
            accept: self.accept.map(at),
            accept_encoding: self.accept_encoding.map(at),
            referer: self.referer.map(at),
            user_agent: self.user_agent.map(at),
            section: at(self.section),
            names: self.names,
            keeps_underscores: self.keeps_underscores,
        }
    }

    /// Appends the head as it came, with the blank line behind it.
    pub fn push_text(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes[..self.section.end as usize]);
        out.extend_from_slice(b"\r\n");
    }

    /// The head of a request by the same client for another target of the same host, without a body or conditions: what
    /// a local redirect asks for (RFC 3875 section 6.2.2).
    ///
    /// # Errors
    /// There can be no such target.
    pub fn redirected(&self, target: &[u8], limits: &HeadLimits) -> Result<Self, Refusal> {
        let method = if self.method == Method::Head { "HEAD" } else { "GET" };
        self.rewritten(method, target, |name| !belongs_to_the_first(name), &[], limits)
    }

    /// The head of a request without a body, with this method and target, those fields that `keeps` accepts, and `more`.
    ///
    /// # Errors
    /// There can be no such target, or the head exceeds the limits.
    pub fn rewritten(
        &self,
        method: &str,
        target: &[u8],
        keeps: impl Fn(&str) -> bool,
        more: &[(&str, &[u8])],
        limits: &HeadLimits,
    ) -> Result<Self, Refusal> {
        if target.is_empty() || !target.iter().all(u8::is_ascii_graphic) {
            return Err(Refusal::TargetBytes);
        }
        let method = method.as_bytes();
        let mut bytes = [method, b" ", target, b" ", self.version.as_str().as_bytes(), b"\r\n"].concat();
        let section_at = bytes.len();
        let head = self.get();
        let kept = head.fields().filter(|(name, _)| keeps(name));
        for (name, value) in kept.chain(more.iter().copied()) {
            push_line(&mut bytes, name.as_bytes(), value);
        }
        let section = &bytes[section_at..];
        let parts = HeadParts {
            version: self.version,
            line: &bytes[..section_at - "\r\n".len()],
            method,
            target,
            section,
            unframed: BodyFraming::None,
        };
        let fields = field_lines(section).map(|(name, value)| (name.as_bytes(), value));
        Ok(Self::of(&RequestHead::judge(&parts, fields, limits)?))
    }
}

/// Whether a field is about the body or the state of what was asked for first.
fn belongs_to_the_first(name: &str) -> bool {
    OF_THE_FIRST.iter().any(|other| is_same_field(name, other)) || begins_like_field(name.as_bytes(), "If-")
}

const OF_THE_FIRST: [&str; 6] =
    ["Content-Length", "Content-Type", "Transfer-Encoding", "Expect", "Range", "Connection"];

#[cfg(test)]
mod tests {
    use super::*;

    /// Every part is the same afterwards, also those that stand nowhere in the head.
    #[test]
    fn a_kept_head_says_what_was_parsed() {
        for text in [
            "GET /a?b HTTP/1.1\r\nHost: h:1\r\nAccept: c\r\nAccept-Encoding: d\r\nReferer: e\r\nUser-Agent: f\r\n\
             Range: bytes=0-1\r\nIf-Match: \"1\"\r\nIf-None-Match: \"2\"\r\nIf-None-Match: \"3\"\r\nIf-Range: \"4\"\r\n\
             If-Modified-Since: g\r\nIf-Unmodified-Since: i\r\n\r\n",
            "\r\nHEAD http://host HTTP/1.1\r\nHost: other\r\nIf-Range: a\r\nIf-Range: b\r\n\r\n",
            "OPTIONS http://host HTTP/1.1\r\nHost: other\r\n\r\n",
            "CONNECT host:1 HTTP/1.1\r\nHost:\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\nConnection: close\r\n\r\n",
            "GET / HTTP/1.0\r\n\r\n",
        ] {
            let head = RequestHead::parse(text.as_bytes(), &HeadLimits::default()).unwrap();
            let kept = head.keep();
            assert_eq!(format!("{:?}", kept.get()), format!("{head:?}"));
            assert_eq!(format!("{:?}", kept.get().keep().get()), format!("{head:?}"));
            let mut again = Vec::new();
            kept.push_text(&mut again);
            assert_eq!(again, text.trim_start().as_bytes());
        }
    }

    /// Fields are replaced however their names are written; everything else stays, the body's framing too.
    #[test]
    fn fields_take_the_place_of_others() {
        let text = "POST /a?b HTTP/1.1\r\nHost: h:1\r\nx-ID: 1\r\nX_Id: 2\r\nCookie: c\r\nContent-Length: 3\r\n\
                    Trace: t\r\n\r\n";
        let limits = HeadLimits::default();
        let head = RequestHead::parse(text.as_bytes(), &limits).unwrap();
        let kept = head.with_fields(&[("X-Id", b"own")], &["trace"], &limits).unwrap();
        let expected =
            "POST /a?b HTTP/1.1\r\nHost: h:1\r\nCookie: c\r\nContent-Length: 3\r\nX-Id: own\r\n\r\n";
        let expected = RequestHead::parse(expected.as_bytes(), &limits).unwrap();
        assert_eq!(format!("{:?}", kept.get()), format!("{expected:?}"));
    }

    #[test]
    fn a_redirect_keeps_the_client_and_drops_the_body() {
        let text = "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nIf-Match: \"1\"\r\nCookie: c\r\n\
                    Range: bytes=0-1\r\n\r\n";
        let limits = HeadLimits::default();
        let kept = RequestHead::parse(text.as_bytes(), &limits).unwrap().keep();
        let redirected = kept.redirected(b"/b?c", &limits).unwrap();
        let head = redirected.get();
        assert_eq!((head.method, head.path, head.query), (Method::Get, &b"/b"[..], Some(&b"c"[..])));
        assert_eq!((head.host, head.framing), (Some("h"), BodyFraming::None));
        assert_eq!(head.fields().collect::<Vec<_>>(), [("Host", &b"h"[..]), ("Cookie", b"c")]);
        assert!(kept.redirected(b"/a b", &limits).is_err());
        assert!(kept.redirected(&[b'/'; 10_000], &limits).is_err());
    }
}

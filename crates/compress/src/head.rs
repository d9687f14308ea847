//! What the head of a response says of its coding, and what it becomes with one.

use baton_http::origin::ResponseHead;
use baton_http::response::Codable;
use baton_http::{Method, RequestHead};

use crate::Rules;

/// Whether the response to a request is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Never, whatever the client takes.
    Never,
    /// For some clients: the head says `Vary`. For this one it is not.
    NotHere,
    /// The response is coded.
    Coded(baton_http::Coding),
}

/// Judges the response to a request. `body_len`: the bytes that follow the head, if that is known.
pub fn judge(
    rules: &Rules,
    request: &RequestHead<'_>,
    response: &ResponseHead,
    body_len: Option<u64>,
) -> Verdict {
    let values = |name: &'static str| response.values(name);
    match Codable::of(response.status().code(), values, |media_type| rules.covers(media_type)) {
        Codable::Represents => return Verdict::NotHere,
        Codable::Covered if request.method != Method::Connect => {}
        Codable::Covered | Codable::Never => return Verdict::Never,
    }
    // Behind the head of a response to HEAD nothing follows, however long the body is.
    let follows = body_len.filter(|_| request.method != Method::Head);
    let body_len = response.content_length().or(follows);
    if request.range.is_some() || body_len.is_some_and(|bytes| bytes < rules.min_bytes) {
        return Verdict::NotHere;
    }
    rules.choose(request.accept_encoding).map_or(Verdict::NotHere, Verdict::Coded)
}

/// Makes a head that of the same response in a coding: another representation, of unknown length.
pub fn code(head: &mut ResponseHead, coding: baton_http::Coding) {
    forget_bytes(head);
    head.add("Content-Encoding", coding.token().as_bytes());
}

/// Takes from a head what is about bytes that are sent in another form: digests, ranges, length, a strong validator.
pub fn forget_bytes(head: &mut ResponseHead) {
    head.set_content_length(None);
    const OF_BYTES: [&str; 4] = ["Accept-Ranges", "Content-MD5", "Content-Digest", "Digest"];
    head.retain(|name, _| !OF_BYTES.iter().any(|of_bytes| name.eq_ignore_ascii_case(of_bytes.as_bytes())));
    head.replace_values(|name, value| {
        let is_strong = name.eq_ignore_ascii_case(b"ETag") && value.starts_with(b"\"");
        is_strong.then(|| [b"W/", value].concat())
    });
}

#[cfg(test)]
mod tests {
    use baton_http::{Coding, HeadLimits, Status};

    use super::*;

    fn response(status: u16, lines: &str, content_length: Option<u64>) -> ResponseHead {
        ResponseHead::of_lines(lines.into(), Status::new(status), "", content_length, |_| true)
    }

    fn verdict(method: &str, fields: &str, response: &ResponseHead, body_len: Option<u64>) -> Verdict {
        let text = format!("{method} / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let head = RequestHead::parse(text.as_bytes(), &HeadLimits::default()).expect("a request");
        judge(&Rules::default(), &head, response, body_len)
    }

    const GZIP: &str = "Accept-Encoding: gzip\r\n";
    const HTML: &str = "Content-Type: text/html\r\n";

    #[test]
    fn type_length_status_and_range_decide() {
        let coded = Verdict::Coded(Coding::Gzip);
        for (method, fields, status, lines, declared, follows, expected) in [
            ("GET", GZIP, 200, HTML, None, None, coded),
            ("GET", GZIP, 404, HTML, Some(1024), None, coded),
            ("HEAD", GZIP, 200, HTML, None, Some(0), coded),
            ("POST", GZIP, 200, HTML, None, Some(5000), coded),
            ("GET", "", 200, HTML, None, None, Verdict::NotHere),
            ("GET", GZIP, 200, HTML, Some(1023), None, Verdict::NotHere),
            ("GET", GZIP, 200, HTML, None, Some(1023), Verdict::NotHere),
            ("GET", "Accept-Encoding: gzip\r\nRange: bytes=0-1\r\n", 200, HTML, None, None, Verdict::NotHere),
            ("GET", GZIP, 304, "", None, None, Verdict::NotHere),
            ("GET", GZIP, 304, HTML, None, None, Verdict::Never),
            ("GET", GZIP, 204, HTML, None, None, Verdict::Never),
            ("GET", GZIP, 206, HTML, None, None, Verdict::Never),
            ("GET", GZIP, 200, "", None, None, Verdict::Never),
            ("GET", GZIP, 200, "Content-Type: image/png\r\n", None, None, Verdict::Never),
            (
                "GET",
                GZIP,
                200,
                "Content-Type: text/css\r\nContent-Encoding: br\r\n",
                None,
                None,
                Verdict::Never,
            ),
            (
                "GET",
                GZIP,
                200,
                "Content-Type: text/css\r\ncache-control: a, no-TRANSFORM\r\n",
                None,
                None,
                Verdict::Never,
            ),
        ] {
            let response = response(status, lines, declared);
            assert_eq!(
                verdict(method, fields, &response, follows),
                expected,
                "{method} {fields} {status} {lines}"
            );
        }
    }

    #[test]
    fn a_coded_response_is_another_representation() {
        let lines = "ETag: \"a\"\r\nAccept-Ranges: bytes\r\nContent-Digest: x\r\nContent-Type: text/html\r\n";
        let mut head = response(200, lines, Some(5));
        code(&mut head, Coding::Brotli);
        assert_eq!(head.content_length(), None);
        assert_eq!(head.field("etag"), Some(&b"W/\"a\""[..]));
        assert_eq!(head.field("content-encoding"), Some(&b"br"[..]));
        assert_eq!(head.fields().count(), 3);
    }
}

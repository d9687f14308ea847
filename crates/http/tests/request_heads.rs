//! Goal: every rule of the head has an input that only that rule refuses, and its neighbour that passes.
//! Method: tables of whole heads as bytes; then any well-formed head, fed in any pieces, against the parts
//! that it was made of.

use baton_http::{
    BodyFraming, FIELDS_CAP, HeadLimits, HeadScanner, Method, Refusal, RequestHead, Status, Version, as_uri,
};
use proptest::prelude::*;

fn parse(head: &[u8]) -> Result<RequestHead<'_>, Refusal> {
    RequestHead::parse(head, &HeadLimits::default())
}

/// A GET of HTTP/1.1 with a Host and these complete field lines.
fn parse_with(lines: &str) -> Result<BodyFraming, Refusal> {
    let text = format!("GET / HTTP/1.1\r\nHost: x\r\n{lines}\r\n");
    parse(text.as_bytes()).map(|head| head.framing)
}

#[track_caller]
fn assert_refused(head: impl AsRef<[u8]>, refusal: Refusal) {
    let head = head.as_ref();
    assert_eq!(parse(head).err(), Some(refusal), "{:?}", String::from_utf8_lossy(head));
}

#[test]
fn a_request_of_a_browser_is_taken_apart() {
    let text = b"\r\nGET /a%20b?c=d HTTP/1.1\r\nHost: Example.org:8080\r\nuser-agent: Mozilla/5.0 (\xe9)\r\n\
        Accept: text/html\r\nACCEPT-ENCODING: \t gzip, br \t \r\nReferer:http://example.org/\r\nX-Empty:\r\n\
        Range: bytes=0-1\r\nIf-None-Match: \"a\"\r\nConnection: keep-alive\r\n\r\n";
    let head = parse(text).unwrap();
    assert_eq!(head.method, Method::Get);
    assert_eq!(head.version, Version::Http11);
    assert_eq!(head.line, b"GET /a%20b?c=d HTTP/1.1");
    assert_eq!(head.target, b"/a%20b?c=d");
    assert_eq!(head.path, b"/a%20b");
    assert_eq!(head.query, Some(&b"c=d"[..]));
    assert_eq!((head.host, head.port), (Some("Example.org"), Some(8080)));
    assert!(head.keep_alive);
    assert_eq!(head.framing, BodyFraming::None);
    assert!(!head.expects_continue);
    assert_eq!(head.range, Some(&b"bytes=0-1"[..]));
    assert_eq!(head.conditions.if_none_match, Some(&b"\"a\""[..]));
    assert!(!head.conditions.is_empty());
    assert_eq!(head.accept, Some(&b"text/html"[..]));
    assert_eq!(head.accept_encoding, Some(&b"gzip, br"[..]));
    assert_eq!(head.referer, Some(&b"http://example.org/"[..]));
    assert_eq!(head.user_agent, Some(&b"Mozilla/5.0 (\xe9)"[..]));
    assert_eq!(head.field("x-empty"), Some(&b""[..]));
    assert_eq!(head.field("x-missing"), None);
    let names: Vec<_> = head.fields().map(|(name, _)| name).collect();
    let expected = [
        "Host",
        "user-agent",
        "Accept",
        "ACCEPT-ENCODING",
        "Referer",
        "X-Empty",
        "Range",
        "If-None-Match",
        "Connection",
    ];
    assert_eq!(names, expected);
}

#[test]
fn methods_are_tokens_and_case_matters() {
    for (token, method) in [
        ("GET", Method::Get),
        ("HEAD", Method::Head),
        ("OPTIONS", Method::Options),
        ("POST", Method::Post),
        ("PUT", Method::Put),
        ("DELETE", Method::Delete),
        ("PATCH", Method::Patch),
        ("TRACE", Method::Trace),
        ("get", Method::Other),
        ("PROPFIND", Method::Other),
        ("M-SEARCH", Method::Other),
        ("!#$%&'*+-.^_`|~09", Method::Other),
    ] {
        let text = format!("{token} / HTTP/1.0\r\n\r\n");
        let head = parse(text.as_bytes()).unwrap();
        assert_eq!(head.method, method, "{token}");
        assert!(method == Method::Other || method.as_str() == token);
    }
    let tunnel = parse(b"CONNECT example.org:443 HTTP/1.1\r\nHost: other\r\n\r\n").unwrap();
    assert_eq!((tunnel.method, tunnel.path, tunnel.host), (Method::Connect, &b""[..], Some("example.org")));
    for token in ["G@T", "G,T", "\"GET\"", "GÉT", "GET:", "", "\x01", "\x7fGET"] {
        assert_refused(format!("{token} / HTTP/1.1\r\nHost: x\r\n\r\n"), Refusal::Method);
    }
}

#[test]
fn the_request_line_is_three_words_with_one_space_between() {
    for line in [
        "GET",
        "GET /",
        "GET / ",
        "GET  / HTTP/1.1",
        "GET /  HTTP/1.1",
        "GET / HTTP/1.1 ",
        "GET / x HTTP/1.1",
        "GET / http/1.1",
        "GET / HTTP/11",
        "GET / HTTP/1",
        "GET / HTTP/1.",
        "GET / HTTP/1.1.1",
        "GET / HTTP /1.1",
        "GET / XTTP/1.1",
        "GET / HTTP/x.y",
    ] {
        assert_refused(format!("{line}\r\nHost: x\r\n\r\n"), Refusal::RequestLine);
    }
    for line in ["GET\t/\tHTTP/1.1", "\tGET / HTTP/1.1", " GET / HTTP/1.1"] {
        assert_refused(format!("{line}\r\nHost: x\r\n\r\n"), Refusal::Method);
    }
}

#[test]
fn other_major_versions_are_refused() {
    for version in ["HTTP/2.0", "HTTP/0.9", "HTTP/3.1", "HTTP/0.0"] {
        assert_refused(format!("GET / {version}\r\nHost: x\r\n\r\n"), Refusal::Version);
    }
    assert_refused("PRI * HTTP/2.0\r\n\r\n", Refusal::Version);
    assert_eq!(Refusal::Version.status(), Status::HTTP_VERSION_NOT_SUPPORTED);
}

/// RFC 9110 section 2.5: a server of HTTP/1.1 treats a higher minor version as 1.1.
#[test]
fn a_higher_minor_version_is_1_1() {
    for version in 2..=9 {
        let text = format!("\r\nPOST /a?b HTTP/1.{version}\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
        let head = parse(text.as_bytes()).unwrap();
        assert_eq!((head.version, head.method, head.path), (Version::Http11, Method::Post, &b"/a"[..]));
        assert_eq!((head.framing, head.keep_alive, head.host), (BodyFraming::Chunked, true, Some("x")));
        assert_eq!(head.line, format!("POST /a?b HTTP/1.{version}").as_bytes());
    }
    for (head, refusal) in [
        ("GET / HTTP/1.2\r\n\r\n", Refusal::HostMissing),
        ("GET / HTTP/1.2\r\nHost: x\r\nHost: x\r\n\r\n", Refusal::HostRepeated),
        ("GET / HTTP/1.2\nHost: x\r\n\r\n", Refusal::BareLineFeed),
        ("\r\r\nGET / HTTP/1.2\r\nHost: x\r\n\r\n", Refusal::BareCarriageReturn),
        ("GET / HTTP/1.2\r\nHost: x\r\n\r\nX", Refusal::HeadIncomplete),
        ("GET / HTTP/1.2\r\nHost: x\r\nX : y\r\n\r\n", Refusal::FieldName),
        ("GET / HTTP/1.10\r\nHost: x\r\n\r\n", Refusal::RequestLine),
        ("GET /  HTTP/1.2\r\nHost: x\r\n\r\n", Refusal::RequestLine),
        (
            "POST / HTTP/1.2\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            Refusal::LengthAndTransferEncoding,
        ),
    ] {
        assert_refused(head, refusal);
    }
    let limits = HeadLimits { fields_max: 1, target_bytes_max: 3, ..HeadLimits::default() };
    let refusal = |text: &str| RequestHead::parse(text.as_bytes(), &limits).err();
    assert_eq!(refusal("GET /abc HTTP/1.2\r\nHost: x\r\n\r\n"), Some(Refusal::TargetTooLong));
    assert_eq!(refusal("GET /a HTTP/1.2\r\nHost: x\r\nX: y\r\n\r\n"), Some(Refusal::FieldsTooMany));
}

/// Of these, `as_uri` makes the percent-encoding, be they UTF-8 or not.
#[test]
fn targets_may_have_bytes_that_are_not_ascii() {
    for target in [&b"/\xc3\xa4?\xc3\xb6"[..], b"/\xe4", b"/a?\xff", b"http://x/\xe4\xc3"] {
        for version in ["1.0", "1.1", "1.2"] {
            let text = [b"GET ", target, b" HTTP/", version.as_bytes(), b"\r\nHost: x\r\n\r\n"].concat();
            let head = parse(&text).unwrap();
            assert_eq!((head.target, head.host), (target, Some("x")));
            assert!(as_uri(head.line).is_ascii() && head.path.starts_with(b"/"));
        }
    }
    assert_refused("GET http://\u{e4}/ HTTP/1.1\r\nHost: x\r\n\r\n", Refusal::TargetAuthority);
    assert_refused(b"GET http://\xe4/ HTTP/1.1\r\nHost: x\r\n\r\n", Refusal::TargetAuthority);
    assert_refused(b"G\xe4T / HTTP/1.1\r\nHost: x\r\n\r\n", Refusal::Method);
}

#[test]
fn targets_have_the_bytes_of_a_uri_and_a_form_that_fits() {
    for target in ["/a\x7f", "/a\tb", "/\x01", "/a#b", "/?#"] {
        assert_refused(format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n"), Refusal::TargetBytes);
    }
    assert_refused(b"GET /\xff\x7f HTTP/1.1\r\nHost: x\r\n\r\n", Refusal::TargetBytes);
    assert_refused("GET * HTTP/1.1\r\nHost: x\r\n\r\n", Refusal::TargetForm);
    assert_refused("GET ftp://x/ HTTP/1.1\r\nHost: x\r\n\r\n", Refusal::TargetForm);
    assert_refused("CONNECT / HTTP/1.1\r\nHost: x\r\n\r\n", Refusal::TargetForm);
    assert_refused("GET http://a@b/ HTTP/1.1\r\nHost: x\r\n\r\n", Refusal::TargetAuthority);
    assert_eq!(parse(b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n").unwrap().path, b"*");
}

#[test]
fn lines_end_with_cr_lf_and_nothing_else() {
    for head in [
        "GET / HTTP/1.1\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\n\n",
        "\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\nHost: x\n\n",
        "GET / HTTP/1.1\n",
    ] {
        assert_refused(head, Refusal::BareLineFeed);
    }
    for head in [
        "GET / HTTP/1.1\rHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\rY: z\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\r\n\r\n",
        "GET / HTTP/1.1\r\nHo\rst: x\r\n\r\n",
        "\rGET / HTTP/1.1\r\nHost: x\r\n\r\n",
    ] {
        assert_refused(head, Refusal::BareCarriageReturn);
    }
}

#[test]
fn field_lines_are_a_token_a_colon_and_a_value() {
    let refused = |lines: &str, refusal| assert_eq!(parse_with(lines), Err(refusal), "{lines:?}");
    refused("X: a\r\n folded\r\n", Refusal::FoldedLine);
    refused("X: a\r\n\tfolded\r\n", Refusal::FoldedLine);
    assert_refused("GET / HTTP/1.1\r\n Host: x\r\n\r\n", Refusal::FoldedLine);
    for lines in ["X : a\r\n", "X\t: a\r\n", ": a\r\n", "X\r\n", "X Y: a\r\n", "\u{e9}: a\r\n", "X\0: a\r\n"]
    {
        refused(lines, Refusal::FieldName);
    }
    for value in ["a\0b", "\x01", "a\x7f", "a\x0bb", "a\x1b[0m", "\x08"] {
        refused(&format!("X: {value}\r\n"), Refusal::FieldValue);
        refused(&format!("X:{value}\r\n"), Refusal::FieldValue);
    }
    assert_eq!(parse_with("X: a\tb\u{e9}\r\n"), Ok(BodyFraming::None));
}

#[test]
fn a_head_is_exactly_one_head() {
    assert_refused("", Refusal::RequestLine);
    assert_refused("\r\n\r\n\r\n\r\n\r\n", Refusal::RequestLine);
    assert_refused("GET / HTTP/1.1", Refusal::HeadIncomplete);
    assert_refused("GET / HTTP/1.1\r\nHost: x\r\n", Refusal::HeadIncomplete);
    assert_refused("GET / HTTP/1.1\r\nHost: x\r\n\r\nX", Refusal::HeadIncomplete);
    assert_refused(b"\x16\x03\x01\x00\xa5\x01\x00", Refusal::TlsHandshake);
}

#[test]
fn http_1_1_has_exactly_one_host() {
    assert_refused("GET / HTTP/1.1\r\n\r\n", Refusal::HostMissing);
    assert_refused("GET http://x/ HTTP/1.1\r\n\r\n", Refusal::HostMissing);
    assert_refused("GET / HTTP/1.1\r\nHost: x\r\nhost: x\r\n\r\n", Refusal::HostRepeated);
    assert_refused("GET / HTTP/1.0\r\nHost: x\r\nHost: y\r\n\r\n", Refusal::HostRepeated);
    assert_refused("GET / HTTP/1.1\r\nHost: \r\n\r\n", Refusal::HostInvalid);
    assert_refused("OPTIONS * HTTP/1.1\r\nHost:\r\n\r\n", Refusal::HostInvalid);
    for host in ["a b", "a@b", "a/b", "a:b", "a:99999", "[::1", "a,b:c", "http://a", "\u{e9}", ":80", "a\tb"]
    {
        assert_refused(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"), Refusal::HostInvalid);
        assert_refused(format!("GET http://x/ HTTP/1.0\r\nHost: {host}\r\n\r\n"), Refusal::HostInvalid);
    }
    for (head, host, port) in [
        ("GET / HTTP/1.0\r\n\r\n", None, None),
        ("GET / HTTP/1.0\r\nHost:\r\n\r\n", None, None),
        ("GET http://a/ HTTP/1.1\r\nHost:\r\n\r\n", Some("a"), None),
        ("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", Some("[::1]"), Some(80)),
        ("GET http://a:1/ HTTP/1.1\r\nHost: b:2\r\n\r\n", Some("a"), Some(1)),
        ("GET http://a/ HTTP/1.1\r\nHost: b:2\r\n\r\n", Some("a"), None),
        ("GET https://a/ HTTP/1.0\r\n\r\n", Some("a"), None),
    ] {
        let parsed = parse(head.as_bytes()).unwrap();
        assert_eq!((parsed.host, parsed.port), (host, port), "{head:?}");
    }
}

#[test]
fn nothing_frames_a_body_in_two_ways() {
    for (lines, expected) in [
        ("", Ok(BodyFraming::None)),
        ("Content-Length: 0\r\n", Ok(BodyFraming::Length(0))),
        ("content-length:  12 \r\n", Ok(BodyFraming::Length(12))),
        ("Content-Length: 18446744073709551615\r\n", Ok(BodyFraming::Length(u64::MAX))),
        ("Content-Length: 18446744073709551616\r\n", Err(Refusal::LengthInvalid)),
        ("Content-Length:\r\n", Err(Refusal::LengthInvalid)),
        ("Content-Length: +5\r\n", Err(Refusal::LengthInvalid)),
        ("Content-Length: -5\r\n", Err(Refusal::LengthInvalid)),
        ("Content-Length: 0x5\r\n", Err(Refusal::LengthInvalid)),
        ("Content-Length: 5 5\r\n", Err(Refusal::LengthInvalid)),
        ("Content-Length: 5, 5\r\n", Err(Refusal::LengthInvalid)),
        ("Content-Length: 5,\r\n", Err(Refusal::LengthInvalid)),
        ("Content-Length: 5\r\nContent-Length: 6\r\n", Err(Refusal::LengthRepeated)),
        ("Content-Length: 5\r\nContent-Length: 5\r\n", Err(Refusal::LengthRepeated)),
        ("Content-Length: 5\r\nX: y\r\ncontent-length: \r\n", Err(Refusal::LengthRepeated)),
        ("Transfer-Encoding: chunked\r\n", Ok(BodyFraming::Chunked)),
        ("transfer-encoding: \tCHUNKED \r\n", Ok(BodyFraming::Chunked)),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", Err(Refusal::LengthAndTransferEncoding)),
        ("Content-Length: 5\r\nTransfer-Encoding: gzip\r\n", Err(Refusal::LengthAndTransferEncoding)),
        ("Content-Length: x\r\nTransfer-Encoding: chunked\r\n", Err(Refusal::LengthAndTransferEncoding)),
        ("Transfer-Encoding: gzip\r\n", Err(Refusal::TransferEncodingUnknown)),
        ("Transfer-Encoding: gzip, chunked\r\n", Err(Refusal::TransferEncodingUnknown)),
        ("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", Err(Refusal::TransferEncodingUnknown)),
        ("Transfer-Encoding: identity\r\n", Err(Refusal::TransferEncodingUnknown)),
        ("Transfer-Encoding: xchunked\r\n", Err(Refusal::TransferEncodingUnknown)),
        ("Transfer-Encoding: chunked;q=1\r\n", Err(Refusal::TransferEncodingUnknown)),
        ("Transfer-Encoding: \"chunked\"\r\n", Err(Refusal::TransferEncodingUnknown)),
        ("Transfer-Encoding: chunked, gzip\r\n", Err(Refusal::TransferEncodingInvalid)),
        ("Transfer-Encoding: chunked, chunked\r\n", Err(Refusal::TransferEncodingInvalid)),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            Err(Refusal::TransferEncodingInvalid),
        ),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
            Err(Refusal::TransferEncodingInvalid),
        ),
        ("Transfer-Encoding:\r\nTransfer-Encoding: chunked\r\n", Err(Refusal::TransferEncodingInvalid)),
        ("Transfer-Encoding: chunked,\r\n", Err(Refusal::TransferEncodingInvalid)),
        ("Transfer-Encoding:\r\n", Err(Refusal::TransferEncodingInvalid)),
    ] {
        assert_eq!(parse_with(lines), expected, "{lines:?}");
    }
    assert_refused(
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
        Refusal::TransferEncodingInHttp10,
    );
    assert_eq!(Refusal::TransferEncodingUnknown.status(), Status::NOT_IMPLEMENTED);
}

#[test]
fn a_connection_persists_unless_a_side_wants_otherwise() {
    for (version, lines, expected) in [
        ("1.1", "", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.1", "Connection: keep-alive\r\n", true),
        ("1.1", "connection: Foo , CLOSE\r\n", false),
        ("1.1", "Connection: keep-alive, close\r\n", false),
        ("1.1", "Connection: close\r\nConnection: keep-alive\r\n", false),
        ("1.1", "Connection: closed\r\n", true),
        ("1.1", "Connection: \r\n", true),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
        ("1.0", "Connection: foo\r\nConnection: x, keep-alive\r\n", true),
        ("1.0", "Connection: keep-alive, close\r\n", false),
        ("1.0", "Keep-Alive: timeout=5\r\n", false),
    ] {
        let text = format!("GET / HTTP/{version}\r\nHost: x\r\n{lines}\r\n");
        assert_eq!(parse(text.as_bytes()).unwrap().keep_alive, expected, "{text:?}");
    }
}

#[test]
fn an_expectation_is_kept_or_refused() {
    for (version, lines, expected) in [
        ("1.1", "Expect: 100-Continue\r\nContent-Length: 1\r\n", Ok(true)),
        ("1.1", "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n", Ok(true)),
        ("1.1", "Expect: 100-continue\r\n", Ok(false)),
        ("1.1", "Expect: 100-continue\r\nContent-Length: 0\r\n", Ok(false)),
        ("1.0", "Expect: 100-continue\r\nContent-Length: 1\r\n", Ok(false)),
        ("1.1", "Expect: 200-ok\r\nContent-Length: 1\r\n", Err(Refusal::ExpectationUnknown)),
        ("1.1", "Expect: 100-continue, x\r\n", Err(Refusal::ExpectationUnknown)),
        ("1.1", "Expect: 100-continue\r\nExpect: x\r\n", Err(Refusal::ExpectationUnknown)),
    ] {
        let text = format!("PUT / HTTP/{version}\r\nHost: x\r\n{lines}\r\n");
        assert_eq!(parse(text.as_bytes()).map(|head| head.expects_continue), expected, "{text:?}");
    }
    assert_eq!(Refusal::ExpectationUnknown.status(), Status::EXPECTATION_FAILED);
}

#[test]
fn a_range_is_for_get_and_comes_once() {
    for (method, lines, expected) in [
        ("GET", "Range: bytes=0-1\r\n", Some("bytes=0-1")),
        ("HEAD", "Range: bytes=0-1\r\n", None),
        ("POST", "Range: bytes=0-1\r\n", None),
        ("GET", "Range: bytes=0-1\r\nRange: bytes=5-6\r\n", Some("")),
    ] {
        let text = format!("{method} / HTTP/1.0\r\n{lines}\r\n");
        assert_eq!(parse(text.as_bytes()).unwrap().range, expected.map(str::as_bytes), "{text:?}");
    }
}

#[test]
fn each_limit_holds_at_exactly_its_bound() {
    let text = "GET /234 HTTP/1.1\r\nHost: x\r\nA: b\r\n\r\n";
    let exact = HeadLimits {
        target_bytes_max: 4,
        head_bytes_max: text.len(),
        fields_max: 2,
        ..HeadLimits::default()
    };
    let outcome = |limits: &HeadLimits| RequestHead::parse(text.as_bytes(), limits).map(drop);
    assert_eq!(outcome(&exact), Ok(()));
    assert_eq!(outcome(&HeadLimits { target_bytes_max: 3, ..exact }), Err(Refusal::TargetTooLong));
    assert_eq!(outcome(&HeadLimits { fields_max: 1, ..exact }), Err(Refusal::FieldsTooMany));
    let shorter = HeadLimits { head_bytes_max: text.len() - 1, target_bytes_max: 100, ..exact };
    assert_eq!(outcome(&shorter), Err(Refusal::HeadTooLarge));
    assert_eq!(Refusal::TargetTooLong.status(), Status::URI_TOO_LONG);
    assert_eq!(Refusal::FieldsTooMany.status(), Status::REQUEST_HEADER_FIELDS_TOO_LARGE);
    assert_eq!(Refusal::HeadTooLarge.status(), Status::REQUEST_HEADER_FIELDS_TOO_LARGE);

    let unbounded = HeadLimits { fields_max: usize::MAX, ..HeadLimits::default() };
    let many = |count: usize| format!("GET / HTTP/1.0\r\n{}\r\n", "A: b\r\n".repeat(count));
    let outcome = |text: String| RequestHead::parse(text.as_bytes(), &unbounded).map(drop);
    assert_eq!(outcome(many(FIELDS_CAP)), Ok(()));
    assert_eq!(outcome(many(FIELDS_CAP + 1)), Err(Refusal::FieldsTooMany));
}

#[test]
fn a_head_that_goes_on_for_ever_is_refused_before_it_ends() {
    let limits =
        HeadLimits { target_bytes_max: 10, head_bytes_max: 40, fields_max: 5, ..HeadLimits::default() };
    let endless_target = [b"\r\nGET /".as_slice(), &[b'a'; 40]].concat();
    assert_eq!(limits.check_incomplete(&endless_target[..39]), Ok(()));
    assert_eq!(limits.check_incomplete(&endless_target[..40]), Err(Refusal::TargetTooLong));
    for endless in ["a".repeat(40), format!("GET / HTTP/1.1\r\nX: {}", "a".repeat(40))] {
        assert_eq!(limits.check_incomplete(endless.as_bytes()), Err(Refusal::HeadTooLarge), "{endless}");
    }
}

#[test]
fn labels_are_words_and_differ() {
    let mut labels: Vec<_> = Refusal::ALL.iter().map(|refusal| refusal.label()).collect();
    assert!(
        labels
            .iter()
            .flat_map(|label| label.bytes())
            .all(|byte| { byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' })
    );
    let count = labels.len();
    labels.sort_unstable();
    labels.dedup();
    assert_eq!(labels.len(), count);
    assert!(Refusal::ALL.iter().all(|refusal| (400..600).contains(&refusal.status().code())));
}

/// What makes variables of names would take `X_Real_IP` for `X-Real-IP`: such a field is dropped, unless it is wanted.
#[test]
fn names_with_an_underscore_are_not_there() {
    let text =
        "GET / HTTP/1.1\r\nHost: x\r\nX_Real_IP: 1\r\nX-Real-IP: 2\r\nTransfer_Encoding: chunked\r\n\r\n";
    let names = |keeps_underscores| {
        let limits = HeadLimits { keeps_underscores, ..HeadLimits::default() };
        let kept = RequestHead::parse(text.as_bytes(), &limits).unwrap().keep();
        let head = kept.get();
        assert!(head.framing.is_empty());
        let names: Vec<_> = head.fields().map(|(name, _)| name.to_owned()).collect();
        (names, head.field("x-real-ip").unwrap().to_vec())
    };
    assert_eq!(names(false), (vec!["Host".into(), "X-Real-IP".into()], b"2".to_vec()));
    let all = ["Host", "X_Real_IP", "X-Real-IP", "Transfer_Encoding"].map(str::to_owned);
    assert_eq!(names(true), (all.into(), b"1".to_vec()));
}

proptest! {
    #[test]
    fn written_heads_are_read_back(
        path in "/[!-\"$->@-~]{0,20}",
        query in proptest::option::of("[!-\"$-~]{0,10}"),
        fields in proptest::collection::vec(("X-[!#-'*+.0-9A-Z^-z|~-]{1,12}", "([!-~é][ -~\té]{0,10}[!-~é])?"), 0..8),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..6),
    ) {
        let target = query.as_ref().map_or(path.clone(), |query| format!("{path}?{query}"));
        let lines: String = fields.iter().map(|(name, value)| format!("{name}:\t{value} \r\n")).collect();
        let text = format!("GET {target} HTTP/1.1\r\nHost: x\r\n{lines}\r\n");
        let input = [text.as_bytes(), b"GET /next HTTP/1.1\r\n"].concat();

        // In pieces, the end is found where it is, and not before.
        let mut lengths: Vec<_> = cuts.iter().map(|cut| cut.index(input.len())).collect();
        lengths.sort_unstable();
        let mut scanner = HeadScanner::new();
        for length in lengths {
            let expected = (length >= text.len()).then_some(text.len());
            prop_assert_eq!(scanner.find_end(&input[..length]), expected);
            if expected.is_some() {
                scanner.reset();
            }
        }
        prop_assert_eq!(scanner.find_end(&input), Some(text.len()));

        let limits = HeadLimits { keeps_underscores: true, ..HeadLimits::default() };
        let head = RequestHead::parse(text.as_bytes(), &limits).unwrap();
        prop_assert_eq!(head.target, target.as_bytes());
        prop_assert_eq!(head.path, path.as_bytes());
        prop_assert_eq!(head.query, query.as_ref().map(String::as_bytes));
        let read: Vec<_> = head.fields().skip(1).collect();
        let written: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        prop_assert_eq!(read, written);
    }
}

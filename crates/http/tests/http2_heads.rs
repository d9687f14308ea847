//! Goal: a header block gives the head that HTTP/1 would have sent, and what breaks a rule of RFC 9113 section 8 gives
//! an error of the right family. Method: blocks of literals, and heads of HTTP/1 beside them.

use baton_http::h2::hpack::{CompressionError, Decoder};
use baton_http::h2::{CRUMBS_MAX, HeadError, HeadText, Malformed, Priority};
use baton_http::{BodyFraming, HeadLimits, Method, Refusal, RequestHead, Version};
use proptest::prelude::*;

type Fields<'a> = &'a [(&'a str, &'a str)];

/// A block of literals that are not indexed.
fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        out.push(0);
        for text in [name, value] {
            let len = text.len();
            match len.checked_sub(127) {
                None => out.push(len as u8),
                Some(rest) => out.extend_from_slice(&[
                    127,
                    rest as u8 | 0x80,
                    (rest >> 7) as u8 | 0x80,
                    (rest >> 14) as u8,
                ]),
            }
            out.extend_from_slice(text.as_bytes());
        }
    }
    out
}

fn error_of(fields: &[(&str, &str)], ends: bool) -> Result<(), HeadError> {
    let (mut text, limits) = (HeadText::default(), HeadLimits::default());
    text.decode(&mut Decoder::new(), &block(fields), ends, &limits).map(|_| ())
}

const GET: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "https"), (":authority", "h:1"), (":path", "/a?b")];

fn get_with<'a>(more: Fields<'a>) -> Vec<(&'a str, &'a str)> {
    [&GET, more].concat()
}

#[test]
fn a_block_becomes_a_head() {
    let fields = get_with(&[
        ("cookie", "a=1"),
        ("user-agent", "u"),
        ("host", "H:1"),
        ("cookie", "b=2"),
        ("te", "trailers"),
        ("priority", "u=1, i"),
        ("accept-encoding", "gzip"),
        ("content-length", "7"),
        ("expect", "100-continue"),
    ]);
    let (mut text, limits) = (HeadText::default(), HeadLimits::default());
    for _ in 0..2 {
        let request = text.decode(&mut Decoder::new(), &block(&fields), false, &limits).unwrap();
        let head = request.head;
        assert_eq!(
            (head.method, head.version, head.line),
            (Method::Get, Version::Http2, &b"GET /a?b HTTP/2.0"[..])
        );
        assert_eq!((head.path, head.query), (&b"/a"[..], Some(&b"b"[..])));
        assert_eq!((head.host, head.port, head.keep_alive), (Some("h"), Some(1), true));
        assert_eq!((head.framing, head.expects_continue), (BodyFraming::Length(7), true));
        assert_eq!((head.user_agent, head.accept_encoding), (Some(&b"u"[..]), Some(&b"gzip"[..])));
        assert_eq!(request.priority, Some(Priority { urgency: 1, incremental: true }));
        assert_eq!(request.protocol, None);
        let names: Vec<_> = head.fields().map(|(name, _)| name).collect();
        let expected =
            ["host", "user-agent", "te", "priority", "accept-encoding", "content-length", "expect", "cookie"];
        assert_eq!(names, expected, "Host once, crumbs joined behind the others");
        assert_eq!(head.field("Cookie"), Some(&b"a=1; b=2"[..]));

        let kept = head.keep();
        assert_eq!(format!("{:?}", kept.get()), format!("{head:?}"));
        let redirected = kept.redirected(b"/other", &limits).unwrap();
        assert_eq!(redirected.get().line, b"GET /other HTTP/2.0");
        assert_eq!((redirected.get().host, redirected.get().version), (Some("h"), Version::Http2));
        assert_eq!(
            (redirected.get().framing, redirected.get().field("cookie")),
            (BodyFraming::None, Some(&b"a=1; b=2"[..]))
        );
    }
}

#[test]
fn bodies_have_a_length_or_frames() {
    let length = get_with(&[("content-length", "0")]);
    for (fields, ends, framing) in [
        (&GET[..], true, Ok(BodyFraming::None)),
        (&GET, false, Ok(BodyFraming::Frames)),
        (&length, true, Ok(BodyFraming::Length(0))),
        (&length, false, Ok(BodyFraming::Length(0))),
        (
            &get_with(&[("content-length", "1")]),
            true,
            Err(HeadError::Malformed(Malformed::LengthWithoutBody)),
        ),
        (&get_with(&[("content-length", "+1")]), false, Err(HeadError::Refused(Refusal::LengthInvalid))),
    ] {
        let (mut text, limits) = (HeadText::default(), HeadLimits::default());
        let request = text.decode(&mut Decoder::new(), &block(fields), ends, &limits);
        assert_eq!(request.map(|request| request.head.framing), framing, "{fields:?}");
    }
}

#[test]
fn what_a_method_needs() {
    let extended = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "https"),
        (":path", "/chat"),
        (":authority", "h"),
    ];
    let (mut text, limits) = (HeadText::default(), HeadLimits::default());
    let request = text.decode(&mut Decoder::new(), &block(&extended), false, &limits).unwrap();
    assert_eq!((request.protocol, request.head.path), (Some(&b"websocket"[..]), &b"/chat"[..]));
    assert_eq!((request.head.method, request.head.host), (Method::Connect, Some("h")));

    let tunnel = [(":method", "CONNECT"), (":authority", "h:443")];
    let request = text.decode(&mut Decoder::new(), &block(&tunnel), false, &limits).unwrap();
    assert_eq!((request.head.line, request.head.port), (&b"CONNECT h:443 HTTP/2.0"[..], Some(443)));
    assert_eq!(request.head.path, b"");

    let star = [(":method", "OPTIONS"), (":scheme", "http"), (":path", "*"), ("host", "h")];
    let request = text.decode(&mut Decoder::new(), &block(&star), true, &limits).unwrap();
    assert_eq!((request.head.path, request.head.host), (&b"*"[..], Some("h")));
}

#[test]
fn malformed_requests_end_their_stream() {
    use Malformed::*;
    let with = |name, value| [(name, value)];
    for (more, malformed) in [
        (&[(":status", "200")][..], PseudoUnknown),
        (&[(":path", "/")], PseudoRepeated),
        (&[("a", "b"), (":path", "/")], PseudoLate),
        (&with(":protocol", "x"), PseudoUnfit),
        (&with("host", "other"), HostDiffers),
        (&with("User-Agent", "x"), FieldName),
        (&with("", "x"), FieldName),
        (&with("a b", "x"), FieldName),
        (&with("a:", "x"), FieldName),
        (&with("é", "x"), FieldName),
        (&with("a", "x\r\ny: z"), FieldValue),
        (&with("a", "x\0"), FieldValue),
        (&with("a", " x"), FieldValue),
        (&with("a", "x\t"), FieldValue),
        (&with("cookie", "x\n"), FieldValue),
        (&with("connection", "close"), ConnectionField),
        (&with("keep-alive", "5"), ConnectionField),
        (&with("proxy-connection", "close"), ConnectionField),
        (&with("transfer-encoding", "chunked"), ConnectionField),
        (&with("upgrade", "h2c"), ConnectionField),
        (&with("te", "trailers, gzip"), Te),
    ] {
        assert_eq!(error_of(&get_with(more), true), Err(malformed.into()), "{more:?}");
    }
    let connect = (":method", "CONNECT");
    for (fields, malformed) in [
        (&[][..], PseudoMissing),
        (&[("a", "b")], PseudoMissing),
        (&GET[1..], PseudoMissing),
        (&[GET[0], GET[2], GET[3]], PseudoMissing),
        (&GET[..3], PseudoMissing),
        (&[(":method", "G T"), GET[1], GET[2], GET[3]], Method),
        (&[(":method", ""), GET[1], GET[2], GET[3]], Method),
        (&[GET[0], (":scheme", "1"), GET[2], GET[3]], Scheme),
        (&[GET[0], GET[1], GET[2], (":path", "")], PathEmpty),
        (&[GET[0], GET[1], (":authority", "a\r\nb"), GET[3]], FieldValue),
        (&[connect], PseudoMissing),
        (&[connect, GET[2], GET[3]], PseudoUnfit),
        (&[connect, GET[1], GET[2]], PseudoUnfit),
        (&[connect, (":protocol", "a b"), GET[1], GET[2], GET[3]], Protocol),
        (&[connect, (":protocol", "a"), GET[2], GET[3]], PseudoMissing),
        (&[connect, (":protocol", "a"), GET[1], GET[3]], PseudoMissing),
    ] {
        assert_eq!(error_of(fields, true), Err(malformed.into()), "{fields:?}");
    }
}

#[test]
fn what_http1_refuses_is_refused_here() {
    use Refusal::*;
    let path = |path| [GET[0], GET[1], GET[2], (":path", path)];
    let authority = |authority| [GET[0], GET[1], (":authority", authority), GET[3]];
    for (fields, refusal) in [
        (&path("index.html")[..], TargetForm),
        (&path("http://other/"), TargetForm),
        (&path("*"), TargetForm),
        (&path("/a b"), TargetBytes),
        (&path("/a#b"), TargetBytes),
        (&path("/\r\n"), TargetBytes),
        (&authority("user@h"), HostInvalid),
        (&authority("h:x"), HostInvalid),
        (&authority(""), HostInvalid),
        (&[GET[0], GET[1], GET[3], ("host", "")], HostInvalid),
        (&[GET[0], GET[1], GET[3]], HostMissing),
        (&[GET[0], GET[1], GET[3], ("host", "a"), ("host", "a")], HostRepeated),
        (&[(":method", "CONNECT"), (":authority", "h")], TargetForm),
        (&[(":method", "CONNECT"), (":authority", "/a")], HostInvalid),
        (&get_with(&[("expect", "x")]), ExpectationUnknown),
        (&get_with(&[("content-length", "1"), ("content-length", "1")]), LengthRepeated),
    ] {
        assert_eq!(error_of(fields, false), Err(refusal.into()), "{fields:?}");
    }
}

#[test]
fn a_head_beyond_a_limit_is_refused() {
    let limits =
        HeadLimits { target_bytes_max: 10, head_bytes_max: 4096, fields_max: 5, ..HeadLimits::default() };
    let mut text = HeadText::default();
    let mut decode =
        |fields: &[(&str, &str)]| text.decode(&mut Decoder::new(), &block(fields), true, &limits).map(|_| ());
    let [method, scheme, authority, _] = GET;
    assert_eq!(decode(&[method, scheme, authority, (":path", "/234567890")]), Ok(()));
    assert_eq!(
        decode(&[method, scheme, authority, (":path", "/2345678901")]),
        Err(Refusal::TargetTooLong.into())
    );

    // The pseudo-fields count for 172 bytes.
    let (fits, long) = ("x".repeat(4096 - 172 - 33), "x".repeat(4096 - 172 - 32));
    assert_eq!(decode(&get_with(&[("a", &fits)])), Ok(()));
    assert_eq!(decode(&get_with(&[("a", &long)])), Err(Refusal::HeadTooLarge.into()));

    let fields = [("a", ""); 6];
    assert_eq!(decode(&get_with(&fields[..5])), Ok(()), "authority does not count");
    assert_eq!(decode(&get_with(&fields)), Err(Refusal::FieldsTooMany.into()));

    let crumbs = [("cookie", "a"); CRUMBS_MAX + 1];
    let wide = HeadLimits { head_bytes_max: 1 << 20, ..limits };
    let mut decode = |fields: &[(&str, &str)]| {
        let request = text.decode(&mut Decoder::new(), &block(fields), true, &wide);
        request.map(|request| request.head.field("cookie").map(<[u8]>::len))
    };
    assert_eq!(decode(&get_with(&crumbs[1..])), Ok(Some(3 * CRUMBS_MAX - 2)));
    assert_eq!(decode(&get_with(&crumbs)), Err(Refusal::FieldsTooMany.into()));
    for (crumbs, joined) in [(["", "a", ""], 1), (["a", "", "b"], 4), (["", "", ""], 0)] {
        assert_eq!(decode(&get_with(&crumbs.map(|crumb| ("cookie", crumb)))), Ok(Some(joined)), "{crumbs:?}");
    }
}

/// The bomb of 2016: one large field in the table, and a block of references to it; that of 2026: references to crumbs.
#[test]
fn bombs_end_early_and_the_table_survives_them() {
    let (mut text, mut decoder, limits) = (HeadText::default(), Decoder::new(), HeadLimits::default());
    for (name, refusal) in [("a", Refusal::HeadTooLarge), ("cookie", Refusal::HeadTooLarge)] {
        let mut large = block(&GET);
        large.extend_from_slice(&[0x40, name.len() as u8]);
        large.extend_from_slice(name.as_bytes());
        large.extend_from_slice(&[0x7f, 0xa1, 0x1e]);
        large.extend_from_slice(&[b'v'; 0x7f + 0xf21]);
        assert!(text.decode(&mut decoder, &large, true, &limits).is_ok());

        let mut bomb = block(&GET);
        bomb.resize(16_000, 0xbe);
        // Behind all the references the client adds another field.
        bomb.extend_from_slice(b"\x40\x01b\x01c");
        assert_eq!(text.decode(&mut decoder, &bomb, true, &limits).err(), Some(refusal.into()));

        let mut next = block(&GET);
        next.push(0xbe);
        let request = text.decode(&mut decoder, &next, true, &limits).unwrap();
        assert_eq!(request.head.field("b"), Some(&b"c"[..]));
        next.push(0xc0);
        let broken = text.decode(&mut decoder, &next, true, &limits).err();
        assert_eq!(broken, Some(CompressionError::Index.into()), "the table has these two");
    }
}

#[test]
fn small_references_are_counted() {
    let (mut text, limits) =
        (HeadText::default(), HeadLimits { head_bytes_max: 1 << 20, ..HeadLimits::default() });
    for (first, name) in [(&b"\x40\x01a\x00"[..], "a"), (b"\x60\x00", "cookie")] {
        let mut bomb = block(&GET);
        bomb.extend_from_slice(first);
        bomb.resize(bomb.len() + 150, 0xbe);
        let refused = text.decode(&mut Decoder::new(), &bomb, true, &limits).err();
        assert_eq!(refused, Some(Refusal::FieldsTooMany.into()), "{name}");
    }
}

#[test]
fn trailers_are_checked_and_discarded() {
    let mut text = HeadText::default();
    let mut decode = |fields: &[(&str, &str)]| text.decode_trailers(&mut Decoder::new(), &block(fields));
    assert_eq!(decode(&[("a", "b")]), Ok(()));
    assert_eq!(decode(&[]), Ok(()));
    assert_eq!(decode(&[("a", "b"), (":path", "/")]), Err(Malformed::PseudoLate.into()));
    assert_eq!(decode(&[("A", "b")]), Err(Malformed::FieldName.into()));
    assert_eq!(decode(&[("connection", "b")]), Err(Malformed::ConnectionField.into()));
    assert_eq!(decode(&[("a", &"b".repeat(8192))]), Err(Refusal::TrailerTooLarge.into()));
}

proptest! {
    /// The same request over HTTP/1 has the same head.
    #[test]
    fn both_versions_agree(
        method in "GET|HEAD|OPTIONS|POST|get|X",
        path in "/[a-z%?#/.\\\\]{0,8}",
        host in "[a-z.:0-9\\[\\]@-]{0,8}",
        fields in prop::collection::vec(
            ("range|if-match|if-none-match|expect|content-length|accept|referer|x", "[a-z0-9=\"*,-]{0,6}|100-continue"),
            0..6,
        ),
    ) {
        let mut lines = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\n");
        let mut list = vec![(":method", &method[..]), (":scheme", "http"), (":authority", &host), (":path", &path)];
        for (name, value) in &fields {
            lines.push_str(&format!("{name}: {value}\r\n"));
            list.push((name, value));
        }
        lines.push_str("\r\n");
        let limits = HeadLimits::default();
        let mut text = HeadText::default();
        let block = block(&list);
        let decoded = text.decode(&mut Decoder::new(), &block, false, &limits);
        match (RequestHead::parse(lines.as_bytes(), &limits), decoded) {
            (Err(refusal), Err(error)) => prop_assert_eq!(HeadError::Refused(refusal), error),
            (Ok(old), Ok(new)) => {
                let mut new = new.head;
                prop_assert_eq!(old.fields().collect::<Vec<_>>(), new.fields().collect::<Vec<_>>());
                if new.framing == BodyFraming::Frames {
                    new.framing = BodyFraming::None;
                    new.expects_continue = false;
                }
                let shown = |head: &RequestHead<'_>| format!("{head:?}").replace("Http2", "Http11");
                let line = |line: &[u8]| line[..line.len() - "HTTP/1.1".len()].to_vec();
                prop_assert_eq!(line(old.line), line(new.line));
                new.line = old.line;
                prop_assert_eq!(shown(&old), shown(&new));
            }
            (old, new) => prop_assert!(false, "{old:?}, but {new:?}"),
        }
    }
}

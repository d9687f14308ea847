//! Goal: an origin reads the request that the client sent, with nothing that ends at this hop, and with what the server
//! says of the client. Method: heads are written, and read back by the server's own parser and by `httparse`.

use baton_http::h2::HeadText;
use baton_http::h2::hpack::Decoder;
use baton_http::origin::{
    ForwardedBody, ForwardedClient, ForwardedRequest, Forwarding, HostRule, NotForwarded, PASSES_MAX,
    PathRule, field_may_be_ruled, upgrade_of,
};
use baton_http::{BodyFraming, FieldRules, HeadLimits, PathRefusal, RequestHead};
use proptest::prelude::*;

const CLIENT: ForwardedClient = ForwardedClient {
    address: Some(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7))),
    is_https: true,
    is_trusted: false,
};

fn forwarding() -> Forwarding {
    Forwarding {
        host: HostRule::Client,
        authority: "origin:3000".into(),
        path: PathRule::default(),
        pseudonym: "baton-7".into(),
        rules: FieldRules::default(),
    }
}

fn request<'a>(head: &'a RequestHead<'a>) -> ForwardedRequest<'a> {
    ForwardedRequest {
        head,
        claims: head,
        client: CLIENT,
        body: ForwardedBody::None,
        awaits_continue: false,
        keeps: true,
        upgrade: None,
        websocket_key: None,
        variables: &(),
    }
}

fn parse(text: &str) -> RequestHead<'_> {
    RequestHead::parse(text.as_bytes(), &HeadLimits::default()).unwrap()
}

/// The lines of the head that is written for the request in `text`.
fn forwarded(
    forwarding: &Forwarding,
    text: &str,
    edit: impl FnOnce(&mut ForwardedRequest<'_>),
) -> Vec<String> {
    let head = parse(text);
    let mut request = request(&head);
    edit(&mut request);
    lines(forwarding, &request)
}

fn lines(forwarding: &Forwarding, request: &ForwardedRequest<'_>) -> Vec<String> {
    let mut out = Vec::new();
    forwarding.push_head(&mut out, request).unwrap();
    let text = String::from_utf8(out).unwrap();
    text.strip_suffix("\r\n\r\n").unwrap().split("\r\n").map(str::to_owned).collect()
}

#[test]
fn a_request_goes_on_with_what_the_server_says_of_the_client() {
    let text =
        "GET http://example.org:8080/a?b HTTP/1.1\r\nHost: ignored\r\nuser-agent: x\r\nCookie: a\r\n\r\n";
    let expected = [
        "GET /a?b HTTP/1.1",
        "Host: example.org:8080",
        "user-agent: x",
        "Cookie: a",
        "Via: 1.1 baton-7",
        "X-Forwarded-For: 192.0.2.7",
        "X-Forwarded-Proto: https",
        "X-Forwarded-Host: example.org:8080",
        "Forwarded: for=192.0.2.7;proto=https;host=\"example.org:8080\"",
    ];
    assert_eq!(forwarded(&forwarding(), text, |_| {}), expected);
}

#[test]
fn fields_of_the_hop_and_of_other_framings_stay_here() {
    let text = "POST / HTTP/1.1\r\nHost: h\r\nConnection: X-Hop, via, X-Forwarded-For, Upgrade\r\nX-Hop: a\r\n\
                Keep-Alive: b\r\nProxy-Connection: c\r\nTE: gzip, trailers;q=1\r\nUpgrade: h2c\r\nHTTP2-Settings: d\r\n\
                Proxy-Authorization: e\r\nContent-Length: 5\r\nExpect: 100-continue\r\nTrailer: x\r\n\r\n";
    let lines = forwarded(&forwarding(), text, |request| {
        (request.body, request.awaits_continue, request.keeps) = (ForwardedBody::Chunked, true, false);
    });
    assert_eq!(lines[..3], ["POST / HTTP/1.1", "Host: h", "Trailer: x"]);
    let expected = ["Transfer-Encoding: chunked", "Expect: 100-continue", "Connection: close"];
    assert_eq!(lines[lines.len() - 3..], expected, "{lines:?}");
    assert!(lines.contains(&"X-Forwarded-For: 192.0.2.7".to_owned()), "ours cannot be named away");

    let text = "GET / HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nConnection: TE\r\n\r\n";
    let lines = forwarded(&forwarding(), text, |request| request.body = ForwardedBody::Length(0));
    assert_eq!(lines[lines.len() - 3..], ["Content-Length: 0", "Connection: TE", "TE: trailers"]);
}

#[test]
fn only_a_trusted_hop_is_believed() {
    let text = "GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 198.51.100.1\r\nx-forwarded-for: 198.51.100.2\r\n\
                X-Forwarded-Proto: http\r\nX-Forwarded-Host: outer\r\nX-Forwarded-Port: 81\r\nX_Forwarded_For: a\r\n\
                X-Real-IP: b\r\nForwarded: for=198.51.100.1\r\nVia: 1.1 outer\r\n\r\n";
    assert_eq!(
        forwarded(&forwarding(), text, |_| {})[2..],
        [
            "Via: 1.1 outer",
            "Via: 1.1 baton-7",
            "X-Forwarded-For: 192.0.2.7",
            "X-Forwarded-Proto: https",
            "X-Forwarded-Host: h",
            "Forwarded: for=192.0.2.7;proto=https;host=h",
        ]
    );
    assert_eq!(
        forwarded(&forwarding(), text, |request| request.client.is_trusted = true)[2..],
        [
            "X-Forwarded-Port: 81",
            "X-Real-IP: b",
            "Via: 1.1 outer",
            "Via: 1.1 baton-7",
            "X-Forwarded-For: 198.51.100.1, 198.51.100.2, 192.0.2.7",
            "X-Forwarded-Proto: http",
            "X-Forwarded-Host: outer",
            "Forwarded: for=198.51.100.1;proto=http;host=outer, for=198.51.100.2, for=192.0.2.7",
        ]
    );
}

#[test]
fn addresses_of_every_kind_are_told() {
    let text = "GET / HTTP/1.0\r\n\r\n";
    for (address, expected) in [
        (
            Some("2001:db8::1"),
            &["X-Forwarded-For: 2001:db8::1", "Forwarded: for=\"[2001:db8::1]\";proto=http"][..],
        ),
        (Some("::ffff:192.0.2.1"), &["X-Forwarded-For: 192.0.2.1", "Forwarded: for=192.0.2.1;proto=http"]),
        (None, &["Forwarded: for=unknown;proto=http"]),
    ] {
        let lines = forwarded(&forwarding(), text, |request| {
            request.client.address = address.map(|text| text.parse().unwrap());
            request.client.is_https = false;
        });
        assert_eq!(lines[..2], ["GET / HTTP/1.1", "Host: origin:3000"], "HTTP/1.0 may name no host");
        assert_eq!(lines[2], "Via: 1.0 baton-7");
        let told: Vec<_> = lines.iter().filter(|line| line.contains("For")).collect();
        assert_eq!(
            told.iter().filter(|line| !line.contains("Proto")).collect::<Vec<_>>(),
            expected.iter().collect::<Vec<_>>()
        );
    }
}

#[test]
fn hosts_and_paths_follow_the_rules_of_the_route() {
    let text = "GET /app/x/../y HTTP/1.1\r\nHost: client.example\r\n\r\n";
    for (host, expected) in [
        (HostRule::Client, "Host: client.example"),
        (HostRule::Origin, "Host: origin:3000"),
        (HostRule::Fixed("fixed".into()), "Host: fixed"),
    ] {
        let path = PathRule { strip: b"app".to_vec(), base: "/base".into() };
        let forwarding = Forwarding { host, path, ..forwarding() };
        assert_eq!(forwarded(&forwarding, text, |_| {})[..2], ["GET /base/y HTTP/1.1", expected]);
    }
}

#[test]
fn rules_hold_for_the_fields_of_both_sides() {
    let pairs = |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).into(), (*b).into())).collect();
    let rules = FieldRules {
        set: pairs(&[("Authorization", "secret"), ("X-Forwarded-Proto", "ftp")]),
        add: pairs(&[("X-Site", "1")]),
        remove: vec!["cookie".into(), "forwarded".into(), "Via".into()],
        default: pairs(&[("Accept", "*/*"), ("User-Agent", "baton")]),
    };
    let text = "GET / HTTP/1.1\r\nHost: h\r\nCookie: a\r\nauthorization: b\r\nUser-Agent: c\r\n\r\n";
    let expected = [
        "User-Agent: c",
        "X-Forwarded-For: 192.0.2.7",
        "X-Forwarded-Host: h",
        "Authorization: secret",
        "X-Forwarded-Proto: ftp",
        "X-Site: 1",
        "Accept: */*",
    ];
    assert_eq!(forwarded(&Forwarding { rules, ..forwarding() }, text, |_| {})[2..], expected);
    for name in ["host", "Content-Length", "Transfer-Encoding", "connection", "TE", "Upgrade", "Expect"] {
        assert!(!field_may_be_ruled(name), "{name}");
    }
    assert!(field_may_be_ruled("X-Forwarded-For") && field_may_be_ruled("Cookie"));
}

/// A site may pass a request on to another site of the same server; a loop ends after a few turns.
#[test]
fn loops_end() {
    let forwarding = forwarding();
    let mut text =
        "GET / HTTP/1.1\r\nHost: h\r\nVia: 1.1 baton-70, 1.0 other (1.1 baton-7)\r\n\r\n".to_owned();
    for _ in 0..PASSES_MAX {
        text = forwarded(&forwarding, &text, |_| {}).join("\r\n") + "\r\n\r\n";
    }
    let head = parse(&text);
    let refusal = forwarding.push_head(&mut Vec::new(), &request(&head)).unwrap_err();
    assert_eq!((refusal, refusal.status().code(), refusal.label()), (NotForwarded::Loop, 508, "loop"));
}

#[test]
fn what_cannot_go_on_is_refused() {
    for (text, refusal) in [
        ("CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n", NotForwarded::Method),
        ("TRACE / HTTP/1.1\r\nHost: h\r\n\r\n", NotForwarded::Method),
        ("GET /app%2Fx HTTP/1.1\r\nHost: h\r\n\r\n", NotForwarded::Path(PathRefusal::Separator)),
    ] {
        let path = PathRule { strip: b"app".to_vec(), base: String::new() };
        let forwarding = Forwarding { path, ..forwarding() };
        assert_eq!(forwarding.push_head(&mut Vec::new(), &request(&parse(text))), Err(refusal));
    }
    let text = "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n";
    assert_eq!(forwarded(&forwarding(), text, |_| {})[0], "OPTIONS * HTTP/1.1");
}

#[test]
fn a_switch_is_asked_for_unless_it_would_hide_requests() {
    for (fields, expected) in [
        ("Connection: keep-alive, upgrade\r\nUpgrade: websocket\r\n", Some("websocket")),
        ("Upgrade: websocket\r\n", None),
        ("Connection: Upgrade\r\n", None),
        ("Connection: Upgrade\r\nUpgrade: h2c\r\n", None),
        ("Connection: Upgrade\r\nUpgrade: websocket, H2C\r\n", None),
        ("Connection: Upgrade\r\nUpgrade: HTTP/2.0\r\n", None),
        ("Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: x\r\n", None),
        ("Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 1\r\n", None),
    ] {
        let text = format!("GET /chat HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
        let head = parse(&text);
        assert_eq!(
            upgrade_of(&head).map(|upgrade| std::str::from_utf8(upgrade).unwrap()),
            expected,
            "{fields}"
        );
    }
    let text = "GET /chat HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    let lines = forwarded(&forwarding(), text, |request| request.upgrade = upgrade_of(request.head));
    assert_eq!(lines[lines.len() - 2..], ["Connection: Upgrade", "Upgrade: websocket"]);
}

/// A request of HTTP/2 becomes one of HTTP/1.1: one Host, one Cookie, and an extended CONNECT asks for a switch.
#[test]
fn requests_of_http2_become_those_of_http1() {
    let field = |name: &str, value: &str| {
        let text = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
        [b"\0", &text(name)[..], &text(value)].concat()
    };
    let block = |fields: &[(&str, &str)]| {
        fields.iter().flat_map(|(name, value)| field(name, value)).collect::<Vec<_>>()
    };
    let (mut text, mut decoder, limits) = (HeadText::default(), Decoder::new(), HeadLimits::default());

    let input = block(&[
        (":method", "GET"),
        (":scheme", "https"),
        (":authority", "example.org"),
        (":path", "/a?b"),
        ("cookie", "a=1"),
        ("te", "trailers"),
        ("cookie", "b=2"),
    ]);
    let decoded = text.decode(&mut decoder, &input, true, &limits).unwrap();
    let lines = lines(&forwarding(), &request(&decoded.head));
    assert_eq!(lines[..4], ["GET /a?b HTTP/1.1", "Host: example.org", "cookie: a=1; b=2", "Via: 2 baton-7"]);
    assert_eq!(lines[lines.len() - 2..], ["Connection: TE", "TE: trailers"]);

    let input = block(&[
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "https"),
        (":authority", "example.org"),
        (":path", "/chat"),
        ("sec-websocket-version", "13"),
    ]);
    let decoded = text.decode(&mut decoder, &input, false, &limits).unwrap();
    let mut request = request(&decoded.head);
    (request.upgrade, request.websocket_key) = (decoded.protocol, Some("MDEyMzQ1Njc4OWFiY2RlZg=="));
    let lines = self::lines(&forwarding(), &request);
    assert_eq!(lines[..3], ["GET /chat HTTP/1.1", "Host: example.org", "sec-websocket-version: 13"]);
    assert_eq!(lines[3], "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==");
    assert_eq!(lines[lines.len() - 2..], ["Connection: Upgrade", "Upgrade: websocket"]);
}

fn any_head() -> impl Strategy<Value = String> {
    let method =
        prop_oneof![Just("GET"), Just("POST"), Just("PUT"), Just("HEAD"), Just("patch"), Just("OPTIONS")];
    let target = prop_oneof!["/[a-z%.]{0,6}[?]?[a-z/?]{0,4}", Just("http://example.org/a?b".to_owned())];
    let name = prop_oneof![
        "[A-Za-z!#-]{1,9}",
        Just("Connection".to_owned()),
        Just("X-Forwarded-For".to_owned()),
        Just("X-Forwarded-Host".to_owned()),
        Just("Forwarded".to_owned()),
        Just("Via".to_owned()),
        Just("TE".to_owned()),
        Just("Upgrade".to_owned()),
        Just("Keep-Alive".to_owned()),
    ];
    let value = prop_oneof![
        "[ -~\u{e9}\t]{0,10}",
        Just("trailers".to_owned()),
        Just("via, te, upgrade, a".to_owned())
    ];
    let fields = prop::collection::vec((name, value), 0..8);
    (method, target, fields).prop_map(|(method, target, fields)| {
        let start = format!("{method} {target} HTTP/1.1\r\nHost: example.org:81\r\n");
        fields.iter().fold(start, |text, (name, value)| format!("{text}{name}: {value}\r\n")) + "\r\n"
    })
}

proptest! {
    /// The server's own parser reads back the request that was sent, whatever the client's fields say.
    #[test]
    fn what_is_written_reads_back_as_the_same_request(
        text in any_head(),
        body in prop_oneof![
            Just(ForwardedBody::None), any::<u64>().prop_map(ForwardedBody::Length), Just(ForwardedBody::Chunked)
        ],
        keeps: bool,
        is_trusted: bool,
    ) {
        let limits = HeadLimits::default();
        let parsed = RequestHead::parse(text.as_bytes(), &limits);
        prop_assume!(parsed.is_ok());
        let head = parsed.unwrap();
        let client = ForwardedClient { is_trusted, ..CLIENT };
        let mut out = Vec::new();
        let outcome = forwarding().push_head(&mut out, &ForwardedRequest { client, body, keeps, ..request(&head) });
        prop_assume!(outcome.is_ok());
        let again = RequestHead::parse(&out, &limits).unwrap();
        prop_assert_eq!(again.method, head.method);
        prop_assert_eq!((again.host, again.port), (head.host, head.port));
        prop_assert_eq!(again.query, head.query);
        prop_assert_eq!(again.framing, match body {
            ForwardedBody::None if head.method.anticipates_content() => BodyFraming::Length(0),
            ForwardedBody::None => BodyFraming::None,
            ForwardedBody::Length(length) => BodyFraming::Length(length),
            ForwardedBody::Chunked => BodyFraming::Chunked,
        });
        prop_assert_eq!(again.keep_alive, keeps);
        let named = |head: &RequestHead<'_>, name: &str| {
            head.fields().filter(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_vec()).collect::<Vec<_>>()
        };
        for name in ["X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "Forwarded"] {
            prop_assert_eq!(named(&again, name).len(), 1, "{}", name);
        }
        prop_assert!(named(&again, "Upgrade").is_empty() && named(&again, "Keep-Alive").is_empty());
        let nominated = named(&head, "Connection").join(&b","[..]).to_ascii_lowercase();
        for (name, value) in head.fields().filter(|(name, _)| !is_special(name)) {
            let is_nominated = nominated.split(|byte| *byte == b',').any(|option| {
                option.trim_ascii() == name.to_ascii_lowercase().as_bytes()
            });
            prop_assert_eq!(named(&again, name).contains(&value.to_vec()), !is_nominated, "{}", name);
        }

        let mut slots = [httparse::EMPTY_HEADER; 64];
        let mut second = httparse::Request::new(&mut slots);
        prop_assert_eq!(second.parse(&out), Ok(httparse::Status::Complete(out.len())));
    }
}

fn is_special(name: &str) -> bool {
    let special = [
        "Host",
        "Connection",
        "X-Forwarded-For",
        "X-Forwarded-Host",
        "Forwarded",
        "Via",
        "TE",
        "Upgrade",
        "Keep-Alive",
    ];
    special.iter().any(|other| name.eq_ignore_ascii_case(other))
}

//! Both directions between a proxy and an origin: the reader of responses against its own pieces and `httparse`, written
//! heads of requests against the server's own parser.

use baton_http::origin::{
    BadResponse, ForwardedBody, ForwardedClient, ForwardedRequest, Forwarding, HostRule, PathRule,
    RESPONSE_HEAD_BYTES_MAX, RequestKind, ResponseHead, ResponsePart, ResponseReader, StreamEnd, upgrade_of,
};
use baton_http::{
    FieldRules, HeadLimits, Method, RequestHead, Version, decode_any_path, field_name_is_safe,
    field_value_is_safe,
};

/// Input: which request it answers (1 byte), and the bytes of a connection. They mean the same in any pieces, and every
/// head that goes on is what `httparse` reads, too.
pub fn response(input: &[u8]) {
    let Some((asked, input)) = input.split_first() else { return };
    let asked = [RequestKind::Usual, RequestKind::Head, RequestKind::Upgrade, RequestKind::Tunnel]
        [usize::from(asked % 4)];
    let whole = read(asked, input, input.len());
    assert_eq!(whole, read(asked, input, 1), "byte by byte");
    assert_eq!(whole, read(asked, input, 7), "in pieces");

    let mut at = 0;
    for head in whole.interim.iter().chain(&whole.head) {
        at += compare(head, &input[at..]);
    }
    assert!(whole.body.is_empty() || whole.head.is_some_and(|head| !head.status().forbids_content()));
}

/// What was read of one response.
#[derive(Debug, PartialEq)]
struct Read {
    interim: Vec<ResponseHead>,
    head: Option<ResponseHead>,
    body: Vec<u8>,
    trailers: Vec<(Vec<u8>, Vec<u8>)>,
    ending: Ending,
}

#[derive(Debug, PartialEq)]
enum Ending {
    /// The response is complete after this many bytes.
    At(usize),
    Stream(StreamEnd),
    Refused(BadResponse),
}

fn read(asked: RequestKind, input: &[u8], piece_bytes: usize) -> Read {
    let mut reader = ResponseReader::new(RESPONSE_HEAD_BYTES_MAX);
    reader.begin(asked, Vec::new());
    let ending = Ending::Stream(StreamEnd::Silent);
    let mut all = Read { interim: Vec::new(), head: None, body: Vec::new(), trailers: Vec::new(), ending };
    let (mut at, mut end) = (0, input.len().min(piece_bytes));
    loop {
        let (count, part) = match reader.read(&input[at..end]) {
            Ok(read) => read,
            Err(reason) => return Read { ending: Ending::Refused(unsized_reason(reason)), ..all },
        };
        let used = &input[at..at + count];
        at += count;
        match part {
            ResponsePart::NeedMore if end == input.len() => {
                return Read { ending: Ending::Stream(reader.handle_end()), ..all };
            }
            ResponsePart::NeedMore => {
                assert_eq!(at, end, "all is used up");
                end = input.len().min(end + piece_bytes);
            }
            ResponsePart::Interim(head) => all.interim.push(head),
            ResponsePart::Head(head) => assert!(all.head.replace(head).is_none(), "one head"),
            ResponsePart::Body(range) => {
                assert!(!range.is_empty());
                all.body.extend_from_slice(&used[range]);
            }
            ResponsePart::Trailers(trailers) => {
                all.trailers = trailers.fields().map(|(name, value)| (name.into(), value.into())).collect();
                assert!(all.trailers.iter().all(|(name, _)| !name.eq_ignore_ascii_case(b"Content-Length")));
            }
            ResponsePart::Switch(head) => {
                assert!(asked == RequestKind::Upgrade || asked == RequestKind::Tunnel);
                all.head = Some(head);
                return Read { ending: Ending::At(at), ..all };
            }
            ResponsePart::End { reusable } => {
                assert!(!reusable || at == end, "stray bytes end a connection");
                return Read { ending: Ending::At(at), ..all };
            }
        }
    }
}

/// How much of a long head has come depends on the pieces.
fn unsized_reason(reason: BadResponse) -> BadResponse {
    match reason {
        BadResponse::HeadTooLarge { limit, .. } => BadResponse::HeadTooLarge { limit, read: 0 },
        reason => reason,
    }
}

/// Compares a head with what `httparse` reads at the beginning of `text`. Returns its length.
fn compare(head: &ResponseHead, text: &[u8]) -> usize {
    // It knows no minor versions above 1.
    let mut usual = text.to_vec();
    usual["HTTP/1.".len()] = if head.version() == Version::Http10 { b'0' } else { b'1' };
    let mut slots = vec![httparse::EMPTY_HEADER; 1001];
    let mut second = httparse::Response::new(&mut slots);
    let Ok(httparse::Status::Complete(len)) = second.parse(&usual) else { panic!("httparse refuses it") };
    assert_eq!(second.code, Some(head.status().code()));
    let mut theirs = second.headers.iter().map(|field| (field.name.as_bytes(), field.value));
    for (name, value) in head.fields() {
        assert!(field_name_is_safe(name) && field_value_is_safe(value));
        assert!(theirs.any(|field| field == (name, value)), "in the same order");
        for framing in ["Content-Length", "Transfer-Encoding", "Connection"] {
            assert!(!name.eq_ignore_ascii_case(framing.as_bytes()));
        }
    }
    len
}

/// The head of a request is written so that the server's own parser reads the same request, for the path that was routed.
pub fn forwarded_head(input: &[u8]) {
    let limits = HeadLimits::default();
    let Ok(head) = RequestHead::parse(input, &limits) else { return };
    let forwarding = Forwarding {
        host: HostRule::Client,
        authority: "origin".into(),
        path: PathRule::default(),
        pseudonym: "baton".into(),
        rules: FieldRules::default(),
    };
    let mut routed = Vec::new();
    // Only what was routed goes on.
    let is_routed = decode_any_path(head.path, &mut routed).is_ok();
    if !is_routed && head.path != b"*" {
        return;
    }
    let upgrade = upgrade_of(&head);
    let client =
        ForwardedClient { address: None, is_https: false, is_trusted: input.len().is_multiple_of(2) };
    let body = ForwardedBody::Chunked;
    let request = ForwardedRequest {
        head: &head,
        claims: &head,
        client,
        body,
        awaits_continue: false,
        keeps: true,
        upgrade,
        websocket_key: None,
        variables: &(),
    };
    let mut out = Vec::new();
    if forwarding.push_head(&mut out, &request).is_err() {
        return;
    }
    let more = HeadLimits {
        head_bytes_max: out.len(),
        target_bytes_max: out.len(),
        fields_max: 256,
        ..HeadLimits::default()
    };
    let again = RequestHead::parse(&out, &more).expect("what is written can be read");
    assert_eq!((again.method, again.version), (head.method, Version::Http11));
    assert_eq!(again.host, head.host.or(Some("origin")));
    assert_eq!(again.query.is_some(), head.query.is_some());
    assert!(again.keep_alive && again.method != Method::Connect);
    let mut asked = Vec::new();
    assert_eq!(decode_any_path(again.path, &mut asked).is_ok(), is_routed);
    assert_eq!(asked, routed);
}

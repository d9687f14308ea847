//! Goal: responses of origins are read by the letter, in any split of their bytes; what could be read in two ways is
//! refused. Method: tables of responses, read whole and in pieces.

#[path = "origin/transcript.rs"]
mod transcript;

use baton_http::origin::{
    BadResponse, INTERIM_HEADS_MAX, RESPONSE_FIELDS_MAX, RequestKind, ResponsePart, ResponseReader, StreamEnd,
};
use proptest::prelude::*;
use transcript::{Ending, Transcript, read};

/// Reads `text` whole, byte by byte, and in pieces of three, which must give the same.
fn check(asked: RequestKind, text: &str) -> Transcript {
    let whole = read(asked, text.as_bytes(), &[]);
    for size in [1, 3] {
        let cuts: Vec<_> = (0..text.len()).step_by(size).skip(1).collect();
        assert_eq!(
            read(asked, text.as_bytes(), &cuts).without_stray(),
            whole.without_stray(),
            "{size}: {text}"
        );
    }
    whole
}

/// Heads and bodies, and whether the connection goes on.
#[test]
fn bodies_end_where_their_heads_say() {
    use RequestKind::{Head, Tunnel, Upgrade, Usual};
    for (asked, text, expected) in [
        (Usual, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "200 hello . keeps"),
        (Usual, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "200 . keeps"),
        (Usual, "HTTP/1.1 200\r\nContent-Length: 1, 1\r\nContent-Length: 1\r\n\r\na", "200 a . keeps"),
        (Usual, "HTTP/1.1 200 OK\r\n\r\nuntil the end", "200 until the end . closes"),
        (Usual, "HTTP/1.1 200 OK\r\n\r\n", "200 . closes"),
        (
            Usual,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n2;a\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
            "200 hello . keeps",
        ),
        (Usual, "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", "200 a . closes"),
        (Usual, "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\na", "200 a . keeps"),
        (Usual, "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\na", "200 a . closes"),
        (Usual, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na", "200 a . closes"),
        (Usual, "HTTP/1.7 200 OK\r\nContent-Length: 1\r\n\r\na", "200 a . keeps"),
        (Usual, "HTTP/1.1 204 No Content\r\n\r\n", "204 . keeps"),
        (Usual, "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", "204 . keeps"),
        (Usual, "HTTP/1.1 204 No Content\r\nContent-Length: 1\r\n\r\n", "204 . closes"),
        (Usual, "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", "304 . keeps"),
        (Usual, "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", "304 . closes"),
        (Head, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "200 . keeps"),
        (Head, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "200 . keeps"),
        (Head, "HTTP/1.1 200 OK\r\n\r\n", "200 . keeps"),
        (Upgrade, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nxyz", "switch 101 (xyz)"),
        (Upgrade, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", "200 a . keeps"),
        (Tunnel, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nxyz", "switch 101 (xyz)"),
        (Tunnel, "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n", "302 . keeps"),
        (Tunnel, "HTTP/1.1 403 Forbidden\r\nContent-Length: 1\r\n\r\na", "403 a . keeps"),
        (
            Usual,
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
            "interim 100 interim 103 204 . keeps",
        ),
        (
            Usual,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: 1\r\nContent-Length: 7\r\n\r\n",
            "200 a trailers X-Sum: 1 . keeps",
        ),
        // Cut.
        (Usual, "", "silent"),
        (Usual, "HTTP/1.1 200 OK\r\n", "cut"),
        (Usual, "HTTP/1.1 100 Continue\r\n\r\n", "interim 100 cut"),
        (Usual, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", "200 hell cut"),
        (Usual, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n", "200 a cut"),
        (Usual, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n", "200 a cut"),
    ] {
        assert_eq!(check(asked, text).to_string(), expected, "{text}");
    }
}

/// Bytes that were not asked for are never the next response.
#[test]
fn stray_bytes_end_the_connection() {
    for (asked, text, expected) in [
        (
            RequestKind::Usual,
            "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
            "204 . closes stray 19",
        ),
        (RequestKind::Usual, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na\r\n", "200 a . closes stray 2"),
        (RequestKind::Head, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", "200 . closes stray 1"),
        (
            RequestKind::Usual,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n!",
            "200 . closes stray 1",
        ),
    ] {
        assert_eq!(check(asked, text).to_string(), expected, "{text}");
    }
}

#[test]
fn what_could_be_read_in_two_ways_is_refused() {
    use BadResponse as Bad;
    let with = |fields: &str| format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n");
    for (text, reason) in [
        ("HTP/1.1 200 OK\r\n\r\n".into(), Bad::StatusLine),
        ("\r\nHTTP/1.1 200 OK\r\n\r\n".into(), Bad::StatusLine),
        (" HTTP/1.1 200 OK\r\n\r\n".into(), Bad::StatusLine),
        ("http/1.1 200 OK\r\n\r\n".into(), Bad::StatusLine),
        ("HTTP/1.1  200 OK\r\n\r\n".into(), Bad::StatusLine),
        ("HTTP/1.1 20 OK\r\n\r\n".into(), Bad::StatusLine),
        ("HTTP/1.1 2000 OK\r\n\r\n".into(), Bad::StatusLine),
        ("HTTP/1.1 099 OK\r\n\r\n".into(), Bad::StatusLine),
        ("HTTP/1.1 200 a\0b\r\n\r\n".into(), Bad::StatusLine),
        ("HTTP/1.x 200 OK\r\n\r\n".into(), Bad::StatusLine),
        ("HTTP/2.0 200 OK\r\n\r\n".into(), Bad::Version),
        ("\x15\x03\x03\0\x02".into(), Bad::Tls),
        ("HTTP/1.1 200 OK\n\n".into(), Bad::BareLineFeed),
        ("HTTP/1.1 200 OK\r\nA: b\n\r\n".into(), Bad::BareLineFeed),
        ("HTTP/1.1 200 O\rK\r\n\r\n".into(), Bad::BareCarriageReturn),
        (with("A: b\rC: d"), Bad::BareCarriageReturn),
        (with("HTTP/1.1 200 OK"), Bad::StatusLineRepeated),
        (with("HTTP/1.1 200 O:K"), Bad::StatusLineRepeated),
        (with(" A: b"), Bad::FoldedLine),
        (with("A: b\r\n c"), Bad::FoldedLine),
        (with("A: b\r\n\tc"), Bad::FoldedLine),
        (with("A : b"), Bad::FieldName),
        (with(": b"), Bad::FieldName),
        (with("A"), Bad::FieldName),
        (with("\u{c4}: b"), Bad::FieldName),
        (with("A: b\0"), Bad::FieldValue),
        (with("A: b\x7f"), Bad::FieldValue),
        (with("Content-Length: +1"), Bad::LengthInvalid),
        (with("Content-Length: 1 1"), Bad::LengthInvalid),
        (with("Content-Length: 0x1"), Bad::LengthInvalid),
        (with("Content-Length: -1"), Bad::LengthInvalid),
        (with("Content-Length:"), Bad::LengthInvalid),
        (with("Content-Length: 1,"), Bad::LengthInvalid),
        (with("Content-Length: 18446744073709551616"), Bad::LengthInvalid),
        (with("Content-Length: 1, 2"), Bad::LengthDiffers),
        (with("Content-Length: 1\r\ncontent-length: 2"), Bad::LengthDiffers),
        (with("Content-Length: 1\r\nTransfer-Encoding: chunked"), Bad::LengthAndTransferEncoding),
        (with("Transfer-Encoding:\r\nContent-Length: 1"), Bad::LengthAndTransferEncoding),
        (with("Transfer-Encoding: gzip, chunked"), Bad::TransferEncodingUnknown),
        (with("Transfer-Encoding: identity"), Bad::TransferEncodingUnknown),
        (with("Transfer-Encoding: \x0bchunked"), Bad::FieldValue),
        (with("Transfer-Encoding: xchunked"), Bad::TransferEncodingUnknown),
        (with("Transfer-Encoding: chunked, gzip"), Bad::TransferEncodingInvalid),
        (with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"), Bad::TransferEncodingInvalid),
        (with("Transfer-Encoding:"), Bad::TransferEncodingInvalid),
        ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".into(), Bad::TransferEncodingInHttp10),
        ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n".into(), Bad::SwitchUnasked),
        (with("Transfer-Encoding: chunked\r\n\r\n-1"), Bad::ChunkSize),
        (with("Transfer-Encoding: chunked\r\n\r\n1\r\nab"), Bad::ChunkEnd),
        (with("Transfer-Encoding: chunked\r\n\r\n1;\0"), Bad::ChunkExtension),
        (with("Transfer-Encoding: chunked\r\n\r\n0\r\n A: b"), Bad::TrailerInvalid),
        (
            with(&format!("Transfer-Encoding: chunked\r\n\r\n0\r\nA: {}", "b".repeat(8192))),
            Bad::TrailerTooLarge,
        ),
        (with(&"A: b\r\n".repeat(RESPONSE_FIELDS_MAX + 1)), Bad::FieldsTooMany),
        ("HTTP/1.1 100 Continue\r\n\r\n".repeat(INTERIM_HEADS_MAX + 1), Bad::InterimTooMany),
    ] {
        assert_eq!(check(RequestKind::Usual, &text).refused(), Some(reason), "{text:?}");
    }
}

/// The longest head passes, one byte more does not; the reason tells both numbers.
#[test]
fn long_heads_are_refused_with_their_size() {
    let head = |len: usize| {
        let (line, end) = ("HTTP/1.1 204 No Content\r\nA: ", "\r\n\r\n");
        [line, &"b".repeat(len - line.len() - end.len()), end].concat()
    };
    for split in [200, 1] {
        let read = |text: &str| {
            let mut reader = ResponseReader::new(100);
            reader.begin(RequestKind::Usual, Vec::new());
            let mut last = Ok((0, ResponsePart::NeedMore));
            for piece in text.as_bytes().chunks(split) {
                last = reader.read(piece);
                if last.is_err() {
                    break;
                }
            }
            last
        };
        assert!(matches!(read(&head(100)), Ok((_, ResponsePart::Head(_)))), "{split}");
        let read_bytes = if split == 1 { 100 } else { 101 };
        let reason = BadResponse::HeadTooLarge { limit: 100, read: read_bytes };
        assert_eq!(read(&head(101)), Err(reason));
        assert_eq!(reason.label(), "head-too-large");
        assert!(reason.to_string().contains("longer than 100 bytes"));
    }
}

/// What is about the connection stays here, the rest goes on as it was spelt.
#[test]
fn fields_of_the_hop_stay_here() {
    let text = "HTTP/1.1 200 Fine by me\r\nserver: Origin/1\r\nX-Hop: a\r\nConnection: x-hop, Keep-Alive\r\n\
                Keep-Alive: max=9, timeout=7\r\nProxy-Connection: b\r\nContent-Length: 1\r\nSet-Cookie: a\r\n\
                Set-Cookie: b \r\nX-Caf\u{e9}: c\r\n\r\na";
    let text = text.replace("X-Caf\u{e9}: c", "X-Cafe: \u{e9}");
    let mut reader = ResponseReader::new(1000);
    reader.begin(RequestKind::Usual, Vec::new());
    let Ok((_, ResponsePart::Head(head))) = reader.read(text.as_bytes()) else { panic!("a head") };
    let fields: Vec<_> = head.fields().collect();
    let expected: [(&[u8], &[u8]); 4] = [
        (b"server", b"Origin/1"),
        (b"Set-Cookie", b"a"),
        (b"Set-Cookie", b"b"),
        (b"X-Cafe", "\u{e9}".as_bytes()),
    ];
    assert_eq!(fields, expected);
    assert_eq!((head.reason(), head.content_length()), (&b"Fine by me"[..], Some(1)));
    assert_eq!((head.field("SET-COOKIE"), head.field("X-Hop")), (Some(&b"a"[..]), None));
    assert_eq!(reader.idle_s(), Some(7));
}

#[test]
fn a_switch_keeps_what_it_switches_to() {
    let text =
        b"HTTP/1.1 101 \r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: a\r\n\r\n\x81";
    let mut reader = ResponseReader::new(1000);
    reader.begin(RequestKind::Upgrade, Vec::new());
    let Ok((count, ResponsePart::Switch(head))) = reader.read(text) else { panic!("a switch") };
    assert_eq!((count, head.field("Upgrade")), (text.len() - 1, Some(&b"websocket"[..])));
    assert_eq!((head.field("Connection"), head.fields().count()), (None, 2));
}

#[test]
fn a_connection_gives_one_response_after_the_other() {
    let mut reader = ResponseReader::new(1000);
    for _ in 0..3 {
        reader.begin(RequestKind::Usual, Vec::new());
        assert!(reader.is_silent());
        let text = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n";
        let mut at = 0;
        loop {
            let (count, part) = reader.read(&text[at..]).unwrap();
            at += count;
            match part {
                ResponsePart::End { reusable } => break assert!(reusable),
                ResponsePart::NeedMore => panic!("it is complete"),
                _ => {}
            }
        }
        assert!(!reader.is_silent());
    }
    // Nothing was asked.
    assert_eq!(reader.read(b"x"), Ok((0, ResponsePart::End { reusable: false })));
    assert_eq!(reader.handle_end(), StreamEnd::Complete);
}

fn damaged_response() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        Just("HTTP/1.1 200 OK"),
        Just("HTTP/1.0 404 Not Found"),
        Just("HTTP/1.1 304 "),
        Just("HTTP/1.1 100 Continue"),
        Just("HTTP/1.1 204")
    ];
    let field = prop_oneof![
        Just("Content-Length: 5".to_owned()),
        Just("Content-Length: 7".to_owned()),
        Just("Transfer-Encoding: chunked".to_owned()),
        Just("Connection: close, x".to_owned()),
        Just("connection: keep-alive".to_owned()),
        "[A-Za-z-]{1,8}: [ -~]{0,12}",
        "[A-Z :\t]{0,4}",
    ];
    let head = (line, prop::collection::vec(field, 0..5)).prop_map(|(line, fields)| {
        fields.iter().fold(format!("{line}\r\n"), |text, field| format!("{text}{field}\r\n")) + "\r\n"
    });
    let body = prop_oneof![
        Just(""),
        Just("hello"),
        Just("2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"),
        Just("0\r\nA: b\r\n\r\n")
    ];
    let damage = prop::option::of((any::<prop::sample::Index>(), any::<u8>()));
    (prop::collection::vec(head, 1..3), body, damage).prop_map(|(heads, body, damage)| {
        let mut text = (heads.concat() + body).into_bytes();
        if let Some((at, byte)) = damage {
            let at = at.index(text.len());
            text[at] = byte;
        }
        text
    })
}

/// A head that is damaged and has no end yet is judged with its end, whether it trickles in or not.
#[test]
fn a_damaged_head_is_judged_with_its_end() {
    let text = b"HTTP/1.1 100 Continue\r\x0b\r\nhello";
    let bytes: Vec<_> = (1..text.len()).collect();
    for cuts in [&[][..], &bytes] {
        assert_eq!(read(RequestKind::Usual, text, cuts).ending, Ending::Stream(StreamEnd::Cut));
    }
    let ended = [&text[..], b"\r\n\r\n"].concat();
    let bytes: Vec<_> = (1..ended.len()).collect();
    for cuts in [&[][..], &bytes] {
        let ending = read(RequestKind::Usual, &ended, cuts).ending;
        assert_eq!(ending, Ending::Refused(BadResponse::BareCarriageReturn));
    }
}

proptest! {
    /// Any split of the input gives the same events.
    #[test]
    fn any_split_reads_the_same(
        text in damaged_response(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        asked in prop_oneof![Just(RequestKind::Usual), Just(RequestKind::Head), Just(RequestKind::Upgrade), Just(RequestKind::Tunnel)],
    ) {
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.sort_unstable();
        let whole = read(asked, &text, &[]);
        prop_assert_eq!(read(asked, &text, &cuts).without_stray(), whole.without_stray());
        let bytes: Vec<_> = (1..text.len()).collect();
        prop_assert_eq!(read(asked, &text, &bytes).without_stray(), whole.without_stray());
    }
}

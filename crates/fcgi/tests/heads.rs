//! Goal: heads as real programs write them become HTTP heads, and what two readers could read differently is
//! refused. Method: tables, each head in one piece and byte by byte.

use baton_fcgi::cgi::{BadHead, CgiHead, HEAD_BYTES_MAX, HeadReader, HeadStep, Instruction, find_end};
use baton_fcgi::offer::Client;
use baton_fcgi::zero_copy::FileName;
use baton_http::response::{Framing, push_default, push_drop, push_join};

fn parse(text: &str) -> Result<CgiHead, BadHead> {
    let mut reader = HeadReader::new(HEAD_BYTES_MAX);
    for (index, byte) in text.as_bytes().chunks(1).enumerate() {
        if let HeadStep::End { body_at } = reader.read(byte)? {
            assert_eq!((body_at, index + 1), (1, text.len()), "the end of {text:?}");
        }
    }
    let piecewise = reader.finish();
    assert_eq!(piecewise, CgiHead::parse(text.into()));
    piecewise
}

const MODERN: Client = Client { minor: 1, keep: true, head: false };
const OLD: Client = Client { minor: 0, keep: true, head: false };
const HEAD: Client = Client { minor: 1, keep: true, head: true };

/// The HTTP head for this client, if all of the body is not known.
fn answer(text: &str, client: Client) -> String {
    answer_with(text, None, client)
}

fn answer_with(text: &str, body_len: Option<u64>, client: Client) -> String {
    let head = parse(text).unwrap();
    let mut out = b"before".to_vec();
    let framing = head.framing(body_len, client);
    head.push_http_head(&mut out, framing, client, b"Server: baton\r\n");
    String::from_utf8(out).unwrap().strip_prefix("before").unwrap().to_owned()
}

#[test]
fn a_head_ends_at_its_first_blank_line_whatever_its_lines_end_with() {
    for (text, end) in [
        ("A: b\r\n\r\nbody", Some(8)),
        ("A: b\n\nbody\n\n", Some(6)),
        ("A: b\n\r\nbody", Some(7)),
        ("A: b\r\n\nbody", Some(7)),
        ("\nbody", Some(1)),
        ("\r\nbody", Some(2)),
        ("A: b\r\n\r", None),
        ("A: b\r\n\r\r\n", None),
        ("A: b\n", None),
        ("", None),
    ] {
        for from in 0..=end.map_or(text.len(), |end| end - 1) {
            assert_eq!(find_end(text.as_bytes(), from), end, "{text:?} from {from}");
        }
    }
    assert_eq!(find_end(b"\n", 2), None, "beyond the end there is nothing");
}

/// Goal: programs that write a status line are understood, and it never reaches the client as it is.
#[test]
fn a_status_line_is_a_status() {
    for (text, status, reason) in [
        ("HTTP/1.1 200 OK\r\nA: b\r\n\r\n", 200, "OK"),
        ("HTTP/1.0 404 Gone: fishing\nA: b\n\n", 404, "Gone: fishing"),
        ("HTTP/1.1 204\r\n\r\n", 204, ""),
        ("HTTP/1.1 302 Found\r\nLocation: /path\r\n\r\n", 302, "Found"),
    ] {
        let head = parse(text).unwrap();
        assert_eq!((head.status(), head.reason()), (status, reason.as_bytes()), "{text:?}");
        assert_eq!(*head.instruction(), Instruction::None, "a path with a status is the client's");
        let answer = answer(text, MODERN);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} {reason}\r\nServer: baton\r\n")), "{answer}");
        assert_eq!(answer.matches("HTTP/").count(), 1, "{answer}");
        assert!(!answer.contains("Status"), "{answer}");
    }
    for text in ["HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 \r\n\r\n", "HTTP/1.1 200\nStatus: 404\n\n"] {
        assert_eq!(parse(text), Err(BadHead::Status), "{text:?}");
    }
    for text in ["HTTP/1.1\r\n\r\n", "HTTP/2 200\r\n\r\n", "A: b\nHTTP/1.1 200 OK\n\n"] {
        assert_eq!(parse(text), Err(BadHead::NotAField), "{text:?}");
    }
}

#[test]
fn what_follows_a_head_is_left_alone() {
    let mut reader = HeadReader::with_buffer(b"of another time".to_vec(), HEAD_BYTES_MAX);
    assert_eq!(reader.read(b"A: b\r"), Ok(HeadStep::NeedMore));
    assert_eq!(reader.read(b"\n\r\nbody\n\n"), Ok(HeadStep::End { body_at: 3 }));
    assert_eq!(reader.text(), b"A: b\r\n\r\n");
    let head = reader.finish().unwrap();
    assert_eq!(head.into_buffer(), b"A: b\r\n\r\n");
}

#[test]
fn heads_are_bounded() {
    let of_length = |bytes: usize| format!("X: {}\r\n\r\n", "a".repeat(bytes - 7));
    assert!(parse(&of_length(HEAD_BYTES_MAX)).is_ok());
    assert_eq!(parse(&of_length(HEAD_BYTES_MAX + 1)), Err(BadHead::TooLarge { limit: HEAD_BYTES_MAX }));
    let mut reader = HeadReader::new(HEAD_BYTES_MAX);
    assert_eq!(reader.read(b"A: b\n"), Ok(HeadStep::NeedMore));
    assert_eq!(reader.read(&[b'a'; HEAD_BYTES_MAX]), Err(BadHead::TooLarge { limit: HEAD_BYTES_MAX }));
    assert_eq!(reader.text(), b"A: b\n", "the buffered bytes can be forwarded unchanged");
    let mut reader = HeadReader::new(10);
    assert_eq!(reader.read(b"A: bcde\r\n\r\n"), Err(BadHead::TooLarge { limit: 10 }));
}

/// RFC 9110, 8.3: an empty value is no media type.
#[test]
fn an_empty_type_is_none() {
    for text in ["Content-Type:\r\nA: b\r\n\r\n", "A: b\ncontent-type: \t\nContent-Type:\n\n"] {
        let head = parse(text).unwrap();
        assert_eq!(head.fields().collect::<Vec<_>>(), [(&b"A"[..], &b"b"[..])], "{text:?}");
    }
    assert_eq!(parse("Content-Type: \n\n").unwrap().fields().count(), 0);
    assert_eq!(parse("X-Content-Type:\n\n").unwrap().fields().count(), 1);
}

#[test]
fn statuses_are_told_or_follow_from_the_location() {
    for (text, status, reason) in [
        ("Status: 404 Not Found\r\nContent-type: text/html; charset=UTF-8\r\n\r\n", 404, "Not Found"),
        ("status:404\n\n", 404, ""),
        ("Status: 299\tOdd  phrase \n\n", 299, "Odd  phrase"),
        ("Content-Type: text/plain\n\n", 200, "OK"),
        ("Location: http://example.org/\n\n", 302, "Found"),
        ("Status: 301 Moved\nLocation: /a\n\n", 301, "Moved"),
        ("Status: 200 Fine\nLocation: /a\n\n", 200, "Fine"),
    ] {
        let head = parse(text).unwrap();
        assert_eq!((head.status(), head.reason()), (status, reason.as_bytes()), "{text:?}");
    }
}

#[test]
fn instructions_are_told_from_fields() {
    let instruction = |text: &str| parse(text).unwrap().instruction().clone();
    for (text, expected) in [
        ("Location: /other?x=1\n\n", Instruction::LocalRedirect((*b"/other?x=1").into())),
        ("Location: //example.org/\n\n", Instruction::None),
        ("Location: https://example.org/\n\n", Instruction::None),
        ("Location: relative\n\n", Instruction::None),
        ("Status: 302 Found\nLocation: /other\n\n", Instruction::None),
        ("x-sendfile: /srv/a b\n\n", Instruction::SendFile((*b"/srv/a b").into())),
        ("X-Accel-Redirect: /internal/a\n\n", Instruction::AccelRedirect((*b"/internal/a").into())),
        ("X-Accel-Redirect: /a\nLocation: /b\n\n", Instruction::AccelRedirect((*b"/a").into())),
    ] {
        assert_eq!(instruction(text), expected, "{text:?}");
    }
    let Instruction::ZeroCopy(map) = instruction("X-ZeroCopy:5/10:20/10\n\n") else {
        panic!("a map of names");
    };
    assert_eq!(map.names(), [FileName { offset: 5, len: 10 }, FileName { offset: 20, len: 10 }]);
}

#[test]
fn heads_that_could_be_read_differently_are_refused() {
    for (text, bad) in [
        ("", BadHead::Empty),
        ("\n", BadHead::Empty),
        ("\r\n", BadHead::Empty),
        ("Content-Type: text/pl", BadHead::Incomplete),
        ("Status: 200 OK\r\nContent-Type: text/plain\r\n", BadHead::Incomplete),
        ("A: b\r\n\r", BadHead::Incomplete),
        ("A: b\nHTTP/1.0 200 OK\n\n", BadHead::NotAField),
        ("<html>\n\n", BadHead::NotAField),
        ("A: b\r\r\n\n", BadHead::Value),
        (": b\n\n", BadHead::Name),
        ("A : b\n\n", BadHead::Name),
        ("A: b\n c: d\n\n", BadHead::Name),
        ("A: b\n c\n\n", BadHead::NotAField),
        ("\u{e9}: b\n\n", BadHead::Name),
        ("A: b\rSet-Cookie: c\n\n", BadHead::Value),
        ("A: b\0\n\n", BadHead::Value),
        ("A: \x7f\n\n", BadHead::Value),
        ("Status: 404 Not\x08Found\n\n", BadHead::Value),
        ("Status: 100 Continue\n\n", BadHead::Status),
        ("Status: 199\n\n", BadHead::Status),
        ("Status: 1000\n\n", BadHead::Status),
        ("Status: 20\n\n", BadHead::Status),
        ("Status: +20 OK\n\n", BadHead::Status),
        ("Status: 200OK\n\n", BadHead::Status),
        ("Status:\n\n", BadHead::Status),
        ("Status: ok\n\n", BadHead::Status),
        ("Status: 200\nStatus: 200\n\n", BadHead::Status),
        ("Location: /a\nLocation: /a\n\n", BadHead::Location),
        ("Content-Length: 5\nContent-Length: 6\n\n", BadHead::Length),
        ("Content-Length: 5, 5\n\n", BadHead::Length),
        ("Content-Length: -5\n\n", BadHead::Length),
        ("Content-Length: +5\n\n", BadHead::Length),
        ("Content-Length:\n\n", BadHead::Length),
        ("Content-Length: 18446744073709551616\n\n", BadHead::Length),
        ("X-Sendfile:\n\n", BadHead::Instruction),
        ("X-Accel-Redirect: \n\n", BadHead::Instruction),
        ("X-ZeroCopy: 20/10:5/10\n\n", BadHead::Instruction),
        ("X-Sendfile: /a\nX-Accel-Redirect: /b\n\n", BadHead::Instruction),
        ("X-Sendfile: /a\nX-Sendfile: /a\n\n", BadHead::Instruction),
    ] {
        assert_eq!(parse(text), Err(bad), "{text:?}");
    }
}

#[test]
fn a_length_may_be_told_twice() {
    let text = "Content-Length: 5\nContent-Length: 05\nX: y\n\n";
    assert_eq!(parse(text).unwrap().content_length(), Some(5));
    assert_eq!(answer(text, MODERN), "HTTP/1.1 200 OK\r\nServer: baton\r\nX: y\r\nContent-Length: 5\r\n\r\n");
}

#[test]
fn what_belongs_to_the_connection_or_speaks_to_the_server_is_kept_back() {
    let text = "Connection: keep-alive, X\nKeep-Alive: 5\nTransfer-Encoding: gzip\nTrailer: X\nUpgrade: h2c\n\
        TE: x\nProxy-Connection: x\nDate: never\nServer: other\nStatus: 200 OK\nX-ZeroCopy: 0/1\n\
        X-Accel-Buffering: no\nX-Accel-Limit-Rate: 5\nX-Accelerate: yes\nSet-Cookie: a\nSet-Cookie:b \t\n\n";
    let head = parse(text).unwrap();
    let forwarded: Vec<_> = head.forwarded().collect();
    let expected = [("X-Accelerate", "yes"), ("Set-Cookie", "a"), ("Set-Cookie", "b")];
    assert_eq!(forwarded, expected.map(|(name, value)| (name.as_bytes(), value.as_bytes())));
}

#[test]
fn heads_for_clients() {
    let html = "Content-Type: text/html\n\n";
    let start = "HTTP/1.1 200 OK\r\nServer: baton\r\nContent-Type: text/html\r\n";
    for (client, body_len, end) in [
        (MODERN, None, "Transfer-Encoding: chunked\r\n\r\n"),
        (MODERN, Some(7), "Content-Length: 7\r\n\r\n"),
        (MODERN, Some(0), "Content-Length: 0\r\n\r\n"),
        (Client { keep: false, ..MODERN }, None, "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"),
        (OLD, None, "Connection: close\r\n\r\n"),
        (OLD, Some(7), "Content-Length: 7\r\nConnection: keep-alive\r\n\r\n"),
        (HEAD, None, "\r\n"),
        (HEAD, Some(0), "\r\n"),
        (Client { minor: 0, ..HEAD }, None, "Connection: keep-alive\r\n\r\n"),
    ] {
        assert_eq!(answer_with(html, body_len, client), format!("{start}{end}"), "{client:?} {body_len:?}");
    }
    let told = "Content-Length: 9\nContent-Type: text/html\n\n";
    for client in [MODERN, HEAD] {
        assert_eq!(answer_with(told, Some(7), client), format!("{start}Content-Length: 9\r\n\r\n"));
    }
}

#[test]
fn answers_without_a_body_tell_no_length() {
    for (status, client) in
        [("204 No Content", MODERN), ("304 Not Modified", MODERN), ("304 Not Modified", HEAD)]
    {
        let text = format!("Status: {status}\nContent-Length: 9\nETag: \"a\"\n\n");
        let expected = format!("HTTP/1.1 {status}\r\nServer: baton\r\nETag: \"a\"\r\n\r\n");
        assert_eq!(answer_with(&text, Some(9), client), expected);
    }
    // Except for 205, whose body is empty.
    for client in [MODERN, HEAD] {
        let text = "Status: 205 Reset Content\nContent-Length: 9\nETag: \"a\"\n\n";
        let expected =
            "HTTP/1.1 205 Reset Content\r\nServer: baton\r\nETag: \"a\"\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(answer_with(text, None, client), expected);
    }
    let missing_phrase = answer("Status: 204\n\n", OLD);
    assert_eq!(missing_phrase, "HTTP/1.1 204 \r\nServer: baton\r\nConnection: keep-alive\r\n\r\n");
}

/// Goal: the lines before the offered fields edit the application's fields, names in any case.
#[test]
fn edits_change_the_applications_fields() {
    let head = parse("X-A: 1\nx-b: 2\nX-B: 3\nX-C: 4\nContent-Length: 0\n\n").unwrap();
    let client = Client { minor: 1, keep: true, head: false };
    let made = |fields: &str| {
        let mut text = Vec::new();
        head.push_http_head(&mut text, Framing::Length(0), client, fields.as_bytes());
        let text = String::from_utf8(text).unwrap();
        let text = text.strip_prefix("HTTP/1.1 200 OK\r\n").unwrap();
        text.strip_suffix("Content-Length: 0\r\n\r\n").unwrap().to_owned()
    };
    let own = "X-A: 1\r\nx-b: 2\r\nX-B: 3\r\nX-C: 4\r\n";
    for (fields, expected) in [
        ("", own.to_owned()),
        ("Server: s\r\n", format!("Server: s\r\n{own}")),
        ("/X-B\r\nServer: s\r\n", "Server: s\r\nX-A: 1\r\nX-C: 4\r\n".into()),
        ("/X-B\r\n/x-a\r\n/X-None\r\nX-B: s\r\n", "X-B: s\r\nX-C: 4\r\n".into()),
        ("?X-A: d\r\n?X-D: a: b\r\nServer: s\r\n", format!("Server: s\r\n{own}X-D: a: b\r\n")),
        ("/X-B\r\n?X-B: d\r\n", "X-A: 1\r\nX-C: 4\r\nX-B: d\r\n".into()),
        ("?Content-Length: 7\r\n?X: y\r\n?x: z\r\n", format!("{own}Content-Length: 7\r\nX: y\r\nx: z\r\n")),
        ("+X-D: d\r\n+x-d: D\r\n+X-D: e\r\n", format!("{own}X-D: d, e\r\n")),
        ("+X-B: 3\r\n+X-B: 4\r\n", "X-A: 1\r\nX-C: 4\r\nX-B: 2, 3, 4\r\n".into()),
        ("/X-B\r\n+X-B: 4\r\n", "X-A: 1\r\nX-C: 4\r\nX-B: 4\r\n".into()),
        ("+X-B: *\r\n+X-B: 4\r\n", "X-A: 1\r\nX-C: 4\r\nX-B: *\r\n".into()),
    ] {
        assert_eq!(made(fields), expected, "{fields:?}");
    }
    let mut fields = Vec::new();
    push_drop(&mut fields, "X-B");
    push_default(&mut fields, "X-A", "d");
    push_join(&mut fields, "Vary", "Origin");
    assert_eq!(fields, b"/X-B\r\n?X-A: d\r\n+Vary: Origin\r\n");
}

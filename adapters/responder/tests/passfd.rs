//! Answers on the client's own socket.

mod rig;

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use baton_fcgi::offer::Client as About;
use baton_fcgi::{AnswerOutcome, Answered, Declined};
use baton_responder::Request;
use rig::{Client, FIELDS, HTTP_1_0, HTTP_1_1, Reply, Server, application, split, text, unchunk};

/// Longer than any test: only requested hand-backs happen.
const PATIENT_MS: u32 = 60_000;

/// One request, answered by `answer`: the client's bytes, and the server's records.
fn exchange(about: About, answer: impl Fn(&mut Request<'_>) + Send + 'static) -> (Vec<u8>, Reply) {
    let (_dir, path) = application(answer);
    let mut server = Server::connect(&path);
    let client = Client::new();
    server.pass(&client, about, PATIENT_MS, &[("REQUEST_METHOD", "GET")], b"");
    let reply = server.reply();
    (client.received(), reply)
}

/// The same for output that is written at once.
fn output(about: About, output: &[u8]) -> (Vec<u8>, Reply) {
    let output = output.to_vec();
    exchange(about, move |request| request.write_all(&output).unwrap())
}

fn completely(status: u16, response: &[u8], body_bytes: u64, may_go_on: bool) -> Answered {
    let head_bytes = split(response).0.len() as u64;
    Answered { complete: true, may_go_on, outcome: AnswerOutcome::Complete, status, head_bytes, body_bytes }
}

#[test]
fn a_declared_length_is_passed_on_and_the_connection_goes_on() {
    let (response, reply) = output(HTTP_1_1, b"Content-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello");
    let expected =
        format!("HTTP/1.1 200 OK\r\n{FIELDS}Content-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(String::from_utf8_lossy(&response), expected);
    assert_eq!(reply.answered, Some(completely(200, &response, 5, true)));
    assert_eq!((reply.end, reply.rest, reply.stdout.len()), (Some(0), None, 0));
}

#[test]
fn the_length_of_a_small_response_is_computed() {
    let (response, reply) = exchange(HTTP_1_1, |request| {
        for piece in ["Content-", "Type: text/plain\n", "\n", "hel", "lo"] {
            request.write_all(piece.as_bytes()).unwrap();
        }
    });
    let (head, body) = split(&response);
    assert!(head.ends_with("Content-Length: 5\r\n\r\n"), "{head}");
    assert!(!head.contains("Connection") && !head.contains("chunked"), "{head}");
    assert_eq!(body, b"hello");
    assert_eq!(reply.answered, Some(completely(200, &response, 5, true)));
}

#[test]
fn a_large_body_of_a_declared_length_arrives_whole() {
    for bytes in [20_000, 300_000, 3_000_000] {
        let body = text(bytes);
        let head = format!("Content-Type: text/plain\r\nContent-Length: {bytes}\r\n\r\n");
        let expected = body.clone();
        let (response, reply) = {
            let (_dir, path) = application(move |request| {
                request.write_all(head.as_bytes()).unwrap();
                request.write_all(&body).unwrap();
            });
            let mut server = Server::connect(&path);
            let client = Client::new();
            server.pass(&client, HTTP_1_1, PATIENT_MS, &[], b"");
            let mut near = client.near.try_clone().unwrap();
            let reader = std::thread::spawn(move || {
                let mut received = Vec::new();
                near.read_to_end(&mut received).unwrap();
                received
            });
            let reply = server.reply();
            drop(client.far);
            (reader.join().unwrap(), reply)
        };
        assert!(split(&response).1 == expected, "{bytes} bytes");
        assert_eq!(reply.answered, Some(completely(200, &response, bytes as u64, true)));
    }
}

#[test]
fn an_unknown_length_is_chunked() {
    let (response, reply) = exchange(HTTP_1_1, |request| {
        write!(request, "Content-Type: text/plain\r\n\r\none ").unwrap();
        request.flush().unwrap();
        write!(request, "two ").unwrap();
        request.flush().unwrap();
        request.flush().unwrap();
        request.write_all(&text(100_000)).unwrap();
        for line in text(150_000).chunks(24) {
            request.write_all(line).unwrap();
        }
    });
    let (head, body) = split(&response);
    assert!(head.ends_with("Transfer-Encoding: chunked\r\n\r\n"), "{head}");
    assert!(!head.contains("Content-Length"), "{head}");
    assert!(body.starts_with(b"4\r\none \r\n4\r\ntwo \r\n"), "a flush is seen at once");
    let expected = [b"one two ".to_vec(), text(100_000), text(150_000)].concat();
    assert!(unchunk(&body) == expected);
    assert_eq!(reply.answered, Some(completely(200, &response, 250_008, true)));
}

#[test]
fn without_chunks_the_end_of_the_connection_ends_the_body() {
    let (response, reply) = exchange(HTTP_1_0, |request| {
        write!(request, "Content-Type: text/plain\r\n\r\none ").unwrap();
        request.flush().unwrap();
        write!(request, "two").unwrap();
    });
    let (head, body) = split(&response);
    assert!(head.ends_with("Connection: close\r\n\r\n"), "{head}");
    assert_eq!(body, b"one two");
    assert_eq!(reply.answered, Some(completely(200, &response, 7, false)));
}

#[test]
fn what_becomes_of_the_connection_is_said() {
    let (response, reply) = output(HTTP_1_0, b"Content-Type: text/plain\r\n\r\nhello");
    assert!(split(&response).0.ends_with("Content-Length: 5\r\nConnection: keep-alive\r\n\r\n"));
    assert!(reply.answered.unwrap().may_go_on);
    let closes = About { keep: false, ..HTTP_1_1 };
    let (response, reply) = output(closes, b"Content-Type: text/plain\r\n\r\nhello");
    assert!(split(&response).0.ends_with("Content-Length: 5\r\nConnection: close\r\n\r\n"));
    assert!(!reply.answered.unwrap().may_go_on);
}

#[test]
fn head_gets_the_fields_alone() {
    let head = About { head: true, ..HTTP_1_1 };
    let (response, reply) = output(head, b"Content-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello");
    let (fields, body) = split(&response);
    assert!(fields.ends_with("Content-Length: 5\r\n\r\n"), "{fields}");
    assert_eq!(body, b"");
    assert_eq!(reply.answered, Some(completely(200, &response, 0, true)));
    // An application may omit the body itself.
    let (response, reply) = output(head, b"Content-Type: text/plain\r\nContent-Length: 5\r\n\r\n");
    assert_eq!(reply.answered, Some(completely(200, &response, 0, true)));
}

#[test]
fn some_statuses_have_no_body() {
    for (status, line, length) in [
        (204, "204 No Content", ""),
        (304, "304 Not Modified", ""),
        (205, "205 Reset Content", "Content-Length: 0\r\n"),
    ] {
        let (response, reply) =
            output(HTTP_1_1, format!("Status: {line}\r\nX-A: b\r\n\r\nnonsense").as_bytes());
        let expected = format!("HTTP/1.1 {line}\r\n{FIELDS}X-A: b\r\n{length}\r\n");
        assert_eq!(String::from_utf8_lossy(&response), expected);
        assert_eq!(reply.answered, Some(completely(status, &response, 0, true)));
    }
}

#[test]
fn statuses_and_redirects_are_those_of_the_application() {
    for (fields, line) in [
        ("Status: 404 Gone Fishing\r\nContent-Type: text/plain", "HTTP/1.1 404 Gone Fishing\r\n"),
        ("Location: http://example.org/", "HTTP/1.1 302 Found\r\n"),
        ("Status: 201 Created\r\nLocation: /here", "HTTP/1.1 201 Created\r\n"),
    ] {
        let (response, reply) = output(HTTP_1_1, format!("{fields}\r\n\r\n").as_bytes());
        let (head, body) = split(&response);
        assert!(head.starts_with(line), "{head}");
        assert!(!head.contains("Status:") && head.ends_with("Content-Length: 0\r\n\r\n"), "{head}");
        assert_eq!((body.len(), reply.answered.unwrap().complete), (0, true));
    }
}

/// Responses with instructions go to the server in the ordinary way, from the first byte on; the client gets nothing.
#[test]
fn what_only_the_server_can_do_is_declined() {
    let long = format!("X-Long: {}\r\n\r\n", "x".repeat(17 << 10));
    let large = [&b"X-Sendfile: /f\r\n\r\n"[..], &text(200_000)].concat();
    for declined in [
        &b"X-Sendfile: /file\r\n\r\n"[..],
        b"X-ZeroCopy: 0/5\r\nContent-Type: text/plain\r\n\r\nA.htm",
        b"X-Accel-Redirect: /elsewhere\r\n\r\n",
        b"Location: /elsewhere\r\n\r\n",
        b"this is no head\r\n\r\nbody",
        b"Content-Type: text/plain\r\nX-Cut: in the mid",
        b"",
        long.as_bytes(),
        &large,
    ] {
        let (response, reply) = output(HTTP_1_1, declined);
        assert_eq!(response, b"");
        assert!(reply.stdout == declined, "{:?}", String::from_utf8_lossy(&reply.stdout));
        assert_eq!((reply.answered, reply.rest, reply.end), (None, None, Some(0)));
    }
}

/// What the server codes, by the offer, goes to the server, which learns why; all else goes to the client. A server whose offer
/// says nothing of codings does not know the record with the reason, and gets none.
#[test]
fn what_the_server_codes_is_declined() {
    let terms = format!("~1024 text/* *+json\r\n{FIELDS}");
    let for_others = format!("~- text/*\r\n{FIELDS}");
    let page = [&b"Content-Type: text/html\r\n\r\n"[..], &text(3000)].concat();
    let image = [&b"Content-Type: image/png\r\n\r\n"[..], &text(3000)].concat();
    let coded = [&b"Content-Type: text/html\r\nContent-Encoding: br\r\n\r\n"[..], &text(3000)].concat();
    let named = b"X-Sendfile: /file\r\n\r\n".to_vec();
    let long = format!("X-Long: {}\r\n\r\n", "x".repeat(17 << 10)).into_bytes();
    let short = b"Content-Type: text/html\r\nVary: Cookie\r\n\r\nshort".to_vec();
    for (fields, output, declined, varies) in [
        (&*terms, &page, Some(Declined::Coded), ""),
        (&terms, &named, Some(Declined::Instruction), ""),
        (&terms, &long, Some(Declined::Head), ""),
        (&terms, &image, None, ""),
        (&terms, &coded, None, ""),
        (&terms, &short, None, "Vary: Cookie, Accept-Encoding\r\n"),
        (&for_others, &page, None, "Vary: Accept-Encoding\r\n"),
        (FIELDS, &page, None, ""),
    ] {
        let (_dir, path) = application({
            let output = output.clone();
            move |request| request.write_all(&output).unwrap()
        });
        let mut server = Server::connect(&path);
        let client = Client::new();
        server.pass_with(&client, HTTP_1_1, PATIENT_MS, fields, &[("REQUEST_METHOD", "GET")], b"");
        let reply = server.reply();
        assert_eq!((reply.declined, reply.end), (declined, Some(0)), "{fields}");
        let received = client.received();
        if declined.is_some() {
            assert!(received.is_empty() && reply.stdout == *output, "all of it is the server's");
            continue;
        }
        let (head, body) = split(&received);
        assert!(output.ends_with(&body) && reply.answered.is_some(), "{head}");
        assert_eq!(head.contains("Vary"), !varies.is_empty(), "{head}");
        assert!(head.contains(varies), "{head}");
    }
    let (_, reply) = output(HTTP_1_1, &named);
    assert_eq!((reply.declined, reply.stdout), (None, named), "an older server");
}

#[test]
fn a_body_that_breaks_its_word_is_reported_or_cut() {
    let (response, reply) = output(HTTP_1_1, b"Content-Length: 10\r\nX-A: b\r\n\r\nshort");
    assert_eq!(split(&response).1, b"short");
    let answered = reply.answered.unwrap();
    assert_eq!(answered.outcome, AnswerOutcome::ApplicationFailed);
    assert_eq!((answered.complete, answered.may_go_on, answered.body_bytes), (false, false, 5));
    let (response, reply) = output(HTTP_1_1, b"Content-Length: 3\r\nX-A: b\r\n\r\ntoo long");
    assert_eq!(split(&response).1, b"too");
    assert_eq!(reply.answered, Some(completely(200, &response, 3, true)));
}

#[test]
fn a_client_that_goes_away_ends_its_own_request_only() {
    let (_dir, path) = application(|request| {
        write!(request, "Content-Type: text/plain\r\n\r\n").unwrap();
        let mut body = [0; 1];
        // The test says when the client is gone.
        if request.read(&mut body).unwrap() == 0 {
            request.write_all(b"hello").unwrap();
            return;
        }
        let mut results = (0..100).map(|_| request.write_all(&text(50_000)).map_err(|error| error.kind()));
        assert!(results.any(|result| result == Err(std::io::ErrorKind::BrokenPipe)));
        request.log(b"the client was gone").unwrap();
    });
    let mut server = Server::connect(&path);
    let client = Client::new();
    rustix::net::sockopt::set_socket_linger(&client.near, Some(Duration::ZERO)).unwrap();
    let Client { near, far } = client;
    drop(near);
    let client = Client { near: far.try_clone().unwrap(), far };
    server.pass(&client, HTTP_1_1, PATIENT_MS, &[], b"x");
    let reply = server.reply();
    let answered = reply.answered.unwrap();
    assert_eq!((answered.outcome, answered.complete), (AnswerOutcome::ClientGone, false));
    assert_eq!((reply.stderr, reply.end), (b"the client was gone".to_vec(), Some(0)));

    let client = Client::new();
    server.pass(&client, HTTP_1_1, PATIENT_MS, &[], b"");
    assert!(server.reply().answered.unwrap().complete);
    assert_eq!(split(&client.received()).1, b"hello");
}

/// The client's part and the handed-back part make the complete response, with any framing.
#[test]
fn a_slow_client_is_handed_back() {
    const BYTES: usize = 2_000_000;
    for (about, fields) in [
        (HTTP_1_1, format!("Content-Length: {BYTES}\r\nX-A: b\r\n\r\n")),
        (HTTP_1_1, "X-A: b\r\n\r\n".to_owned()),
        (HTTP_1_0, "X-A: b\r\n\r\n".to_owned()),
    ] {
        let (_dir, path) = application(move |request| {
            request.write_all(fields.as_bytes()).unwrap();
            for piece in text(BYTES).chunks(BYTES / 4) {
                request.write_all(piece).unwrap();
            }
        });
        let mut server = Server::connect(&path);
        let client = Client::narrow();
        server.pass(&client, about, 20, &[], b"");
        let reply = server.reply();
        let rest = reply.rest.expect("a rest");
        assert_eq!((reply.answered, reply.end, rest.status), (None, Some(0), 200));
        assert_eq!(rest.may_go_on, about.minor == 1);
        assert!(reply.stdout.is_empty());
        let taken = client.received();
        let response = [&taken[..], &reply.wire].concat();
        let (head, body) = split(&response);
        assert_eq!(rest.head_sent, head.len() as u64);
        let body = if head.contains("chunked") { unchunk(&body) } else { body };
        assert!(body == text(BYTES), "{head}");
        let framing = if head.contains("chunked") { 16 } else { 0 };
        let body_taken = (taken.len() - head.len()) as u64;
        assert!((rest.body_sent..=rest.body_sent + framing).contains(&body_taken), "{rest:?}");
    }
}

#[test]
fn the_server_can_ask_for_the_connection() {
    let (_dir, path) = application(|request| {
        write!(request, "Content-Length: 2000000\r\nX-A: b\r\n\r\n").unwrap();
        request.write_all(&text(2_000_000)).unwrap();
    });
    let mut server = Server::connect(&path);
    let client = Client::narrow();
    server.pass(&client, HTTP_1_1, PATIENT_MS, &[], b"");
    // The application is in the middle of the response when the client has a byte of it.
    client.near.peek(&mut [0]).unwrap();
    server.ask_back();
    let reply = server.reply();
    assert!(reply.rest.is_some());
    let response = [client.received(), reply.wire].concat();
    assert!(split(&response).1 == text(2_000_000));
}

/// A response that never fills the socket is handed back between two of its pieces.
#[test]
fn the_server_can_ask_for_a_connection_that_is_not_slow() {
    static ENOUGH: AtomicBool = AtomicBool::new(false);
    let (_dir, path) = application(|request| {
        write!(request, "X-A: b\r\n\r\n").unwrap();
        while !ENOUGH.load(Ordering::Relaxed) {
            request.write_all(b"tick").unwrap();
            request.flush().unwrap();
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let mut server = Server::connect(&path);
    let client = Client::new();
    server.pass(&client, HTTP_1_1, PATIENT_MS, &[], b"");
    client.near.peek(&mut [0]).unwrap();
    server.ask_back();
    let mut reply = Reply::default();
    server.collect(&mut reply, |reply| reply.wire.len() > 10);
    ENOUGH.store(true, Ordering::Relaxed);
    server.collect(&mut reply, |reply| reply.end.is_some());
    let response = [client.received(), reply.wire].concat();
    let body = unchunk(&split(&response).1);
    assert!(body.len() >= 8 && body.chunks(4).all(|tick| tick == b"tick"));
}

/// After a hand-back the server cannot check the length: the application closes the connection instead.
#[test]
fn a_short_body_after_a_hand_back_has_no_end() {
    let (_dir, path) = application(|request| {
        write!(request, "Content-Length: 3000000\r\nX-A: b\r\n\r\n").unwrap();
        request.write_all(&text(2_000_000)).unwrap();
    });
    let mut server = Server::connect(&path);
    let client = Client::narrow();
    server.pass(&client, HTTP_1_1, 20, &[], b"");
    let reply = server.reply();
    assert!(reply.rest.is_some());
    assert_eq!(reply.end, None);
}

#[test]
fn an_application_that_panics_ends_nothing() {
    let (_dir, path) = application(|request| {
        write!(request, "Content-Length: 10\r\nX-A: b\r\n\r\nhalf").unwrap();
        request.flush().unwrap();
        std::panic::panic_any("as the test wants it");
    });
    let mut server = Server::connect(&path);
    let client = Client::new();
    server.pass(&client, HTTP_1_1, PATIENT_MS, &[], b"");
    let reply = server.reply();
    assert_eq!((reply.answered, reply.rest, reply.end), (None, None, None));
    assert_eq!(split(&client.received()).1, b"half");
}

#[test]
fn offers_are_hidden_and_bodies_arrive() {
    let (_dir, path) = application(|request| {
        let mut body = Vec::new();
        request.read_to_end(&mut body).unwrap();
        let names: Vec<_> =
            request.variables().map(|(name, _)| String::from_utf8(name.to_vec()).unwrap()).collect();
        write!(request, "Content-Type: text/plain\r\n\r\n{} {}", names.join(","), body.len()).unwrap();
        request.log(b"done").unwrap();
        request.set_exit_status(7);
    });
    let mut server = Server::connect(&path);
    for bytes in [0, 1, 70_000, 1_000_000] {
        let client = Client::new();
        server.pass(&client, HTTP_1_1, PATIENT_MS, &[("A", "1"), ("B", "2")], &text(bytes));
        let reply = server.reply();
        assert_eq!((reply.end, reply.stderr), (Some(7), b"done".to_vec()));
        assert_eq!(split(&client.received()).1, format!("A,B {bytes}").into_bytes());
    }
}

/// An offer that makes no sense, or that this library does not know, costs the client nothing: its descriptor is closed,
/// and the server gets the answer.
#[test]
fn strange_offers_are_declined() {
    let (_dir, path) = application(|request| request.write_all(b"X-A: b\n\nhello").unwrap());
    let mut server = Server::connect(&path);
    for offer in [
        "passfd fds=1 minor=7\n",
        "teleport fds=1\n",
        "shm fds=1 size=4096 at=0 free=4096\n",
        "passfd fds=x\n",
    ] {
        let client = Client::new();
        server.offer(offer, Some(&client));
        let reply = server.reply();
        assert_eq!((reply.stdout, reply.end), (b"X-A: b\n\nhello".to_vec(), Some(0)), "{offer}");
        assert_eq!(client.received(), b"");
    }
    // A later offer has its own descriptor.
    let client = Client::new();
    server.pass(&client, HTTP_1_1, PATIENT_MS, &[], b"");
    assert!(server.reply().answered.unwrap().complete);
    assert_eq!(split(&client.received()).1, b"hello");
}

/// Applications may write a body that the response cannot have, larger than any buffer.
#[test]
fn output_without_a_place_in_the_response_is_dropped() {
    for (about, fields) in [
        (About { head: true, ..HTTP_1_1 }, "Content-Type: text/plain"),
        (HTTP_1_1, "Content-Length: 5"),
        (HTTP_1_1, "Status: 204 No Content"),
        (HTTP_1_1, "Status: 205 Reset Content"),
    ] {
        let (response, reply) = exchange(about, move |request| {
            write!(request, "{fields}\r\nX-A: b\r\n\r\n").unwrap();
            for line in text(200_000).chunks(24) {
                let space = request.space().unwrap();
                let now = space.len().min(line.len());
                space[..now].copy_from_slice(&line[..now]);
                request.commit(now);
            }
        });
        let (head, body) = split(&response);
        assert_eq!(body, &text(5)[..if fields.contains("Length") { 5 } else { 0 }], "{head}");
        assert!(reply.answered.unwrap().complete);
    }
}

/// More may follow each write; the application continues when the client has it.
#[test]
fn slow_output_is_not_held_back() {
    let (seen, is_seen) = std::sync::mpsc::channel();
    let (_dir, path) = application(move |request| {
        write!(request, "Content-Type: text/plain\r\n\r\n").unwrap();
        for number in 0..3_u8 {
            std::thread::sleep(Duration::from_millis(600));
            request.write_all(&[b'a' + number; 9000]).unwrap();
            is_seen.recv().unwrap();
        }
    });
    let mut server = Server::connect(&path);
    let mut client = Client::new();
    server.pass(&client, HTTP_1_0, PATIENT_MS, &[], b"");
    let mut received = Vec::new();
    for number in 0..3_u8 {
        while received.iter().filter(|byte| **byte == b'a' + number).count() < 9000 {
            let mut piece = [0; 9000];
            let read = client.near.read(&mut piece).expect("the output, before the application continues");
            received.extend_from_slice(&piece[..read]);
        }
        seen.send(()).unwrap();
    }
    assert!(server.reply().answered.is_some_and(|answered| answered.complete));
}

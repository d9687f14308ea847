//! Persistence of connections, and bytes between requests.

use crate::common::server::Server;
use crate::museum::pattern_of;

crate::protocols::over_http1!(
    a_connection_lasts_as_long_as_both_sides_wish,
    a_request_that_arrives_byte_by_byte_is_one_request,
    a_head_may_be_split_anywhere,
    an_answer_does_not_wait_for_the_next_request,
    bodies_are_discarded,
    a_body_may_trickle_in,
    a_client_that_expects_100_gets_the_final_status,
    who_expects_100_in_vain_gets_no_second_chance,
    a_few_empty_lines_before_a_request_are_skipped,
    a_half_closed_client_gets_its_answers,
);

/// Asks in every combination of version and `Connection`; tries a second request where the connection should last.
fn a_connection_lasts_as_long_as_both_sides_wish(server: &Server) {
    for (version, option, told) in [
        ("1.1", "", None),
        ("1.1", "Connection: keep-alive\r\n", None),
        ("1.1", "Connection: close\r\n", Some("close")),
        ("1.1", "Connection: Close\r\n", Some("close")),
        ("1.1", "Connection: foo, CLOSE ,bar\r\n", Some("close")),
        ("1.1", "Connection: keep-alive\r\nConnection: close\r\n", Some("close")),
        ("1.1", "Connection: closed\r\n", None),
        ("1.0", "", Some("close")),
        ("1.0", "Connection: close\r\n", Some("close")),
        ("1.0", "Connection: keep-alive\r\n", Some("keep-alive")),
        ("1.0", "Connection: Keep-Alive, foo\r\n", Some("keep-alive")),
        ("1.0", "Connection: keep-alive, close\r\n", Some("close")),
    ] {
        for path in ["/small.txt", "/1m.bin", "/none", "/empty.txt"] {
            let mut client = server.connect();
            client.send(format!("GET {path} HTTP/{version}\r\nHost: localhost\r\n{option}\r\n"));
            let response = client.response();
            assert_eq!(response.field("connection"), told, "{version} {option:?} {path}");
            if told == Some("close") {
                client.expect_end();
            } else {
                assert_eq!(client.get("/small.txt").text(), "small\n", "{version} {option:?} {path}");
            }
        }
    }
}

/// Sends every byte on its own.
fn a_request_that_arrives_byte_by_byte_is_one_request(server: &Server) {
    let mut client = server.connect();
    for _ in 0..2 {
        for byte in b"GET /small.txt?query HTTP/1.1\r\nHost: localhost\r\nX-Y: z\r\n\r\n" {
            client.send([*byte]);
        }
        assert_eq!(client.response().text(), "small\n");
    }
}

/// Splits a head in two at each position, on one connection.
fn a_head_may_be_split_anywhere(server: &Server) {
    let request = b"GET /alphabet.txt HTTP/1.1\r\nHost: localhost\r\nRange: bytes=1-3\r\n\r\n";
    let mut client = server.connect();
    for at in 1..request.len() {
        client.send(&request[..at]);
        // Time for the server to read the first part alone; without it the test is only weaker.
        std::thread::sleep(std::time::Duration::from_micros(500));
        client.send(&request[at..]);
        let response = client.response();
        assert_eq!((response.status, response.text()), (206, "bcd"), "split at {at}");
    }
}

/// Sends one request and the beginning of another.
fn an_answer_does_not_wait_for_the_next_request(server: &Server) {
    let mut client = server.connect();
    client.send("GET /small.txt HTTP/1.1\r\nHost: localhost\r\n\r\nGET /alphabet.txt HT");
    assert_eq!(client.response().text(), "small\n");
    client.send("TP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.response().text(), crate::museum::ALPHABET);
}

/// A request with a body in every framing, and the next request after it, in one write. The bodies look like
/// requests, which must not be answered.
fn bodies_are_discarded(server: &Server) {
    let request = "GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let size = request.len();
    let long = "x".repeat(70_000);
    for (fields, body) in [
        ("Content-Length: 0".to_owned(), String::new()),
        (format!("Content-Length: {size}"), request.to_owned()),
        (format!("Content-Length: {:>07}", size), request.to_owned()),
        ("Content-Length: 70000".to_owned(), long.clone()),
        ("Transfer-Encoding: chunked".to_owned(), "0\r\n\r\n".to_owned()),
        ("Transfer-Encoding: chunked".to_owned(), format!("{size:x}\r\n{request}\r\n0\r\n\r\n")),
        ("Transfer-Encoding: Chunked".to_owned(), format!("{size:X}\r\n{request}\r\n00\r\n\r\n")),
        ("transfer-encoding:chunked".to_owned(), format!("11170\r\n{long}\r\n0\r\n\r\n")),
        (
            "Transfer-Encoding: chunked".to_owned(),
            "1;name=value\r\na\r\n2 ; x=\"y\"\r\nbc\r\n0;last\r\nTrailer: value\r\nOther:\r\n\r\n".to_owned(),
        ),
    ] {
        for (method, status) in [("GET", 200), ("POST", 405), ("PUT", 405), ("OPTIONS", 204), ("BREW", 501)] {
            let mut client = server.connect();
            client.send(format!(
                "{method} /small.txt HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n\r\n{body}\
                 GET /alphabet.txt HTTP/1.1\r\nHost: localhost\r\n\r\n"
            ));
            assert_eq!(client.response().status, status, "{method} {fields}");
            assert_eq!(client.response().text(), crate::museum::ALPHABET, "{method} {fields}");
            client.finish_sending();
            client.expect_end();
        }
    }
}

/// Sends a chunked body byte by byte, then another request.
fn a_body_may_trickle_in(server: &Server) {
    let mut client = server.connect();
    client.send("GET /small.txt HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
    for byte in b"5;x=y\r\nGET /\r\n3\r\n\r\n\r\r\n0\r\nA: b\r\n\r\n" {
        client.send([*byte]);
    }
    assert_eq!(client.response().text(), "small\n");
    assert_eq!(client.get("/1k.bin").body, pattern_of("1k.bin"));
}

/// RFC 9110, 10.1.1: the final status instead of `100 Continue`, and the end of the connection, since the body may or
/// may not follow. A client that sends the body at once keeps its connection.
fn a_client_that_expects_100_gets_the_final_status(server: &Server) {
    for framing in ["Content-Length: 5", "Transfer-Encoding: chunked"] {
        let head = format!(
            "GET /small.txt HTTP/1.1\r\nHost: localhost\r\nExpect: 100-Continue\r\n{framing}\r\n\r\n"
        );
        let body = if framing.starts_with('C') { "GET /" } else { "1\r\nx\r\n0\r\n\r\n" };
        let mut client = server.connect();
        client.send(&head);
        let response = client.response();
        assert_eq!((response.text(), response.field("connection")), ("small\n", Some("close")), "{framing}");
        client.expect_end();

        let mut client = server.connect();
        client.send(format!("{head}{body}"));
        let response = client.response();
        assert_eq!((response.text(), response.field("connection")), ("small\n", None), "{framing}");
        assert_eq!(client.get("/small.txt").status, 200);
    }
    // Without a body there is nothing to continue, and HTTP/1.0 does not know of it.
    let mut client = server.connect();
    assert_eq!(client.ask("GET", "/small.txt", "Expect: 100-continue\r\n").status, 200);
    client.send("GET /small.txt HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx");
    assert_eq!(client.response().status, 200);
}

/// Expects 100 for a body that is refused. Whether the body follows is unknown, so the connection ends.
fn who_expects_100_in_vain_gets_no_second_chance(server: &Server) {
    for (method, status) in [("POST", 405), ("BREW", 501)] {
        let mut client = server.connect();
        client.send(format!(
            "{method} /small.txt HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"
        ));
        let response = client.response();
        assert_eq!((response.status, response.field("connection")), (status, Some("close")), "{method}");
        client.expect_end();
    }
}

/// RFC 9112, 2.2.
fn a_few_empty_lines_before_a_request_are_skipped(server: &Server) {
    let mut client = server.connect();
    for lines in ["\r\n", "\r\n\r\n", "\r\n\r\n\r\n\r\n"] {
        client.send(format!("{lines}GET /small.txt HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        assert_eq!(client.response().text(), "small\n");
    }
}

/// Closes its half of the connection after its requests. The server then ends the connection at once, not after the
/// idle timeout, whether the FIN arrives with the requests or later.
fn a_half_closed_client_gets_its_answers(server: &Server) {
    for _ in 0..50 {
        let mut client = server.connect();
        assert_eq!(client.get("/empty.txt").status, 200);
        for path in ["/small.txt", "/100k.bin"] {
            client.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        }
        client.finish_sending();
        assert_eq!(client.response().text(), "small\n");
        assert!(client.response().body == pattern_of("100k.bin"));
        client.expect_end();
    }
}

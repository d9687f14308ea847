//! Answers that do not depend on the request's body: they leave at once, and the body is discarded afterwards.

use crate::common::server::Server;
use crate::museum::ALPHABET;

crate::protocols::over_http1!(
    an_unfinished_body_delays_no_answer,
    a_request_behind_an_unfinished_body_is_answered,
    a_body_that_cannot_be_read_past_ends_the_connection,
    a_size_of_a_chunk_that_is_too_large_is_not_waited_on,
);

/// Heads of requests that need no body, each with the status that it gets and the framing of a body of five bytes.
fn heads() -> impl Iterator<Item = (String, u16, &'static str)> {
    let framings = [("Content-Length: 5", ""), ("Transfer-Encoding: chunked", "5\r\n")];
    let requests = [
        ("GET", "localhost", "/small.txt", 200),
        ("POST", "localhost", "/small.txt", 405),
        ("GET", "localhost", "/none", 404),
        ("POST", "routes.example", "/gone", 410),
        ("GET", "routes.example", "/old", 308),
        ("GET", "localhost", "/folder", 301),
        ("GET", "localhost", "/%00", 400),
        ("BREW", "localhost", "/small.txt", 501),
        ("OPTIONS", "localhost", "*", 204),
    ];
    framings.into_iter().flat_map(move |(framing, chunk)| {
        requests.into_iter().map(move |(method, host, path, status)| {
            (format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{framing}\r\n\r\n"), status, chunk)
        })
    })
}

/// The answer is read before the body is complete, or begun; then the body arrives, and the connection is kept.
fn an_unfinished_body_delays_no_answer(server: &Server) {
    let mut client = server.connect();
    for (head, status, chunk) in heads() {
        let tail = if chunk.is_empty() { "" } else { "\r\n0\r\n\r\n" };
        for begun in ["", "GE"] {
            let first = if begun.is_empty() { head.clone() } else { format!("{head}{chunk}{begun}") };
            client.send(&first);
            let response = client.response();
            assert_eq!((response.status, response.field("connection")), (status, None), "{first:?}");
            let rest = if begun.is_empty() { format!("{chunk}GET /{tail}") } else { format!("T /{tail}") };
            client.send(rest);
            assert_eq!(client.get("/alphabet.txt").text(), ALPHABET, "{first:?}");
        }
    }
}

/// The rest of the body and the next request come with one write.
fn a_request_behind_an_unfinished_body_is_answered(server: &Server) {
    let next = "GET /alphabet.txt HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for (head, status, chunk) in heads() {
        let mut client = server.connect();
        let tail = if chunk.is_empty() { "" } else { "\r\n0\r\n\r\n" };
        client.send(format!("{next}{head}"));
        assert_eq!(client.response().text(), ALPHABET);
        assert_eq!(client.response().status, status, "{head:?}");
        client.send(format!("{chunk}GET /{tail}{next}{next}"));
        assert_eq!(client.response().text(), ALPHABET, "{head:?}");
        assert_eq!(client.response().text(), ALPHABET, "{head:?}");
    }
}

/// After the answer the connection ends, and no part of the body is taken for a request.
fn a_body_that_cannot_be_read_past_ends_the_connection(server: &Server) {
    let smuggled = "GET /alphabet.txt HTTP/1.1\r\nHost: localhost\r\n\r\n";
    // More than `limits.body_bytes_max`.
    let long = "x".repeat((1 << 20) + 1);
    for rest in [
        smuggled.to_owned(),
        format!("-1\r\n{smuggled}"),
        format!("0\r\nX : y\r\n\r\n{smuggled}"),
        format!("100001\r\n{smuggled}"),
        format!("ffff\r\n{}\r\n{:x}\r\n{smuggled}", &long[..0xffff], 1 << 20),
    ] {
        let mut client = server.connect();
        client.send("POST /none HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
        assert_eq!(client.response().status, 405);
        client.send(&rest);
        client.expect_end();
    }
    let mut client = server.connect();
    client.send(format!("POST /none HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", long.len()));
    let response = client.response();
    assert_eq!((response.status, response.field("connection")), (413, Some("close")));
    client.expect_end();
}

/// Neither the end of the line nor a byte of the chunk need arrive.
fn a_size_of_a_chunk_that_is_too_large_is_not_waited_on(server: &Server) {
    for size in ["100001", "ffffffffffffffff\r\n", "ffffffffffffffff;x", "8\r\n12345678\r\nfffffffff"] {
        let mut client = server.connect();
        client.send(format!(
            "POST /small.txt HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n{size}"
        ));
        let response = client.response();
        assert_eq!((response.status, response.field("connection")), (413, Some("close")), "{size:?}");
        client.expect_end();
    }
}

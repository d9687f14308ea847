//! Refusals: the status, the reason, the end of the connection, and nothing after that.
//!
//! Every refused request is followed by one that the server must not answer: request smuggling needs servers that
//! parse such input differently.

use crate::common::server::Server;

crate::protocols::over_http1!(
    heads_that_are_no_heads,
    targets_that_are_no_targets,
    fields_that_are_no_fields,
    hosts_that_are_no_hosts,
    framings_that_can_be_read_in_two_ways,
    bodies_that_do_not_keep_to_their_framing,
    requests_before_a_refused_one_are_answered,
    garbage_is_refused_at_once,
);

/// Follows a refused request, in bytes that a lenient server might take for its body, and after the answer.
const SMUGGLED: &str = "GET /small.txt HTTP/1.1\r\nHost: localhost\r\nX-Smuggled: yes\r\n\r\n";

/// Sends a request that must be refused with this status.
fn refused(server: &Server, request: &str, status: u16) {
    let mut client = server.connect();
    client.send(format!("{request}{SMUGGLED}"));
    let response = client.response();
    assert_eq!(response.status, status, "{request:?}");
    assert_eq!(response.field("connection"), Some("close"), "{request:?}");
    assert_eq!(response.field("content-type"), Some("text/html; charset=utf-8"), "{request:?}");
    assert!(
        response.text().contains(&response.line["HTTP/1.1 ".len()..]),
        "{request:?}: {}",
        response.text()
    );
    // Our half is still open; nothing that is sent now is answered either.
    client.send(SMUGGLED);
    client.expect_end();
}

fn heads_that_are_no_heads(server: &Server) {
    for (request, status) in [
        ("GET /\r\n\r\n", 400),
        ("GET\r\n\r\n", 400),
        ("GET / HTTP/1.1\nHost: localhost\n\n", 400),
        ("GET / HTTP/1.1\r\nHost: localhost\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: localhost\r\n\n", 400),
        ("GET / HTTP/1.1\nHost: localhost\r\n\r\n", 400),
        ("GET / HTTP/1.1\rHost: localhost\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\r\nHost: localhost\r\n\r\n", 400),
        ("GET  / HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        ("GET /  HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        ("GET\t/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (" GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        ("GET / HTTP/1.1 \r\nHost: localhost\r\n\r\n", 400),
        ("G(T / HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        ("GET / HTTP/1.1x\r\nHost: localhost\r\n\r\n", 400),
        ("GET / http/1.1\r\nHost: localhost\r\n\r\n", 400),
        ("GET / HTTP/1\r\nHost: localhost\r\n\r\n", 400),
        ("GET / HTTP/2.0\r\nHost: localhost\r\n\r\n", 505),
        ("GET / HTTP/1.2\r\n\r\n", 400),
        ("GET / HTTP/1.10\r\nHost: localhost\r\n\r\n", 400),
        ("GET / HTTP/0.9\r\nHost: localhost\r\n\r\n", 505),
        // Almost the preface of HTTP/2.
        ("PRI * HTTP/2.0\r\n\r\nSM\r\nX: y\r\n\r\n", 505),
        ("\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        ("\n\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    ] {
        refused(server, request, status);
    }
}

fn targets_that_are_no_targets(server: &Server) {
    for target in [
        "small.txt",
        "*",
        "?x",
        "/a b",
        "/small.txt#fragment",
        "/small.txt?x#y",
        "http://\u{e9}/",
        "/\u{7f}",
        "/\u{1}",
        "localhost:80",
        "ftp://localhost/",
        "http:/localhost",
        "http://",
        "http:///small.txt",
        "http://user@localhost/",
        "http://localhost:port/",
        "http://localhost:99999/",
        "http://local host/",
        "http://[::1/",
    ] {
        refused(server, &format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400);
    }
    refused(server, "CONNECT / HTTP/1.1\r\nHost: localhost\r\n\r\n", 400);
    refused(server, "OPTIONS ** HTTP/1.1\r\nHost: localhost\r\n\r\n", 400);
}

fn fields_that_are_no_fields(server: &Server) {
    for (field, status) in [
        ("X : y", 400),
        ("X\t: y", 400),
        ("X y", 400),
        (": y", 400),
        ("X", 400),
        ("X: y\r\n folded", 400),
        ("X: y\r\n\tfolded", 400),
        ("X: y\r\n : z", 400),
        ("X: a\rb", 400),
        ("X: a\nb: c", 400),
        ("X: a\0b", 400),
        ("X: a\u{1b}[31mb", 400),
        ("X: \u{7f}", 400),
        ("X\0: y", 400),
        ("X(: y", 400),
        ("\u{e9}: y", 400),
        ("Expect: 200-ok", 417),
        ("Expect: 100-continue, other", 417),
    ] {
        refused(server, &format!("GET / HTTP/1.1\r\nHost: localhost\r\n{field}\r\n\r\n"), status);
        if !field.contains("folded") {
            refused(server, &format!("GET / HTTP/1.1\r\n{field}\r\nHost: localhost\r\n\r\n"), status);
        }
    }
    refused(server, "GET / HTTP/1.1\r\n Host: localhost\r\n\r\n", 400);
}

fn hosts_that_are_no_hosts(server: &Server) {
    refused(server, "GET / HTTP/1.1\r\n\r\n", 400);
    refused(server, "GET http://localhost/ HTTP/1.1\r\n\r\n", 400);
    refused(server, "GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400);
    refused(server, "GET / HTTP/1.0\r\nHost: a\r\nhost: b\r\n\r\n", 400);
    for host in [
        "a b",
        "a/b",
        "user@localhost",
        "a:b",
        "a:80:80",
        "a:99999",
        ":80",
        "[::1",
        "[x]",
        "::1",
        "a?b",
        "a#b",
        "a\\b",
        "\u{e9}",
    ] {
        refused(server, &format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"), 400);
        refused(server, &format!("GET http://localhost/ HTTP/1.1\r\nHost: {host}\r\n\r\n"), 400);
    }
}

/// CL.TE, TE.CL, TE.TE and their kin: what front-end and back-end could frame differently.
fn framings_that_can_be_read_in_two_ways(server: &Server) {
    for (fields, status) in [
        // Both, in either order and in disguise.
        ("Content-Length: 5\r\nTransfer-Encoding: chunked", 400),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5", 400),
        ("Content-Length: 0\r\nTransfer-Encoding: chunked", 400),
        ("Content-Length: 5\r\nTransfer-Encoding: identity", 400),
        ("Content-Length: 5\r\nTransfer-Encoding:", 400),
        ("content-length: 5\r\ntRANSFER-eNCODING: CHUNKED", 400),
        // Lengths that differ, repeat, or are no numbers.
        ("Content-Length: 5\r\nContent-Length: 6", 400),
        ("Content-Length: 5\r\nContent-Length: 5", 400),
        ("Content-Length: 5, 5", 400),
        ("Content-Length: 5, 6", 400),
        ("Content-Length: 5 5", 400),
        ("Content-Length: +5", 400),
        ("Content-Length: -5", 400),
        ("Content-Length: 0x5", 400),
        ("Content-Length: 5.0", 400),
        ("Content-Length: 5e0", 400),
        ("Content-Length: 5;", 400),
        ("Content-Length: \"5\"", 400),
        ("Content-Length:", 400),
        ("Content-Length: ,", 400),
        ("Content-Length: five", 400),
        ("Content-Length: 18446744073709551616", 400),
        ("Content-Length: 99999999999999999999999999", 400),
        ("Content-Length : 5", 400),
        ("Content-Length\t: 5", 400),
        ("Content-Length: 5\r\n 6", 400),
        (" Content-Length: 5", 400),
        // Transfer codings, obfuscated.
        ("Transfer-Encoding : chunked", 400),
        ("Transfer-Encoding\t: chunked", 400),
        (" Transfer-Encoding: chunked", 400),
        ("Transfer-Encoding:\r\n chunked", 400),
        ("X: y\r\n Transfer-Encoding: chunked", 400),
        ("Transfer-Encoding: chunked\r\n , identity", 400),
        ("Transfer-Encoding: chunked, chunked", 400),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", 400),
        ("Transfer-Encoding: chunked, identity", 400),
        ("Transfer-Encoding: chunked, gzip", 400),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: x", 400),
        ("Transfer-Encoding: ,chunked", 400),
        ("Transfer-Encoding: chunked,", 400),
        ("Transfer-Encoding:", 400),
        ("Transfer-Encoding: \u{b}chunked", 400),
        ("Transfer-Encoding: chunked\0", 400),
        ("Transfer-Encoding: \u{7f}chunked", 400),
        ("Transfer-Encoding: identity", 501),
        ("Transfer-Encoding: gzip, chunked", 501),
        ("Transfer-Encoding: identity, chunked", 501),
        ("Transfer-Encoding: x\r\nTransfer-Encoding: chunked", 501),
        ("Transfer-Encoding: xchunked", 501),
        ("Transfer-Encoding: chunkedx", 501),
        ("Transfer-Encoding: chunked;q=1", 501),
        ("Transfer-Encoding: \"chunked\"", 501),
        ("Transfer-Encoding: 'chunked'", 501),
        ("Transfer-Encoding: chunked chunked", 501),
        ("Transfer-Encoding: \u{a0}chunked", 501),
        ("Transfer\u{2010}Encoding: chunked\r\nContent-Length: 0", 400),
    ] {
        for method in ["GET", "POST"] {
            let request =
                format!("{method} /small.txt HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n\r\n0\r\n\r\n");
            refused(server, &request, status);
        }
    }
    refused(server, "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400);
    refused(
        server,
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        400,
    );
}

/// Chunks, each with something that a lenient recipient reads otherwise.
fn bodies_that_do_not_keep_to_their_framing(server: &Server) {
    for body in [
        "G\r\n",
        "\r\n",
        "-1\r\nx\r\n0\r\n\r\n",
        "+1\r\nx\r\n0\r\n\r\n",
        "0x1\r\nx\r\n0\r\n\r\n",
        " 1\r\nx\r\n0\r\n\r\n",
        "1 1\r\nx\r\n0\r\n\r\n",
        "1_0\r\nx\r\n0\r\n\r\n",
        ";x\r\n\r\n",
        "1\nx\r\n0\r\n\r\n",
        "1\rx\r\n0\r\n\r\n",
        "1\r\r\nx\r\n0\r\n\r\n",
        "1;a\nb\r\nx\r\n0\r\n\r\n",
        "1;a\0\r\nx\r\n0\r\n\r\n",
        "1\r\nxx\r\n0\r\n\r\n",
        "1\r\nx0\r\n\r\n",
        "1\r\nx\n0\r\n\r\n",
        "2\r\nx\r\n0\r\n\r\n",
        "1\r\nx\r\n\r\n0\r\n\r\n",
        "10000000000000001\r\nx\r\n0\r\n\r\n",
        "fffffffffffffffff\r\nx",
        "00000000000000000001\r\nx\r\n0\r\n\r\n",
        "0\r\n\n",
        "0\n\n",
        "0\n\r\n",
        "0\r\n\r",
        "0\r\nX\r\n\r\n",
        "0\r\nX : y\r\n\r\n",
        "0\r\n X: y\r\n\r\n",
        "0\r\nX: y\r\n folded\r\n\r\n",
        "0\r\nX: y\n\r\n",
        "0\r\nX: \0\r\n\r\n",
        "0\r\n: y\r\n\r\n",
        "0\r\nGET /small.txt HTTP/1.1\r\n\r\n",
    ] {
        for method in ["GET", "POST"] {
            let request = format!(
                "{method} /alphabet.txt HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n{body}"
            );
            refused(server, &request, 400);
        }
    }
}

/// Good requests before a bad one, in one write.
fn requests_before_a_refused_one_are_answered(server: &Server) {
    let mut client = server.connect();
    let good = "GET /small.txt HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let large = "GET /1m.bin HTTP/1.1\r\nHost: localhost\r\n\r\n";
    client.send(format!("{good}{large}{good}GET / HTTP/1.1\r\nHost : localhost\r\n\r\n{SMUGGLED}"));
    assert_eq!(client.response().text(), "small\n");
    assert_eq!(client.response().body.len(), 1 << 20);
    assert_eq!(client.response().text(), "small\n");
    assert_eq!(client.response().status, 400);
    client.expect_end();
}

/// Bytes that cannot become a request are not waited for.
fn garbage_is_refused_at_once(server: &Server) {
    for bytes in
        [&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..], b"\x80", b"\0", b"\xff\xfe", b"(", b"\n", b" "]
    {
        let mut client = server.connect();
        client.send(bytes);
        let response = client.response();
        assert_eq!((response.status, response.field("connection")), (400, Some("close")), "{bytes:?}");
        client.expect_end();
    }
}

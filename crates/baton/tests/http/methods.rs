//! Methods: GET, HEAD, OPTIONS, those not allowed, and unknown ones.

use crate::common::server::Server;
use crate::museum::pattern_of;

/// What only HTTP/1 can say.
mod http1 {
    crate::protocols::over_http1!(refused_heads_have_no_body);

    use super::refused_heads_have_no_body;
}

crate::protocols::over_every_protocol!(
    head_is_get_without_the_body,
    options_says_what_is_allowed,
    methods_with_side_effects_are_not_allowed,
    unknown_methods_are_not_implemented,
);

/// Every kind of answer, with GET and with HEAD, on one connection: the same head, except for the time.
fn head_is_get_without_the_body(server: &Server) {
    let mut client = server.agent();
    for (host, path, fields) in [
        ("localhost", "/small.txt", ""),
        ("localhost", "/empty.txt", ""),
        ("localhost", "/1m.bin", ""),
        ("localhost", "/none", ""),
        ("localhost", "/folder", ""),
        ("localhost", "/%00", ""),
        ("localhost", "/packed/page.html", "Accept-Encoding: gzip\r\n"),
        ("localhost", "/alphabet.txt", "If-None-Match: *\r\n"),
        ("localhost", "/alphabet.txt", "If-Match: \"x\"\r\n"),
        ("listed.example", "/bare/", ""),
        ("routes.example", "/gone", ""),
        ("routes.example", "/none", ""),
    ] {
        let mut get = client.ask_host(host, "GET", path, fields);
        let mut head = client.ask_host(host, "HEAD", path, fields);
        for response in [&mut get, &mut head] {
            response.fields.retain(|(name, _)| name != "date");
        }
        assert_eq!((&get.line, &get.fields), (&head.line, &head.fields), "{host} {path}");
        assert!(head.body.is_empty());
    }
    // RFC 9110, 14.2: a range means something with GET only.
    let head = client.ask("HEAD", "/1m.bin", "Range: bytes=0-9\r\n");
    assert_eq!((head.status, head.field("content-length")), (200, Some("1048576")));
    assert!(client.get("/1m.bin").body == pattern_of("1m.bin"));
}

/// RFC 9110, section 9.3.2: no answer to HEAD has a body, however wrong the request is.
fn refused_heads_have_no_body(server: &Server) {
    for (request, status) in [
        ("HEAD / HTTP/1.1\r\n\r\n", 400),
        ("HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        ("HEAD / HTTP/1.1\r\nHost: a\r\nBad Name: 1\r\n\r\n", 400),
        ("HEAD / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        ("HEAD / HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\n\r\n", 417),
        ("HEAD / HTTP/9.1\r\nHost: a\r\n\r\n", 505),
    ] {
        let mut client = server.connect();
        client.send(request);
        let head = client.head();
        assert_eq!((head.status, head.field("connection")), (status, Some("close")), "{request:?}");
        client.expect_end();
    }
}

/// Of the server as a whole, of a file, and of one that is not there.
fn options_says_what_is_allowed(server: &Server) {
    let mut client = server.agent();
    for target in ["*", "/", "/small.txt", "/none", "http://localhost", "http://localhost/small.txt"] {
        let response = client.ask("OPTIONS", target, "");
        assert_eq!(response.status, 204, "{target}");
        assert_eq!(response.field("allow"), Some("GET, HEAD, OPTIONS"), "{target}");
        assert_eq!(response.field("content-length"), None, "RFC 9110, 8.6");
    }
}

/// RFC 9110, 15.5.6: 405 lists the allowed methods.
fn methods_with_side_effects_are_not_allowed(server: &Server) {
    let mut client = server.agent();
    for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE"] {
        for path in ["/small.txt", "/none", "/folder/"] {
            let response = client.ask(method, path, "");
            assert_eq!(response.status, 405, "{method} {path}");
            assert_eq!(response.field("allow"), Some("GET, HEAD, OPTIONS"), "{method} {path}");
        }
    }
    assert_eq!(client.get("/small.txt").text(), "small\n");
}

/// Methods are words in upper case, and there are many.
fn unknown_methods_are_not_implemented(server: &Server) {
    let mut client = server.agent();
    for method in ["BREW", "get", "Get", "PROPFIND", "GETT", "GE", "M-SEARCH", "!#$%&'*+-.^_`|~"] {
        assert_eq!(client.ask(method, "/small.txt", "").status, 501, "{method}");
    }
    assert_eq!(client.ask("CONNECT", "localhost:80", "").status, 501);
    assert_eq!(client.get("/small.txt").text(), "small\n");
}

//! Fixed answers without a body, and requests that get none.

use std::io::Read;

use crate::common::agent::{Agent, Body};
use crate::common::server::{Server, wait_until};

crate::everywhere!(some_statuses_have_no_body, a_request_may_be_left_unanswered);

fn some_statuses_have_no_body(server: &Server) {
    let mut client = server.agent();
    for (path, status) in [("/empty", 204), ("/reset", 205), ("/unchanged", 304)] {
        for method in ["GET", "HEAD", "DELETE"] {
            let response = client.ask(method, path, "");
            assert_eq!((response.status, response.text()), (status, ""), "{method} {path}");
            assert_eq!(response.field("content-type"), None, "{method} {path}");
        }
        assert_eq!(client.send("POST", path, b"a body").status, status, "{path}");
    }
    assert_eq!(client.get("/a.txt").status, 200, "the connection goes on");
}

/// Goal: no byte of an answer, and a line in the log. Method: over HTTP/1 the connection ends, over HTTP/2 the stream.
fn a_request_may_be_left_unanswered(server: &Server) {
    let path = format!("/unanswered/{:?}", server.protocol());
    let mut client = server.agent();
    client.begin("GET", "localhost", &path, "", Body::None);
    match &mut client {
        Agent::Http2(client) => assert!(client.head().is_err(), "the stream is reset"),
        Agent::Http1(client) => {
            let mut answer = Vec::new();
            // In clear, nothing comes; over TLS, what ends it at most. A reset says the same as an end.
            let _ = (&mut client.stream()).read_to_end(&mut answer);
            assert!(!String::from_utf8_lossy(&answer).contains("HTTP/"), "{answer:?}");
            if !server.protocol().is_secure() {
                assert_eq!(String::from_utf8_lossy(&answer), "");
            }
        }
    }
    let log = || std::fs::read_to_string(server.folder().base().join("access.log")).unwrap_or_default();
    wait_until("the line", || log().lines().any(|line| line.contains(&path) && line.contains(" 444 ")));
    assert_eq!(server.get("/a.txt").status, 200, "others are answered");
}

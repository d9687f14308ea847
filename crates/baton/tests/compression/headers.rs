//! What the head of a compressed response of an origin says, and which responses are left alone.

use crate::common::decode::decode;
use crate::common::server::Server;
use crate::site::{CODINGS, PAGE_BYTES, text};

/// The head is that of another representation.
fn the_head_is_that_of_the_coded_body(server: &Server) {
    let mut agent = server.agent();
    for coding in CODINGS {
        let response = agent.ask("GET", "/origin/page", &format!("Accept-Encoding: {coding}\r\n"));
        assert_eq!(response.field("content-encoding"), Some(coding));
        assert_eq!(response.field("vary"), Some("Cookie, Accept-Encoding"));
        assert_eq!(response.field("etag"), Some("W/\"p\""));
        assert_eq!((response.field("accept-ranges"), response.field("content-digest")), (None, None));
        let length = response.field("content-length").map(|length| length.parse().expect("a length"));
        assert!(length.is_none_or(|length: usize| length == response.body.len()));
        assert!(decode(coding, &response.body) == text(PAGE_BYTES));
        let response = agent.ask("GET", "/origin/weak", &format!("Accept-Encoding: {coding}\r\n"));
        assert_eq!(response.field("vary"), Some("accept-encoding, Cookie"), "not doubled");
        assert_eq!(response.field("etag"), Some("W/\"w\""));
        assert_eq!(decode(coding, &response.body), text(5_000));
    }
    let head = agent.ask("HEAD", "/origin/head", "Accept-Encoding: gzip\r\n");
    assert_eq!(head.field("content-encoding"), Some("gzip"));
    assert_eq!(head.field("content-length"), None, "it would be that of another body");
    assert!(head.body.is_empty());
}

/// Responses that a client of this kind gets as they are, but another might not.
fn caches_learn_that_others_get_another_body(server: &Server) {
    let mut agent = server.agent();
    for (path, fields) in [
        ("/origin/weak", ""),
        ("/origin/weak", "Accept-Encoding: identity\r\n"),
        ("/origin/weak", "Accept-Encoding: gzip\r\nRange: bytes=0-9\r\n"),
        ("/origin/small", "Accept-Encoding: gzip\r\n"),
        ("/origin/same", "Accept-Encoding: gzip\r\nIf-None-Match: \"p\"\r\n"),
    ] {
        let response = agent.ask("GET", path, fields);
        assert_eq!(response.field("content-encoding"), None, "{path} {fields}");
        let vary = response.field("vary").unwrap_or_default().to_ascii_lowercase();
        assert!(vary.contains("accept-encoding"), "{path} {fields}: {vary}");
    }
}

/// Responses that are left alone.
fn what_is_coded_in_part_or_final_is_left_alone(server: &Server) {
    let mut agent = server.agent();
    for path in ["typeless", "picture", "coded", "final", "part", "none"] {
        let response = agent.ask("GET", &format!("/origin/{path}"), "Accept-Encoding: gzip, zstd\r\n");
        let coding = (path == "coded").then_some("br");
        assert_eq!(response.field("content-encoding"), coding, "{path}");
        assert_eq!(response.field("vary"), None, "{path}");
        let expected = match path {
            "part" => b"x".repeat(2048),
            "none" => Vec::new(),
            _ => text(5_000),
        };
        assert!(response.body == expected, "{path}");
    }
    let response = agent.ask("GET", "/plain/page", "Accept-Encoding: gzip\r\n");
    assert_eq!(response.field("content-encoding"), None, "the route compresses nothing");
    assert_eq!((response.field("vary"), response.field("etag")), (Some("Cookie"), Some("\"p\"")));
}

crate::protocols::over_every_protocol!(
    the_head_is_that_of_the_coded_body,
    caches_learn_that_others_get_another_body,
    what_is_coded_in_part_or_final_is_left_alone,
);

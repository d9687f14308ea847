//! Applications and clients that fail: a defined outcome, one log line, and nothing that looks complete but is not.

use std::fs;

use crate::common::agent::{Body, CutOff};
use crate::common::folder::pattern;
use crate::common::server::{Server, wait_until};
use crate::site::THREADS;

crate::protocols::over_every_protocol!(
    answers_that_are_none,
    answers_that_end_too_early,
    what_an_application_says_is_logged,
    slow_readers_hold_no_application,
    clients_that_go_away,
);

/// What only HTTP/1 has.
mod http1 {
    crate::protocols::over_http1!(answers_without_a_length_end_with_a_reset, requests_that_break_off);

    use super::{answers_without_a_length_end_with_a_reset, requests_that_break_off};
}

fn answers_that_are_none(server: &Server, below: &str) {
    let mut client = server.agent();
    for path in ["silent", "no-head"] {
        let answer = client.get(&format!("{below}/{path}"));
        assert_eq!((answer.status, answer.field("x-route")), (502, Some(&below[1..])), "{path}");
    }
    assert_eq!(client.get(&format!("{below}/bytes?1")).status, 200, "the connection is kept");
}

/// The client can tell: by the length, by the missing last chunk, or by a reset of the stream.
fn answers_that_end_too_early(server: &Server, below: &str) {
    for path in ["short", "panics"] {
        let mut client = server.agent();
        client.begin("GET", "stage", &format!("{below}/{path}"), "", Body::None);
        assert_eq!(client.head().status, 200, "{path}");
        let CutOff(body) = client.body().expect_err("looks complete");
        assert!(body.len() <= 300_000, "{path}: {} bytes", body.len());
    }
}

/// A client of HTTP/1.0 can tell by the reset only.
fn answers_without_a_length_end_with_a_reset(server: &Server, below: &str) {
    let mut client = server.connect();
    let path = format!("{below}/panics?{:?}", server.protocol());
    client.send(format!("GET {path} HTTP/1.0\r\n\r\n"));
    assert_eq!(client.head_of_response().status, 200);
    while let Some(piece) = client.piece() {
        assert!(!piece.is_empty(), "an orderly end");
    }
    logged(server, &format!("{path} HTTP/1.0"));
}

fn what_an_application_says_is_logged(server: &Server, below: &str) {
    assert_eq!(server.get(&format!("{below}/says")).text(), "said");
    let word = format!("{}.sock: GET {below}/says: a word to whoever runs it", &below[1..]);
    wait_until("the word in the log", || server.said().contains(&word));
}

/// Twice as many clients as the application has threads read nothing; another is answered all the same.
fn slow_readers_hold_no_application(server: &Server, below: &str) {
    let slow: Vec<_> = (0..2 * THREADS)
        .map(|_| {
            let mut client = server.agent();
            client.begin("GET", "stage", &format!("{below}/stream?3000000"), "", Body::None);
            client
        })
        .collect();
    for _ in 0..4 {
        assert_eq!(server.get(&format!("{below}/bytes?1000")).body, pattern(1000, 1));
    }
    let expected = pattern(3_000_000, 1);
    for mut client in slow {
        let answer = client.response();
        assert_eq!((answer.status, answer.body.len()), (200, expected.len()), "in the end all of it arrives");
        assert!(answer.body == expected, "and nothing else");
    }
}

fn clients_that_go_away(server: &Server, below: &str) {
    let begin = |path: &str| {
        let mut client = server.agent();
        client.begin("GET", "stage", path, "", Body::None);
        client
    };
    drop(begin(&format!("{below}/stream?3000000")));
    // Each protocol has its own line in the log.
    let path = format!("{below}/stream?{}", 3_000_001 + server.protocol() as usize);
    let mut client = begin(&path);
    client.head();
    client.at_least(1000);
    drop(client);
    assert_eq!(server.get(&format!("{below}/bytes?1001")).body, pattern(1001, 1));
    logged(server, &format!("{path} {}", server.protocol().version()));
}

fn requests_that_break_off(server: &Server, below: &str) {
    server.connect().send(format!("GET {below}/stream?3000000 GET"));
    assert_eq!(server.get(&format!("{below}/bytes?1001")).body, pattern(1001, 1));
}

/// Waits for the line of a request, which comes exactly once.
pub(crate) fn logged(server: &Server, request: &str) {
    let file = server.folder().base().join("access.log");
    let lines = || fs::read_to_string(&file).unwrap_or_default().matches(request).count();
    wait_until("its line in the log", || lines() > 0);
    assert_eq!(lines(), 1, "{request}");
}

//! Applications and clients that fail: a defined outcome, one log line, and nothing that looks complete but is not.

use std::fs;
use std::io::Read;

use crate::architectures::under_every_architecture;
use crate::common::folder::pattern;
use crate::common::server::{Server, wait_until};
use crate::site::THREADS;

under_every_architecture!(
    answers_that_are_none,
    answers_that_end_too_early,
    what_an_application_says_is_logged,
    slow_readers_hold_no_application,
    clients_that_go_away,
);

fn answers_that_are_none(server: &Server, below: &str) {
    let mut client = server.connect();
    for path in ["silent", "no-head"] {
        client.send(format!("GET {below}/{path} HTTP/1.1\r\nHost: stage\r\n\r\n"));
        let answer = client.answer_to("GET");
        assert_eq!((answer.status, answer.field("x-route")), (502, Some(&below[1..])), "{path}");
    }
    client.send(format!("GET {below}/bytes?1 HTTP/1.1\r\nHost: stage\r\n\r\n"));
    assert_eq!(client.answer_to("GET").status, 200, "the connection is kept");
}

/// The client can tell: by the length, by the missing last chunk, or, in HTTP/1.0, by a reset.
fn answers_that_end_too_early(server: &Server, below: &str) {
    let mut client = server.connect();
    client.send(format!("GET {below}/short HTTP/1.1\r\nHost: stage\r\n\r\n"));
    let got = client.until_the_end();
    assert!(got.len() < 100_000, "{} bytes", got.len());

    let mut client = server.connect();
    client.send(format!("GET {below}/panics HTTP/1.1\r\nHost: stage\r\n\r\n"));
    let got = client.until_the_end();
    assert!(!got.ends_with(b"\r\n0\r\n\r\n"), "looks complete");

    let mut client = server.connect();
    client.send(format!("GET {below}/panics HTTP/1.0\r\n\r\n"));
    let mut stream = client.stream();
    let error = std::io::copy(&mut stream.by_ref(), &mut std::io::sink()).expect_err("no orderly end");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    logged(server, &format!("{below}/panics HTTP/1.0"));
}

fn what_an_application_says_is_logged(server: &Server, below: &str) {
    let mut client = server.connect();
    client.send(format!("GET {below}/says HTTP/1.1\r\nHost: stage\r\n\r\n"));
    assert_eq!(client.answer_to("GET").text(), "said");
    let word = format!("{}.sock: GET {below}/says: a word to whoever runs it", &below[1..]);
    wait_until("the word in the log", || server.said().contains(&word));
}

/// Twice as many clients as the application has threads read nothing; another is answered all the same.
fn slow_readers_hold_no_application(server: &Server, below: &str) {
    let slow: Vec<_> = (0..2 * THREADS)
        .map(|_| {
            let mut client = server.connect();
            client.send(format!("GET {below}/stream?3000000 HTTP/1.1\r\nHost: stage\r\n\r\n"));
            client
        })
        .collect();
    for _ in 0..4 {
        let mut fast = server.connect();
        fast.send(format!("GET {below}/bytes?1000 HTTP/1.1\r\nHost: stage\r\n\r\n"));
        assert_eq!(fast.answer_to("GET").body, pattern(1000, 1));
    }
    let expected = pattern(3_000_000, 1);
    for mut client in slow {
        let answer = client.answer_to("GET");
        assert_eq!((answer.status, answer.body.len()), (200, expected.len()), "in the end all of it arrives");
        assert!(answer.body == expected, "and nothing else");
    }
}

fn clients_that_go_away(server: &Server, below: &str) {
    for sent in ["GET", "HTTP/1.1\r\nHost: stage\r\n\r\n"] {
        let mut client = server.connect();
        client.send(format!("GET {below}/stream?3000000 {sent}"));
        drop(client);
    }
    let mut client = server.connect();
    client.send(format!("GET {below}/stream?3000001 HTTP/1.1\r\nHost: stage\r\n\r\n"));
    client.take(1000);
    drop(client);
    let mut client = server.connect();
    client.send(format!("GET {below}/bytes?1001 HTTP/1.1\r\nHost: stage\r\n\r\n"));
    assert_eq!(client.answer_to("GET").body, pattern(1001, 1));
    logged(server, &format!("{below}/stream?3000001 HTTP/1.1"));
}

/// Waits for the line of a request, which comes exactly once.
pub(crate) fn logged(server: &Server, request: &str) {
    let file = server.folder().base().join("access.log");
    let lines = || fs::read_to_string(&file).unwrap_or_default().matches(request).count();
    wait_until("its line in the log", || lines() > 0);
    assert_eq!(lines(), 1, "{request}");
}

//! The load generator against tiny servers whose every byte is known: its counts must match.

use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::scripted::{Answer, bytes_of, ok, serve, talk};
use baton_load::files::write_all;

use baton_load::{Failure, Load, LoadReport, LoadRequest, LoadSettings};

const REQUESTS: u64 = 60;

pub(crate) fn settings(address: SocketAddr) -> LoadSettings {
    LoadSettings {
        connections: 3,
        // The number of requests ends it, also on a slow machine.
        requests_max: Some(REQUESTS),
        sleep: true,
        verify: true,
        ..LoadSettings::new(address, Duration::from_secs(30))
    }
}

pub(crate) fn run(settings: &LoadSettings, paths: &[(&str, Option<u64>)]) -> LoadReport {
    let requests = paths.iter().map(|(path, bytes)| LoadRequest::page(*path, *bytes));
    Load::connect(settings, requests).unwrap().run().unwrap()
}

#[test]
fn kept_connections_are_kept_and_every_byte_is_counted() {
    let server = serve(|path, _, _| ok(&path.repeat(100)));
    let report = run(&settings(server.address), &[("/a", Some(200)), ("/long", Some(500))]);
    assert_eq!(report.failed(), 0, "{:?}", report.first_failure);
    assert_eq!(report.requests, REQUESTS);
    assert!(report.latencies.us(1.0) >= report.latencies.us(0.5) && report.latencies.us(0.5) > 0.0);
    assert_eq!(server.accepted(), 3);
    // The two paths are requested in turn.
    assert_eq!(report.bytes, REQUESTS / 2 * 700);
}

#[test]
fn bodies_may_be_dropped_unread() {
    let server = serve(|_, _, _| ok(&"x".repeat(3_000_000)));
    let report = run(&LoadSettings { verify: false, ..settings(server.address) }, &[("/", None)]);
    assert_eq!(report.failed(), 0, "{:?}", report.first_failure);
    assert_eq!((report.requests, report.bytes), (REQUESTS, REQUESTS * 3_000_000));
}

#[test]
fn a_connection_per_request_is_just_that() {
    let server = serve(|_, _, _| ok("hello"));
    let report =
        run(&LoadSettings { connection_per_request: true, ..settings(server.address) }, &[("/", None)]);
    assert_eq!(report.failed(), 0, "{:?}", report.first_failure);
    assert_eq!(report.requests, REQUESTS);
    // At the end every client has opened its next connection, or still waits for the end of its last.
    assert!((REQUESTS..=REQUESTS + 3).contains(&report.connections), "{} connections", report.connections);
    assert!(server.accepted() as u64 >= REQUESTS);
}

#[test]
fn idle_connections_come_on_top() {
    let server = serve(|_, _, _| ok("hello"));
    let report = run(&LoadSettings { idle_connections: 20, ..settings(server.address) }, &[("/", None)]);
    assert_eq!(report.failed(), 0);
    assert_eq!(server.accepted(), 23);
}

#[test]
fn a_kept_connection_that_the_server_closes_is_opened_again_without_a_failure() {
    let server = serve(|_, _, number| if number < 2 { ok("hello") } else { Answer::Last(Vec::new()) });
    let report = run(&settings(server.address), &[("/", None)]);
    assert_eq!(report.failed(), 0, "{:?}", report.first_failure);
    // Two requests per connection.
    assert_eq!((report.requests, report.connections), (REQUESTS, 3 + report.reconnects));
    assert!(report.reconnects >= REQUESTS / 2 - 3, "{} reconnects", report.reconnects);
}

#[test]
fn each_wrong_answer_is_a_failure_of_its_kind() {
    type Script = fn(&str, usize, usize) -> Answer;
    let cases: [(Failure, Script); 6] = [
        (Failure::Status, |_, _, _| {
            Answer::Bytes(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec())
        }),
        (Failure::Length, |_, _, _| ok("hello, world")),
        (Failure::Head, |_, _, _| Answer::Bytes(b"HTTP/1.1 200 OK\r\n\r\nhello".to_vec())),
        (Failure::Surplus, |_, _, _| Answer::Bytes([&bytes_of("hello")[..], b"!"].concat())),
        (Failure::Changed, |_, _, number| ok(if number == 0 { "hello" } else { "hallo" })),
        (Failure::EarlyEnd, |_, _, _| Answer::Last(b"HTTP/1.1 200 OK\r\nContent".to_vec())),
    ];
    for (failure, answer) in cases {
        let server = serve(answer);
        let report = run(&settings(server.address), &[("/", Some(5))]);
        let kinds: Vec<_> = report.failures.keys().collect();
        assert_eq!(kinds, [&failure], "{:?}", report.first_failure);
    }
}

#[test]
fn nobody_listening_is_a_failure_and_not_a_hang() {
    // This socket holds the port and does not listen.
    let socket =
        rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .unwrap();
    rustix::net::bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let address = rustix::net::getsockname(&socket).unwrap().try_into().unwrap();
    let report = run(&settings(address), &[("/", None)]);
    assert_eq!(report.requests, 0);
    assert!(report.failures.contains_key(&Failure::Socket), "{:?}", report.failures);
}

#[test]
fn a_body_that_is_not_its_file_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    write_all(folder.path(), 0).unwrap();
    let text = std::fs::read_to_string(folder.path().join("100k.html")).unwrap();
    let last = text.rfind("patient").unwrap();
    let damaged = format!("{}hurried{}", &text[..last], &text[last + "patient".len()..]);
    for (body, failures) in [(text, vec![]), (damaged, vec![(Failure::Changed, 1)])] {
        let server = serve(move |_, _, _| ok(&body));
        let settings = LoadSettings { verify: false, ..settings(server.address) };
        let list = [LoadRequest::file("/100k.html", 100 << 10)];
        let report = Load::connect(&settings, list).unwrap().run().unwrap();
        assert_eq!(report.failures, failures.into_iter().collect(), "{:?}", report.first_failure);
    }
}

#[test]
fn what_comes_after_the_end_counts_for_no_rate() {
    let server = serve(|_, _, _| ok("hello"));
    let report = run(&LoadSettings { duration: Duration::ZERO, ..settings(server.address) }, &[("/", None)]);
    assert_eq!(report.failed(), 0, "{:?}", report.first_failure);
    assert_eq!((report.requests, report.late, report.answered()), (0, 3, 3));
    assert_eq!((report.bytes, report.latencies.us(1.0)), (0, 0.0));
    assert!(report.elapsed < report.span);
}

#[test]
fn a_connection_that_is_never_answered_is_a_failure() {
    // Two of three clients get nothing, as from a server with one process for each connection, and one process.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (first, _) = listener.accept().unwrap();
        talk(first, &|_, _| ok("hello"));
        drop(listener);
    });
    let settings =
        LoadSettings { duration: Duration::from_millis(50), requests_max: None, ..settings(address) };
    let report = run(&settings, &[("/", None)]);
    assert!(report.requests > 0);
    assert_eq!(report.first_failure.as_deref(), Some("2 of 3 connections were never answered"));
    assert_eq!(report.failures, [(Failure::NeverAnswered, 1)].into());
}

#[test]
fn a_replay_takes_what_the_site_says_unless_it_breaks() {
    let server = serve(|path, _, number| {
        let status = if path == "/gone" { "404 Not Found" } else { "502 Bad Gateway" };
        let body = "x".repeat(number);
        let length = body.len();
        Answer::Bytes(format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes())
    });
    for (path, failures) in [("/gone", 0), ("/broken", REQUESTS)] {
        let list = [LoadRequest::replay(path)];
        let report = Load::connect(&settings(server.address), list).unwrap().run().unwrap();
        assert_eq!(report.failed(), failures, "{path}");
    }
}

#[test]
fn more_connections_than_descriptors_are_refused_with_a_remedy() {
    let settings = LoadSettings { connections: 1 << 40, ..settings(SocketAddr::from(([127, 0, 0, 1], 1))) };
    let list = [LoadRequest::page("/", None)];
    let error = Load::connect(&settings, list).unwrap_err().to_string();
    assert!(error.contains("ulimit -n"), "{error}");
}

#[test]
fn a_body_may_end_with_its_connection() {
    let head = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
    for (body, failures) in [("hello", vec![]), ("hell", vec![Failure::Length])] {
        let server = serve(move |_, _, _| Answer::Last(format!("{head}{body}").into_bytes()));
        let report = run(&settings(server.address), &[("/", Some(5))]);
        let kinds: Vec<_> = report.failures.into_keys().collect();
        assert_eq!(kinds, failures, "{:?}", report.first_failure);
    }
}

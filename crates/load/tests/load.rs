//! The load generator against tiny servers whose every byte is known: its counts must match.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType};

use baton_load::files::write_all;
use baton_load::{Failure, Load, LoadReport, LoadRequest, LoadSettings, RequestList};

/// A server that answers with what `answer` makes of the path and the number of the request on its connection; an
/// answer without bytes closes the connection. Returns its address and the count of connections that it accepted.
fn serve(answer: impl Fn(&str, usize) -> Vec<u8> + Send + Sync + 'static) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let accepted = Arc::new(AtomicUsize::new(0));
    let (count, answer) = (Arc::clone(&accepted), Arc::new(answer));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            count.fetch_add(1, Ordering::SeqCst);
            let answer = Arc::clone(&answer);
            thread::spawn(move || talk(stream, &*answer));
        }
    });
    (address, accepted)
}

fn talk(mut stream: TcpStream, answer: &dyn Fn(&str, usize) -> Vec<u8>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    for number in 0.. {
        let Some(Ok(request)) = lines.next() else { return };
        let path = request.split(' ').nth(1).unwrap().to_owned();
        let closes = lines.by_ref().map_while(Result::ok).take_while(|line| !line.is_empty());
        let closes = closes.filter(|line| line.eq_ignore_ascii_case("connection: close")).count() > 0;
        let bytes = answer(&path, number);
        if bytes.is_empty() || stream.write_all(&bytes).is_err() || closes {
            return;
        }
    }
}

const REQUESTS: u64 = 60;

fn ok(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

fn settings(address: SocketAddr) -> LoadSettings {
    LoadSettings {
        address,
        connections: 3,
        connection_per_request: false,
        idle_connections: 0,
        requests_per_second: None,
        // The number of requests ends it, also on a slow machine.
        duration: Duration::from_secs(30),
        requests_max: Some(REQUESTS),
        sleep: true,
        verify: true,
    }
}

fn run(settings: &LoadSettings, paths: &[(&str, Option<u64>)]) -> LoadReport {
    let requests = paths.iter().map(|(path, bytes)| LoadRequest::page(*path, *bytes));
    let list = RequestList::new(settings.address, settings.connection_per_request, requests);
    Load::connect(settings, list).unwrap().run().unwrap()
}

#[test]
fn kept_connections_are_kept_and_every_byte_is_counted() {
    let (address, accepted) = serve(|path, _| ok(&path.repeat(100)));
    let report = run(&settings(address), &[("/a", Some(200)), ("/long", Some(500))]);
    assert_eq!(report.failed(), 0, "{:?}", report.first_failure);
    assert_eq!(report.requests, REQUESTS);
    assert_eq!(report.latency_ns.len(), REQUESTS);
    assert_eq!(accepted.load(Ordering::SeqCst), 3);
    // The two paths are requested in turn.
    assert_eq!(report.bytes, REQUESTS / 2 * 700);
}

#[test]
fn bodies_may_be_dropped_unread() {
    let (address, _) = serve(|_, _| ok(&"x".repeat(3_000_000)));
    let report = run(&LoadSettings { verify: false, ..settings(address) }, &[("/", None)]);
    assert_eq!(report.failed(), 0, "{:?}", report.first_failure);
    assert_eq!((report.requests, report.bytes), (REQUESTS, REQUESTS * 3_000_000));
}

#[test]
fn a_connection_per_request_is_just_that() {
    let (address, accepted) = serve(|_, _| ok("hello"));
    let report = run(&LoadSettings { connection_per_request: true, ..settings(address) }, &[("/", None)]);
    assert_eq!(report.failed(), 0, "{:?}", report.first_failure);
    assert_eq!(report.requests, REQUESTS);
    // At the end every client has opened its next connection, or still waits for the end of its last.
    assert!((REQUESTS..=REQUESTS + 3).contains(&report.connections), "{} connections", report.connections);
    assert!(accepted.load(Ordering::SeqCst) as u64 >= REQUESTS);
}

#[test]
fn idle_connections_come_on_top() {
    let (address, accepted) = serve(|_, _| ok("hello"));
    let report = run(&LoadSettings { idle_connections: 20, ..settings(address) }, &[("/", None)]);
    assert_eq!(report.failed(), 0);
    assert_eq!(accepted.load(Ordering::SeqCst), 23);
}

#[test]
fn a_kept_connection_that_the_server_closes_is_opened_again_without_a_failure() {
    let (address, _) = serve(|_, number| if number < 2 { ok("hello") } else { Vec::new() });
    let report = run(&settings(address), &[("/", None)]);
    assert_eq!(report.failed(), 0, "{:?}", report.first_failure);
    // Two requests per connection.
    assert_eq!((report.requests, report.connections), (REQUESTS, 3 + report.reconnects));
    assert!(report.reconnects >= REQUESTS / 2 - 3, "{} reconnects", report.reconnects);
}

#[test]
fn each_wrong_answer_is_a_failure_of_its_kind() {
    type Answer = fn(&str, usize) -> Vec<u8>;
    let cases: [(Failure, Answer); 6] = [
        (Failure::Status, |_, _| b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec()),
        (Failure::Length, |_, _| ok("hello, world")),
        (Failure::Head, |_, _| b"HTTP/1.1 200 OK\r\n\r\nhello".to_vec()),
        (Failure::Surplus, |_, _| b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello!".to_vec()),
        (Failure::Changed, |_, number| ok(if number == 0 { "hello" } else { "hallo" })),
        (
            Failure::EarlyEnd,
            |_, number| if number == 0 { b"HTTP/1.1 200 OK\r\nContent".to_vec() } else { Vec::new() },
        ),
    ];
    for (failure, answer) in cases {
        let (address, _) = serve(answer);
        // The early end shows when the server closes; it does so when asked to.
        let close = failure == Failure::EarlyEnd;
        let report =
            run(&LoadSettings { connection_per_request: close, ..settings(address) }, &[("/", Some(5))]);
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
        let (address, _) = serve(move |_, _| ok(&body));
        let settings = LoadSettings { verify: false, ..settings(address) };
        let list = RequestList::new(address, false, [LoadRequest::file("/100k.html", 100 << 10)]);
        let report = Load::connect(&settings, list).unwrap().run().unwrap();
        assert_eq!(report.failures, failures.into_iter().collect(), "{:?}", report.first_failure);
    }
}

#[test]
fn what_comes_after_the_end_counts_for_no_rate() {
    let (address, _) = serve(|_, _| ok("hello"));
    let report = run(&LoadSettings { duration: Duration::ZERO, ..settings(address) }, &[("/", None)]);
    assert_eq!(report.failed(), 0, "{:?}", report.first_failure);
    assert_eq!((report.requests, report.late, report.answered()), (0, 3, 3));
    assert_eq!((report.bytes, report.latency_ns.len()), (0, 0));
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

//! System calls per response of an origin.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use crate::common::folder::Folder;
use crate::common::server::{Server, wait_until};
use crate::document::compare;
use crate::trace::{Call, Trace};
use crate::usual::usual;

/// Goal: the table of the document is true of proxied requests. Method: the worker is traced while a client sends requests
/// on one connection, and waits for each response.
#[test]
fn responses_of_origins_take_the_calls_of_the_document() {
    let mut counted = BTreeMap::new();
    for (situation, bytes) in [("1 KB, kept connections", 1 << 10), ("16 KB, kept connections", 16 << 10)] {
        counted.insert(situation.to_owned(), calls(bytes));
    }
    compare("Origins", "origins", &counted);
}

/// Goal: by reading and writing, every byte of a body is copied twice by the server; through a pipe, only those are that have
/// come with the head. Method: what all calls of the worker have moved is summed up for one response.
#[test]
fn a_long_body_of_an_origin_is_copied_twice_or_goes_through_a_pipe() {
    let through_memory = Moved::by_a_response(LONG_BYTES, "splice_bytes_min = 0");
    assert_eq!((through_memory.into_pipe, through_memory.out_of_pipe), (0, 0));
    assert!(through_memory.read > LONG_BYTES && through_memory.sent > LONG_BYTES, "{through_memory:?}");

    let through_pipe = Moved::by_a_response(LONG_BYTES, "");
    assert_eq!(through_pipe.into_pipe, through_pipe.out_of_pipe);
    assert!(through_pipe.read <= FIRST_READ_BYTES, "{through_pipe:?}");
    assert_eq!(through_pipe.read + through_pipe.into_pipe, through_memory.read);
    assert_eq!(through_pipe.sent + through_pipe.out_of_pipe, through_memory.sent);
}

/// Bytes that a worker has moved.
#[derive(Debug, Default)]
struct Moved {
    /// Copied from the origin's connection.
    read: usize,
    /// Copied to the client's connection, and the request to the origin.
    sent: usize,
    into_pipe: usize,
    out_of_pipe: usize,
}

impl Moved {
    fn by_a_response(bytes: usize, settings: &str) -> Self {
        let server = server(bytes, settings);
        let mut client = server.connect();
        for _ in 0..3 {
            assert_eq!(client.get("/").body.len(), bytes);
        }
        let trace = Trace::attach(server.workers()[0], &server.folder().base().join("server.trace"));
        // What is noted in front of the second request is all of the first response.
        let mut calls = Vec::new();
        let mut starts = Vec::new();
        for _ in 0..2 {
            assert_eq!(client.get("/").body.len(), bytes);
        }
        wait_until("both requests are noted", || {
            calls = trace.calls();
            starts = (0..calls.len()).filter(|at| calls[*at].receives_a_request()).collect();
            starts.len() == 2
        });
        Self::of(&calls[starts[0]..starts[1]])
    }

    fn of(calls: &[Call]) -> Self {
        let mut moved = Self::default();
        // The first call of splice moves into the pipe: it is the one whose input is the origin's connection.
        let mut is_into = true;
        for call in calls {
            let Some(bytes) = call.detail.rsplit(" = ").next().and_then(|bytes| bytes.parse::<usize>().ok())
            else {
                continue;
            };
            match call.name.as_str() {
                "read" => moved.read += bytes,
                "sendto" | "sendmsg" => moved.sent += bytes,
                "splice" if is_into => {
                    moved.into_pipe += bytes;
                    is_into = false;
                }
                "splice" => {
                    moved.out_of_pipe += bytes;
                    is_into = moved.into_pipe == moved.out_of_pipe;
                }
                _ => {}
            }
        }
        moved
    }
}

/// A server in front of an origin.
fn server(bytes: usize, settings: &str) -> Server {
    let proxy = format!("proxy = {{ to = 'http://{}', {settings} }}", origin(bytes));
    let configuration =
        format!("processes = 1\n[[site]]\nlisten = '127.0.0.1:0'\n[[site.route]]\npath = '/'\n{proxy}\n");
    Server::run(Folder::new(), &configuration)
}

/// The usual calls of the server from one request to the next.
fn calls(bytes: usize) -> Vec<String> {
    let server = server(bytes, "");
    let mut client = server.connect();
    for _ in 0..3 {
        assert_eq!(client.get("/").body.len(), bytes);
    }
    let trace = Trace::attach(server.workers()[0], &server.folder().base().join("server.trace"));
    for _ in 0..ROUNDS {
        client.get("/");
        // The connection to the origin is at rest before the next request.
        std::thread::sleep(Duration::from_millis(10));
    }
    let calls = trace.calls();
    let starts: Vec<usize> = (0..calls.len()).filter(|&at| calls[at].receives_a_request()).collect();
    let names = |pair: &[usize]| {
        let mut names: Vec<_> = calls[pair[0]..pair[1]].iter().map(|call: &Call| call.name.clone()).collect();
        // Waits that a timer has ended are no cost of the request.
        names.dedup_by(|one, other| one == other && one == "epoll_wait");
        names
    };
    usual(starts.windows(2).map(names).collect())
}

/// An origin that keeps its connections, and sends each response with one call.
fn origin(bytes: usize) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n");
    let response = [head.into_bytes(), vec![b'x'; bytes]].concat();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let response = response.clone();
            std::thread::spawn(move || {
                let mut request = Vec::new();
                let mut piece = [0; 4_096];
                while let Ok(count @ 1..) = stream.read(&mut piece) {
                    request.extend_from_slice(&piece[..count]);
                    if request.ends_with(b"\r\n\r\n") {
                        request.clear();
                        let _ = stream.write_all(&response);
                    }
                }
            });
        }
    });
    address
}

/// Several times what a pipe holds.
const LONG_BYTES: usize = 1_000_000;

/// What the server reads at a time.
const FIRST_READ_BYTES: usize = 64 << 10;

/// How often each situation is caused.
const ROUNDS: usize = 25;

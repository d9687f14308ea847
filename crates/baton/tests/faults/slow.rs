//! Clients that take too long: each phase has a timeout, with its own word in the log.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::common::server::{PATIENCE, wait_until};
use crate::peer::{connect_and_send, is_cut_off, read_to_the_end, request};
use crate::site::{LARGE, SMALL_BUFFERS, small_and_large};
use crate::watched::Watched;

under_each_architecture! {
    a_reader_that_stops_is_given_up,
    a_reader_that_trickles_is_given_up,
    senders_that_stop_are_given_up,
}

/// Goal: a client that reads nothing is reset after the send timeout, so that the kernel drops its response, and no
/// other client waits. Method: it requests more than all buffers hold and reads nothing, while others are served.
fn a_reader_that_stops_is_given_up(architecture: &str) {
    let server = Watched::start(small_and_large(), architecture, &["timeouts.send_ms=500", SMALL_BUFFERS]);
    let before = server.sockets();
    let stuck = connect_and_send(server.server().address(), request("/large.bin"));
    wait_until("it is cut off", || {
        assert_eq!(server.get("/small.txt").text(), "small", "others are served meanwhile");
        server.ended("timed-out") == 1
    });
    let (bytes, in_order) = read_to_the_end(&stuck);
    assert!(bytes.len() < LARGE && !in_order, "{} bytes are not all", bytes.len());
    assert_eq!(server.line_of("/large.bin")["outcome"], "timed-out");
    server.wait_until_nothing_is_left(&before);
}

/// Goal: a slow client must reach the configured rate. Method: a client that reads a kilobyte at a time, where a
/// megabyte per second is required.
fn a_reader_that_trickles_is_given_up(architecture: &str) {
    let settings = ["timeouts.send_ms=500", "timeouts.send_rate_min_bytes_per_s=1000000", SMALL_BUFFERS];
    let server = Watched::start(small_and_large(), architecture, &settings);
    let mut slow = connect_and_send(server.server().address(), request("/large.bin"));
    let mut bytes = 0;
    loop {
        match slow.read(&mut [0; 1024]) {
            Ok(0) => break,
            Ok(count) => bytes += count,
            Err(error) if is_cut_off(&error) => break,
            Err(error) => panic!("{error}"),
        }
        assert!(bytes < LARGE, "it was never cut off");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(server.line_of("/large.bin")["outcome"], "timed-out");
    assert_eq!(server.get("/small.txt").text(), "small");
}

/// Goal: the timeouts of the receiving phases, one connection each: nothing sent at all, a head that arrives
/// endlessly, a body that stalls after its answer, and a kept-alive connection without a next request.
fn senders_that_stop_are_given_up(architecture: &str) {
    let settings = [
        "send.defer_accept_s=0",
        // Long enough for a client to send its bytes between two of its turns.
        "timeouts.head_ms=1500",
        "timeouts.body_ms=1500",
        "timeouts.idle_ms=1500",
        "timeouts.linger_ms=300",
    ];
    let server = Watched::start(small_and_large(), architecture, &settings);
    let before = server.sockets();
    let address = server.server().address();
    let silent = connect_and_send(address, "");
    let in_a_body = connect_and_send(
        address,
        "GET /small.txt?body HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nfirst",
    );
    let idle = connect_and_send(address, request("/small.txt?idle"));
    let in_a_head = connect_and_send(address, "GET /small.txt?head HTTP/1.1\r\nHost: a\r\nX: ");
    let in_a_head = send_until_answered(in_a_head);

    let (bytes, in_order) = read_to_the_end(&silent);
    assert!(bytes.is_empty() && in_order, "a client without a request gets no response");

    let (bytes, _) = read_to_the_end(&in_a_head);
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.starts_with("HTTP/1.1 408 ") && text.contains("\r\nConnection: close\r\n"), "{text}");
    let line = server.line_of("/small.txt?head");
    assert_eq!((&line["status"], &line["outcome"]), (&408.into(), &"timed-out".into()));

    for answered in [in_a_body, idle] {
        let (bytes, in_order) = read_to_the_end(&answered);
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.starts_with("HTTP/1.1 200 ") && text.ends_with("\r\n\r\nsmall") && in_order, "{text}");
    }
    server.wait_until_nothing_is_left(&before);
}

/// Sends one byte after the other until something comes back.
fn send_until_answered(mut stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout");
    for _ in 0..400 {
        if stream.peek(&mut [0]).is_ok() {
            stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
            return stream;
        }
        stream.write_all(b"x").expect("the server still reads");
    }
    panic!("a head may take for ever");
}

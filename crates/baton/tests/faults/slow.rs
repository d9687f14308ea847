//! Clients that take too long: each phase has a timeout, with its own word in the log.

use std::time::Duration;

use crate::common::agent::{Agent, Body, CutOff};
use crate::common::protocol::Protocol;
use crate::common::server::wait_until;
use crate::peer::{connect_and_send, read_to_the_end, request};
use crate::site::{LARGE, SMALL_BUFFERS, large, small_and_large};
use crate::watched::Watched;

over_each_protocol! {
    a_reader_that_stops_is_given_up,
    a_reader_that_trickles_is_given_up,
    clients_that_fall_silent_are_given_up,
}

/// A head that does not end, and one that is never followed by its body: bytes of HTTP/1.
mod bytes {
    over_http1! { senders_that_stop_are_given_up }

    use super::senders_that_stop_are_given_up;
}

/// Goal: a client that reads nothing is cut off after the send timeout, so that the kernel drops its response, and no
/// other client waits. Method: it requests more than all buffers hold and reads nothing, while others are served.
fn a_reader_that_stops_is_given_up(architecture: &str, protocol: Protocol) {
    let settings = ["timeouts.send_ms=500", SMALL_BUFFERS];
    let server = Watched::start_over(protocol, small_and_large(), architecture, &settings);
    let before = server.sockets();
    let mut stuck = begin_large(&server);
    wait_until("it is cut off", || {
        assert_eq!(server.get("/small.txt").text(), "small", "others are served meanwhile");
        server.ended("timed-out") == 1
    });
    let CutOff(body) = stuck.body().expect_err("some bytes are dropped");
    assert!(body == large()[..body.len()], "only true bytes");
    drop(stuck);
    assert_eq!(server.line_of("/large.bin")["outcome"], "timed-out");
    server.wait_until_nothing_is_left(&before);
}

/// Goal: a slow client must reach the configured rate. Method: a client that takes a hundred kilobytes per second, where
/// ten times as much is required.
fn a_reader_that_trickles_is_given_up(architecture: &str, protocol: Protocol) {
    let settings = ["timeouts.send_ms=500", "timeouts.send_rate_min_bytes_per_s=1000000", SMALL_BUFFERS];
    let server = Watched::start_over(protocol, small_and_large(), architecture, &settings);
    let mut slow = begin_large(&server);
    let mut bytes = 0;
    while let Ok(piece) = slow.piece() {
        bytes += piece.len();
        assert!(bytes < LARGE, "it was never cut off");
        std::thread::sleep(Duration::from_micros(10 * piece.len() as u64));
    }
    assert_eq!(server.line_of("/large.bin")["outcome"], "timed-out");
    assert_eq!(server.get("/small.txt").text(), "small");
}

/// A client whose large file is on its way.
fn begin_large(server: &Watched) -> Agent {
    let mut client = server.agent();
    client.begin("GET", "localhost", "/large.bin", "", Body::None);
    assert_eq!(client.head().status, 200);
    client
}

/// Goal: the timeouts before the first request, within a body and between two requests. Method: a connection on which
/// nothing is sent, also no handshake; one whose body stalls; one that is kept.
fn clients_that_fall_silent_are_given_up(architecture: &str, protocol: Protocol) {
    let server = Watched::start_over(protocol, small_and_large(), architecture, &SHORT_TIMEOUTS);
    let before = server.sockets();
    let silent = connect_and_send(server.server().address(), "");
    let mut in_a_body = server.agent();
    in_a_body.begin("GET", "localhost", "/small.txt?body", "", Body::Length(1000));
    in_a_body.send_body(b"first");
    let mut idle = server.agent();
    assert_eq!(idle.get("/small.txt?idle").text(), "small");
    assert_eq!(in_a_body.response().text(), "small");

    let (bytes, in_order) = read_to_the_end(&silent);
    assert!(bytes.is_empty() && in_order, "a client without a request gets no response");
    server.wait_until_nothing_is_left(&before);
    for request in ["/small.txt?body", "/small.txt?idle"] {
        assert_eq!(server.line_of(request)["outcome"], "complete");
    }
}

/// Goal: the timeouts of the receiving phases as the bytes show them: a head that arrives endlessly, a body that stalls
/// after its answer, and a kept-alive connection without a next request.
fn senders_that_stop_are_given_up(architecture: &str, protocol: Protocol) {
    let server = Watched::start_over(protocol, small_and_large(), architecture, &SHORT_TIMEOUTS);
    let before = server.sockets();
    let send = |bytes: &str| {
        let mut client = server.connect();
        client.send(bytes);
        client
    };
    let in_a_body = send("GET /small.txt?body HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nfirst");
    let idle = send(&request("/small.txt?idle"));
    let mut in_a_head = send("GET /small.txt?head HTTP/1.1\r\nHost: a\r\nX: ");
    wait_until("a head takes too long", || {
        in_a_head.send_body(b"x");
        server.ended("timed-out") == 1
    });

    let text = String::from_utf8(in_a_head.until_the_end()).expect("text");
    assert!(text.starts_with("HTTP/1.1 408 ") && text.contains("\r\nConnection: close\r\n"), "{text}");
    let line = server.line_of("/small.txt?head");
    assert_eq!((&line["status"], &line["outcome"]), (&408.into(), &"timed-out".into()));

    for mut answered in [in_a_body, idle] {
        let text = String::from_utf8(answered.rest()).expect("text");
        assert!(text.starts_with("HTTP/1.1 200 ") && text.ends_with("\r\n\r\nsmall"), "{text}");
    }
    server.wait_until_nothing_is_left(&before);
}

const SHORT_TIMEOUTS: [&str; 5] = [
    "send.defer_accept_s=0",
    // Long enough for a client to send its bytes between two of its turns.
    "timeouts.head_ms=1500",
    "timeouts.body_ms=1500",
    "timeouts.idle_ms=1500",
    "timeouts.linger_ms=300",
];

//! Bodies that the application is given while they arrive, by every transport, and as SCGI has it.

use std::fs;

use crate::common::agent::{Agent, Body};
use crate::common::folder::{Folder, pattern};
use crate::common::protocol::Protocol;
use crate::common::server::{Server, wait_until};
use crate::program;

crate::protocols::over_every_protocol!(
    the_application_sees_how_an_upload_goes_on,
    what_an_application_does_not_read_is_not_the_next_request,
    an_application_that_fails_in_the_middle_of_a_body,
    a_body_that_breaks_off_does_not_look_complete,
    bodies_of_any_length_are_passed_on,
    a_client_may_send_all_of_its_body_before_it_reads,
    the_same_as_scgi,
);

/// What only HTTP/1 has.
mod http1 {
    crate::protocols::over_http1!(a_long_rest_ends_the_connection, half_a_body_and_half_a_connection);

    use super::{a_long_rest_ends_the_connection, half_a_body_and_half_a_connection};
}

/// Longer than what waits in memory.
const BEGINNING: usize = 100_000;

/// Sends the head of an upload.
fn post(client: &mut Agent, path: &str, length: usize) {
    client.begin("POST", "stage", path, "", Body::Length(length));
}

/// Sends the rest of a body.
fn complete(client: &mut Agent, rest: &[u8]) {
    client.send_body(rest);
    client.finish_body();
}

/// The answer reports each piece of the upload at once. The next request follows the body.
fn the_application_sees_how_an_upload_goes_on(server: &Server, below: &str) {
    let mut client = server.agent();
    let body = pattern(400_000, 5);
    post(&mut client, &format!("{below}-uploads/progress"), body.len());
    client.send_body(&body[..BEGINNING]);
    assert_eq!(client.head().status, 200);
    progress(&mut client, BEGINNING);
    client.send_body(&body[BEGINNING..BEGINNING + 1]);
    progress(&mut client, BEGINNING + 1);
    complete(&mut client, &body[BEGINNING + 1..]);
    progress(&mut client, body.len());
    assert_eq!(client.body(), Ok(Vec::new()), "nothing but the end");
    assert_eq!(client.get("/alphabet.txt").text(), crate::site::ALPHABET);
}

/// Reads pieces until one says that so much has arrived.
fn progress(client: &mut Agent, bytes: usize) {
    let mut seen = String::new();
    while !seen.ends_with(&format!("{bytes}\n")) {
        let piece = client.piece().expect("a whole answer");
        assert!(!piece.is_empty(), "{seen} instead of {bytes}");
        seen.push_str(std::str::from_utf8(&piece).expect("a number"));
    }
}

/// A small rest is discarded, and the connection is kept.
fn what_an_application_does_not_read_is_not_the_next_request(server: &Server, below: &str) {
    let mut client = server.agent();
    let body = "GET /secret HTTP/1.1\r\n\r\n".repeat(10_000);
    let (beginning, rest) = body.as_bytes().split_at(BEGINNING);
    post(&mut client, &format!("{below}-uploads/refuses"), body.len());
    client.send_body(beginning);
    assert_eq!(client.response().status, 403);
    complete(&mut client, rest);
    assert_eq!(client.get("/alphabet.txt").text(), crate::site::ALPHABET);
}

/// A larger rest ends the connection after the answer.
fn a_long_rest_ends_the_connection(server: &Server, below: &str) {
    let mut client = server.connect();
    client.begin("POST", "stage", &format!("{below}-uploads/refuses"), "", Body::Length(3_000_000));
    client.send_body(pattern(BEGINNING, 1));
    let answer = client.answer_to("POST");
    assert_eq!(answer.status, 403);
    // In SCGI only the end of the connection completes an answer.
    assert!(below == "/scgi" || answer.field("connection") == Some("close"));
    client.expect_end();
}

fn an_application_that_fails_in_the_middle_of_a_body(server: &Server, below: &str) {
    let mut client = server.agent();
    post(&mut client, &format!("{below}-uploads/fails"), 300_000);
    client.send_body(pattern(BEGINNING, 1));
    assert_eq!(client.response().status, 502);
    complete(&mut client, pattern(200_000, 1));
    assert_eq!(client.get("/alphabet.txt").text(), crate::site::ALPHABET);
}

/// The application gets an error, and the log blames the client.
fn a_body_that_breaks_off_does_not_look_complete(server: &Server, below: &str) {
    let name = format!("{}-{:?}", &below[1..], server.protocol());
    let mut client = server.agent();
    post(&mut client, &format!("{below}-uploads/counts?{name}"), 300_000);
    client.send_body(pattern(BEGINNING, 1));
    wait_until_begun(server, &name);
    drop(client);
    is_cut_off(server, below, &name);
}

/// The same where the client still reads.
fn half_a_body_and_half_a_connection(server: &Server, below: &str) {
    let name = format!("{}-{:?}-half", &below[1..], server.protocol());
    let mut client = server.connect();
    client.begin("POST", "stage", &format!("{below}-uploads/counts?{name}"), "", Body::Length(300_000));
    client.send_body(pattern(BEGINNING, 1));
    wait_until_begun(server, &name);
    client.finish_sending();
    client.expect_end();
    is_cut_off(server, below, &name);
}

fn wait_until_begun(server: &Server, name: &str) {
    let seen = server.folder().base().join(name);
    wait_until("the beginning", || fs::read_to_string(&seen).is_ok_and(|text| text.starts_with("began")));
}

fn is_cut_off(server: &Server, below: &str, name: &str) {
    let seen = server.folder().base().join(name);
    wait_until("the end", || fs::read_to_string(&seen).is_ok_and(|text| text.ends_with("cut off")));
    let line = format!("{below}-uploads/counts?{name} {}\" 400 0", server.protocol().version());
    let log = server.folder().base().join("access.log");
    wait_until("its line", || fs::read_to_string(&log).is_ok_and(|log| log.matches(&line).count() == 1));
}

/// At the bound of memory and beyond; also of a client that waits for `100 Continue`.
fn bodies_of_any_length_are_passed_on(server: &Server, below: &str) {
    let mut client = server.agent();
    let path = format!("{below}-uploads/echo");
    for length in [65_535, 65_536, 65_537, 131_072, 3_000_000] {
        let body = pattern(length, 3);
        assert!(client.send("POST", &path, body).body == body, "{length} bytes");
    }
    let body = pattern(300_000, 4);
    client.begin("PUT", "stage", &path, "Expect: 100-continue\r\n", Body::Length(body.len()));
    client.expect_continue();
    body.chunks(70_000).for_each(|piece| client.send_body(piece));
    client.finish_body();
    assert!(client.response().body == body);
}

/// Goal: a client that takes nothing of its answer is read all the same. Method: the application answers while it reads,
/// more than sockets hold; by one transport, since it is the session that is tested.
fn a_client_may_send_all_of_its_body_before_it_reads(server: &Server, below: &str) {
    if below != "/unix" {
        return;
    }
    let mut client = server.agent();
    let body = pattern(24 << 20, 6);
    assert!(client.send("POST", &format!("{below}-uploads/mirror?{}", body.len()), body).body == body);
}

/// Not another transport, but another protocol: once for all of them.
fn the_same_as_scgi(server: &Server, below: &str) {
    if below == "/unix" {
        the_application_sees_how_an_upload_goes_on(server, "/scgi");
        what_an_application_does_not_read_is_not_the_next_request(server, "/scgi");
        an_application_that_fails_in_the_middle_of_a_body(server, "/scgi");
        a_body_that_breaks_off_does_not_look_complete(server, "/scgi");
        if !server.protocol().is_http2() {
            a_long_rest_ends_the_connection(server, "/scgi");
            half_a_body_and_half_a_connection(server, "/scgi");
        }
        bodies_of_any_length_are_passed_on(server, "/scgi");
    }
}

/// A server whose application has two processes, at most one of them for streamed bodies.
fn two_processes(architecture: &str, protocol: Protocol) -> Server {
    let folder = Folder::new();
    let socket = folder.base().join("app.sock");
    program::start(&socket, folder.base(), 2);
    let site = format!("architecture = '{architecture}'\nprocesses = 1\n[timeouts]\nbody_ms = 1000\n{SMALL}");
    Server::run(folder, &site).over(protocol)
}

const SMALL: &str = "
[[site]]
{listen}
root = '{root}'
[[site.route]]
path = '/app'
fastcgi = { to = 'unix:{base}/app.sock', connections_max = 2, streamed_bodies_max = 1 }
";

/// More clients than processes send a part of a body and stall: others are answered, and each slow one, too, when it
/// continues.
fn slow_uploads_hold_no_pool(architecture: &str, protocol: Protocol) {
    let server = two_processes(architecture, protocol);
    let body = pattern(200_000, 1);
    let mut slow: Vec<_> = (0..6)
        .map(|_| {
            let mut client = server.agent();
            post(&mut client, "/app/echo", body.len());
            client.send_body(&body[..BEGINNING]);
            client
        })
        .collect();
    for _ in 0..4 {
        assert_eq!(server.get("/app/bytes?1000").body, pattern(1000, 1));
    }
    for client in &mut slow {
        complete(client, &body[BEGINNING..]);
        assert!(client.response().body == body);
    }
}

/// A client that stalls in the middle of a body gets a 408, whether its body is streamed or waits. That is the end of an
/// HTTP/1 connection, and of no other stream in HTTP/2.
fn silent_clients_are_told(architecture: &str, protocol: Protocol) {
    let server = two_processes(architecture, protocol);
    let mut silent: Vec<_> = (0..2)
        .map(|_| {
            let mut client = server.agent();
            post(&mut client, "/app/echo", 200_000);
            client.send_body(pattern(BEGINNING, 1));
            client
        })
        .collect();
    for client in &mut silent {
        let answer = client.response();
        assert_eq!(answer.status, 408);
        match client {
            Agent::Http1(client) => {
                assert_eq!(answer.field("connection"), Some("close"));
                client.expect_end();
            }
            Agent::Http2(_) => assert_eq!(client.get("/app/bytes?1000").body, pattern(1000, 1)),
        }
    }
}

macro_rules! alone_under {
    ($($module:ident, $word:literal, $protocol:ident;)+) => {
        $(mod $module {
            #[test]
            fn slow_uploads_hold_no_pool() {
                super::slow_uploads_hold_no_pool($word, super::Protocol::$protocol);
            }

            #[test]
            fn silent_clients_are_told() {
                super::silent_clients_are_told($word, super::Protocol::$protocol);
            }
        })+
    };
}

alone_under! {
    alone_auto, "auto", Http;
    alone_pipeline, "pipeline", Http;
    alone_threads, "threads", Http;
    alone_https, "auto", Https;
    alone_h2c, "auto", H2c;
    alone_h2, "pipeline", H2;
}

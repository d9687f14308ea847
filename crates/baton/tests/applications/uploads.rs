//! Bodies that the application is given while they arrive, by every transport, and as SCGI has it.

use std::fs;
use std::io::Read;

use crate::architectures::under_every_architecture;
use crate::common::client::Client;
use crate::common::folder::{Folder, pattern};
use crate::common::server::{Server, wait_until};
use crate::program;

under_every_architecture!(
    the_application_sees_how_an_upload_goes_on,
    what_an_application_does_not_read_is_not_the_next_request,
    an_application_that_fails_in_the_middle_of_a_body,
    a_body_that_breaks_off_does_not_look_complete,
    bodies_of_any_length_are_passed_on,
    a_client_may_send_all_of_its_body_before_it_reads,
    the_same_as_scgi,
);

/// Longer than what waits in memory.
const BEGINNING: usize = 100_000;

fn post(client: &mut Client, path: &str, length: usize) {
    client.send(format!("POST {path} HTTP/1.1\r\nHost: stage\r\nContent-Length: {length}\r\n\r\n"));
}

/// The answer reports each piece of the upload at once. The next request follows the body.
fn the_application_sees_how_an_upload_goes_on(server: &Server, below: &str) {
    let mut client = server.connect();
    let body = pattern(400_000, 5);
    post(&mut client, &format!("{below}-uploads/progress"), body.len());
    client.send(&body[..BEGINNING]);
    assert_eq!(client.head().status, 200);
    progress(&mut client, BEGINNING);
    client.send(&body[BEGINNING..BEGINNING + 1]);
    progress(&mut client, BEGINNING + 1);
    client.send([&body[BEGINNING + 1..], b"GET /alphabet.txt HTTP/1.1\r\nHost: stage\r\n\r\n"].concat());
    progress(&mut client, body.len());
    assert!(client.chunk().is_empty(), "nothing but the end");
    assert_eq!(client.answer_to("GET").text(), crate::site::ALPHABET);
}

/// Reads chunks until one says that so much has arrived.
fn progress(client: &mut Client, bytes: usize) {
    let mut seen = String::new();
    while !seen.ends_with(&format!("{bytes}\n")) {
        let chunk = client.chunk();
        assert!(!chunk.is_empty(), "{seen} instead of {bytes}");
        seen.push_str(std::str::from_utf8(&chunk).expect("a number"));
    }
}

/// A small rest is discarded, and the connection is kept; a larger one ends it after the answer.
fn what_an_application_does_not_read_is_not_the_next_request(server: &Server, below: &str) {
    let mut client = server.connect();
    let body = "GET /secret HTTP/1.1\r\n\r\n".repeat(10_000);
    let (beginning, rest) = body.as_bytes().split_at(BEGINNING);
    post(&mut client, &format!("{below}-uploads/refuses"), body.len());
    client.send(beginning);
    assert_eq!(client.answer_to("POST").status, 403);
    client.send(rest);
    client.send("GET /alphabet.txt HTTP/1.1\r\nHost: stage\r\n\r\n");
    assert_eq!(client.answer_to("GET").text(), crate::site::ALPHABET);

    let mut client = server.connect();
    post(&mut client, &format!("{below}-uploads/refuses"), 3_000_000);
    client.send(beginning);
    let answer = client.answer_to("POST");
    assert_eq!(answer.status, 403);
    // In SCGI only the end of the connection completes an answer.
    assert!(below == "/scgi" || answer.field("connection") == Some("close"));
    client.expect_end();
}

fn an_application_that_fails_in_the_middle_of_a_body(server: &Server, below: &str) {
    let mut client = server.connect();
    post(&mut client, &format!("{below}-uploads/fails"), 300_000);
    client.send(pattern(BEGINNING, 1));
    assert_eq!(client.answer_to("POST").status, 502);
    client.send(pattern(200_000, 1));
    client.send("GET /alphabet.txt HTTP/1.1\r\nHost: stage\r\n\r\n");
    assert_eq!(client.answer_to("GET").text(), crate::site::ALPHABET);
}

/// The application gets an error, and the log blames the client.
fn a_body_that_breaks_off_does_not_look_complete(server: &Server, below: &str) {
    for half in [false, true] {
        let mut client = server.connect();
        let path = format!("{below}-uploads/counts?{}-{half}", &below[1..]);
        post(&mut client, &path, 300_000);
        client.send(pattern(BEGINNING, 1));
        let seen = server.folder().base().join(format!("{}-{half}", &below[1..]));
        wait_until("the beginning", || fs::read_to_string(&seen).is_ok_and(|text| text.starts_with("began")));
        if half {
            client.finish_sending();
            client.expect_end();
        }
        drop(client);
        wait_until("the end", || fs::read_to_string(&seen).is_ok_and(|text| text.ends_with("cut off")));
        let line = format!("{path} HTTP/1.1\" 400 0");
        let log = server.folder().base().join("access.log");
        wait_until("its line", || fs::read_to_string(&log).is_ok_and(|log| log.matches(&line).count() == 1));
    }
}

/// At the bound of memory and beyond; also of a client that waits for `100 Continue`.
fn bodies_of_any_length_are_passed_on(server: &Server, below: &str) {
    let mut client = server.connect();
    for length in [65_535, 65_536, 65_537, 131_072, 3_000_000] {
        let body = pattern(length, 3);
        post(&mut client, &format!("{below}-uploads/echo"), length);
        client.send(&body);
        assert!(client.answer_to("POST").body == body, "{length} bytes");
    }
    let body = pattern(300_000, 4);
    client.send(format!(
        "PUT {below}-uploads/echo HTTP/1.1\r\nHost: stage\r\nContent-Length: 300000\r\nExpect: 100-continue\r\n\r\n"
    ));
    assert_eq!(client.head().status, 100);
    for piece in body.chunks(70_000) {
        client.send(piece);
    }
    assert!(client.answer_to("PUT").body == body);
}

/// Goal: a client that takes nothing of its answer is read all the same. Method: the application answers while it reads,
/// more than sockets hold; by one transport, since it is the session that is tested.
fn a_client_may_send_all_of_its_body_before_it_reads(server: &Server, below: &str) {
    if below != "/unix" {
        return;
    }
    let mut client = server.connect();
    let body = pattern(24 << 20, 6);
    post(&mut client, &format!("{below}-uploads/mirror?{}", body.len()), body.len());
    client.send(&body);
    assert!(client.answer_to("POST").body == body);
}

/// Not another transport, but another protocol: once for all of them.
fn the_same_as_scgi(server: &Server, below: &str) {
    if below == "/unix" {
        the_application_sees_how_an_upload_goes_on(server, "/scgi");
        what_an_application_does_not_read_is_not_the_next_request(server, "/scgi");
        an_application_that_fails_in_the_middle_of_a_body(server, "/scgi");
        a_body_that_breaks_off_does_not_look_complete(server, "/scgi");
        bodies_of_any_length_are_passed_on(server, "/scgi");
    }
}

/// A server whose application has two processes, at most one of them for streamed bodies.
fn two_processes(architecture: &str) -> Server {
    let folder = Folder::new();
    let socket = folder.base().join("app.sock");
    program::start(&socket, folder.base(), 2);
    let site = format!("architecture = '{architecture}'\nprocesses = 1\n[timeouts]\nbody_ms = 1000\n{SMALL}");
    Server::run(folder, &site)
}

const SMALL: &str = "
[[site]]
listen = ['127.0.0.1:0']
root = '{root}'
[[site.route]]
path = '/app'
fastcgi = { to = 'unix:{base}/app.sock', connections_max = 2, streamed_bodies_max = 1 }
";

/// More clients than processes send a part of a body and stall: others are answered, and each slow one, too, when it
/// continues.
fn slow_uploads_hold_no_pool(architecture: &str) {
    let server = two_processes(architecture);
    let body = pattern(200_000, 1);
    let mut slow: Vec<_> = (0..6)
        .map(|_| {
            let mut client = server.connect();
            post(&mut client, "/app/echo", body.len());
            client.send(&body[..BEGINNING]);
            client
        })
        .collect();
    for _ in 0..4 {
        let mut fast = server.connect();
        fast.send("GET /app/bytes?1000 HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(fast.answer_to("GET").body, pattern(1000, 1));
    }
    for client in &mut slow {
        client.send(&body[BEGINNING..]);
        assert!(client.answer_to("POST").body == body);
    }
}

/// A client that stalls in the middle of a body gets a 408, whether its body is streamed or waits.
fn silent_clients_are_told(architecture: &str) {
    let server = two_processes(architecture);
    let mut silent: Vec<_> = (0..2)
        .map(|_| {
            let mut client = server.connect();
            post(&mut client, "/app/echo", 200_000);
            client.send(pattern(BEGINNING, 1));
            client
        })
        .collect();
    for client in &mut silent {
        let answer = client.answer_to("POST");
        assert_eq!((answer.status, answer.field("connection")), (408, Some("close")));
        client.stream().take(1).read_to_end(&mut Vec::new()).expect("its end");
    }
}

macro_rules! alone_under {
    ($($module:ident, $word:literal;)+) => {
        $(mod $module {
            #[test]
            fn slow_uploads_hold_no_pool() {
                super::slow_uploads_hold_no_pool($word);
            }

            #[test]
            fn silent_clients_are_told() {
                super::silent_clients_are_told($word);
            }
        })+
    };
}

alone_under! {
    alone_auto, "auto";
    alone_pipeline, "pipeline";
    alone_threads, "threads";
}

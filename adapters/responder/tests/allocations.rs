//! In the steady state a request costs no allocation, by any transport.

mod rig;

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use baton_responder::{Answer, Connection, Memory};
use rig::{Client, HTTP_1_1, Region, Server, text};

const REQUESTS: usize = 20;

/// Has requests asked, and answered on this thread; returns the allocations of the later ones.
fn allocations(ask: impl Fn(&mut Server, &Client), body_bytes: usize) -> u64 {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut server = Server::new(ours);
    server.region = Some(Region::new(1 << 20));
    let mut connection = Connection::new(OwnedFd::from(theirs), Memory::default());
    let mut answer = Answer::new();
    let head = format!("Content-Type: text/html\r\nContent-Length: {body_bytes}\r\n\r\n");
    let body = text(body_bytes);
    let mut later = 0;
    for request in 0..REQUESTS {
        let client = Client::new();
        ask(&mut server, &client);
        let counted = allocation_counter::measure(|| {
            connection.next_request().unwrap().unwrap();
            connection.begin(&mut answer);
            assert!(connection.read_body().unwrap().is_empty());
            assert_eq!(connection.environment().get("LAST"), Some(&b"1"[..]));
            assert_eq!(connection.environment_mut().c_strings().count(), 3);
            answer.write(&mut connection, head.as_bytes()).unwrap();
            answer.write(&mut connection, &body).unwrap();
            answer.write_error(&mut connection, b"a message\n").unwrap();
            answer.finish(&mut connection, 0).unwrap();
        });
        if request >= REQUESTS / 2 {
            later += counted.count_total;
        }
        assert_eq!(server.reply().end, Some(0));
    }
    later
}

const VARIABLES: [(&str, &str); 3] = [("REQUEST_METHOD", "GET"), ("HTTP_COOKIE", "a=b"), ("LAST", "1")];

#[test]
fn plain_answers_allocate_nothing() {
    assert_eq!(allocations(|server, _| server.ask(&VARIABLES, b""), 40_000), 0);
}

#[test]
fn answers_on_the_clients_socket_allocate_nothing() {
    let ask = |server: &mut Server, client: &Client| server.pass(client, HTTP_1_1, 1000, &VARIABLES, b"");
    assert_eq!(allocations(ask, 40_000), 0);
}

#[test]
fn shared_answers_allocate_nothing() {
    assert_eq!(allocations(|server, _| server.share(1 << 20, &VARIABLES, b""), 40_000), 0);
}

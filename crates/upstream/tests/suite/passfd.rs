//! The application answers on the client's own socket.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use baton_fcgi::{Rest, application as records};
use baton_upstream::{ClientSocket, Failure, FailureReason, TransportChoice};

use crate::common::app::{App, Event, Offered, Peer, ReceivedRequest};
use crate::common::driver::{Driver, Ending};
use crate::common::{application, client, get, handed};

/// Takes the client's socket out of a request.
fn socket_of(asked: &mut ReceivedRequest) -> TcpStream {
    match std::mem::take(&mut asked.offer) {
        Offered::PassFd { client, .. } => TcpStream::from(client),
        other => panic!("no client came: {other:?}"),
    }
}

fn offering(app: &App) -> Arc<baton_upstream::Application> {
    application(app, |settings| settings.transport = TransportChoice::PassFd)
}

fn read(client: &mut TcpStream, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    client.read_exact(&mut bytes).unwrap();
    bytes
}

/// Writes to a nonblocking socket, and waits while it is full.
fn write_all(mut socket: &TcpStream, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        match socket.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(_) => return false,
        }
    }
    true
}

#[test]
fn the_client_is_answered_by_the_application() {
    let app = App::start(|peer| {
        while let Some(mut asked) = peer.request() {
            let Offered::PassFd { fields, .. } = &asked.offer else { panic!("no client came") };
            assert_eq!(fields, b"Server: test\r\n");
            write_all(&socket_of(&mut asked), b"HTTP/1.1 200 OK\r\n\r\nhello");
            peer.answered(&asked, 5);
        }
    });
    let application = offering(&app);
    let mut driver = Driver::new();
    let (server, mut client) = client();
    for id in 0..3 {
        let got = driver.ask(id, handed(&application, &server));
        let Some(Ending::Answered(answered)) = got.ending else { panic!("{got:?}") };
        assert!(answered.complete && answered.may_go_on);
        assert_eq!(answered.body_bytes, 5);
        assert_eq!(Arc::strong_count(&server), 1, "the application has no copy of the socket");
        assert_eq!(read(&mut client, 24), b"HTTP/1.1 200 OK\r\n\r\nhello");
    }
    assert_eq!(app.accepted(), 1);
}

/// Requests with and without a client, answered on the connection or on the client's socket, share one connection.
#[test]
fn offers_are_declined_and_absent_in_turn() {
    let app = App::start(|peer| {
        let mut count = 0;
        while let Some(mut asked) = peer.request() {
            count += 1;
            match (&asked.offer, count % 3) {
                (Offered::PassFd { .. }, 0) => {
                    drop(socket_of(&mut asked));
                    peer.answered(&asked, 0);
                }
                _ => {
                    asked.offer = Offered::Nothing;
                    peer.answer(&asked, b"X-Here: yes\n\nhere");
                }
            }
        }
    });
    let application = offering(&app);
    let (server, _client) = client();
    let mut driver = Driver::new();
    let (mut here, mut there) = (0, 0);
    for id in 0..30 {
        let request = if id % 4 == 0 { get(&application) } else { handed(&application, &server) };
        match driver.ask(id, request).ending {
            Some(Ending::Complete) => here += 1,
            Some(Ending::Answered(_)) => there += 1,
            other => panic!("{other:?}"),
        }
        assert_eq!(Arc::strong_count(&server), 1);
    }
    assert!(here > 10 && there > 5, "{here} {there}");
    assert_eq!(app.accepted(), 1);
}

fn hand_back(peer: &mut Peer, asked: &ReceivedRequest, parts: &[&[u8]]) {
    let rest = Rest { may_go_on: true, status: 200, head_sent: 19, body_sent: 2 };
    let mut out = Vec::new();
    records::push_rest(&mut out, asked.id, &rest);
    peer.write(&out);
    for part in parts {
        peer.stdout(asked, part);
    }
}

#[test]
fn the_rest_of_an_answer_is_handed_back() {
    let app = App::start(|peer| {
        while let Some(mut asked) = peer.request() {
            write_all(&socket_of(&mut asked), b"HTTP/1.1 200 OK\r\n\r\nhe");
            hand_back(peer, &asked, &[b"ll", b"o\r\n\r\n"]);
            peer.end(&asked);
        }
    });
    let application = offering(&app);
    let (server, mut client) = client();
    let mut driver = Driver::new();
    for id in 0..3 {
        let got = driver.ask(id, handed(&application, &server));
        assert_eq!(got.rest.unwrap().body_sent, 2);
        assert_eq!((got.ending, &got.body[..]), (Some(Ending::Complete), &b"llo\r\n\r\n"[..]));
        assert!(got.head.is_none(), "the rest is passed on without parsing a head");
        assert_eq!(read(&mut client, 21), b"HTTP/1.1 200 OK\r\n\r\nhe");
    }
}

/// The socket is the server's again when the rest begins, so the gateway must not reset it.
#[test]
fn an_application_that_ends_in_the_middle_of_the_rest() {
    let app = App::start(|peer| {
        let mut asked = peer.request().unwrap();
        drop(socket_of(&mut asked));
        hand_back(peer, &asked, &[b"half"]);
    });
    let (server, _client) = client();
    let mut driver = Driver::new();
    let got = driver.ask(1, handed(&offering(&app), &server));
    assert_eq!((got.why(), &got.body[..]), (FailureReason::Ended, &b"half"[..]));
    assert!(got.rest.is_some());
}

#[test]
fn a_drain_asks_for_what_was_passed() {
    let app = App::start(|peer| {
        while let Some(mut asked) = peer.request() {
            let socket = socket_of(&mut asked);
            assert_eq!(peer.event(), Some(Event::GiveBack));
            drop(socket);
            hand_back(peer, &asked, &[b"rest"]);
            peer.end(&asked);
        }
    });
    let (server, _client) = client();
    let mut driver = Driver::new();
    driver.begin(1, handed(&offering(&app), &server));
    driver.run_for(Duration::from_millis(20));
    driver.gateway.drain();
    assert_eq!(driver.finish(1).body, b"rest");
}

/// Goal: an answer to a slow client may take longer than the application's timeout. Method: the client reads a little now
/// and then, for several times the timeout, and stops. Then the request times out.
#[test]
fn a_client_that_makes_progress_is_waited_for() {
    let app = App::start(|peer| {
        let mut asked = peer.request().unwrap();
        let socket = socket_of(&mut asked);
        let some = vec![b'x'; 1 << 20];
        while write_all(&socket, &some) {}
        peer.event();
    });
    let application = application(&app, |settings| {
        settings.transport = TransportChoice::PassFd;
        settings.timeout_ms = 2_000;
    });
    let (server, mut client) = client();
    let (stop, stopped) = mpsc::channel::<()>();
    let reader = std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 20];
        while stopped.try_recv().is_err() {
            client.read_exact(&mut buffer).unwrap();
            std::thread::sleep(Duration::from_millis(40));
        }
        client
    });
    let mut driver = Driver::new();
    driver.begin(1, handed(&application, &server));
    driver.run_for(Duration::from_millis(5_000));
    assert!(!driver.got(1).is_over(), "{:?}", driver.got(1));
    stop.send(()).unwrap();
    let failure = Failure { why: FailureReason::TimedOut, client_lost: true, must_end: false };
    assert_eq!(driver.finish(1).ending, Some(Ending::Failed(failure)));
    drop(reader.join().unwrap());
}

/// An abandoned client is cut off without an answer, both while its request waits and while the application has it.
#[test]
fn an_abandoned_client_is_cut() {
    let (sender, receiver) = mpsc::channel::<bool>();
    let sender = Mutex::new(sender);
    let app = App::start(move |peer| {
        let mut asked = peer.request().unwrap();
        let socket = socket_of(&mut asked);
        assert_eq!(peer.event(), None, "its connection is closed");
        let written = write_all(&socket, b"HTTP/1.1 200 OK\r\n\r\n");
        sender.lock().unwrap().send(written).unwrap();
    });
    let (server, mut client): (Arc<ClientSocket>, TcpStream) = client();
    let mut driver = Driver::new();
    driver.begin(1, handed(&offering(&app), &server));
    driver.run_for(Duration::from_millis(20));
    driver.abandon(1);
    assert!(!receiver.recv().unwrap(), "it could still write");
    let error = client.read(&mut [0; 1]).expect_err("an orderly end could pass for the end of a body");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

//! Bodies that are given to the application while they arrive.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use baton_fcgi::response::ProtocolStatus;
use baton_gateway::{Application, ClientSocket, Failure, Settings, StreamedBodies, TransportChoice, Why};

use crate::common::app::{App, Event};
use crate::common::driver::{Driver, Ending};
use crate::common::{application, client, get, streamed};

const HELLO: &[u8] = b"Content-Type: text/plain\n\nhello";

/// The client may be silent for as long as the test runs.
const LONG_MS: u64 = 100_000;

fn admitting(app: &App, change: impl FnOnce(&mut Settings)) -> Arc<Application> {
    application(app, |settings| {
        settings.streamed_bodies = StreamedBodies::default().with_max(1);
        change(settings);
    })
}

fn admits(application: &Arc<Application>) -> bool {
    application.settings().streamed_bodies.admit().is_some()
}

/// Goal: what answers at a time is taken for processes, of which half may be held by uploads. Method: requests of which
/// each has the beginning of its answer, so that all of them are being answered.
#[test]
fn processes_are_known_when_they_have_been_seen() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let app = App::with_processes(2, move |peer| {
        while let Some(asked) = peer.request() {
            peer.stdout(&asked, HELLO);
            let _ = wait.lock().unwrap().recv();
            peer.end(&asked);
        }
    });
    let application = application(&app, |settings| {
        settings.transport = TransportChoice::Plain;
        settings.streamed_bodies = StreamedBodies::default().with_learned_max(1, 8);
    });
    let mut driver = Driver::new();
    for (whose, may_stream) in [(1, false), (2, true)] {
        driver.begin(whose, get(&application));
        driver.run_until(|driver| driver.got(whose).head.is_some());
        assert_eq!(admits(&application), may_stream, "{whose}");
    }
    drop(go);
    for whose in [1, 2] {
        assert_eq!(driver.finish(whose).ending, Some(Ending::Complete));
    }
    assert!(admits(&application), "it is remembered for a while");
}

/// Descriptors in the interest set of the loop.
fn watched(driver: &Driver) -> usize {
    let known = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", driver.epoll_number())).unwrap();
    known.lines().filter(|line| line.starts_with("tfd:")).count()
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 % 251) as u8).collect()
}

/// Goal: the application sees the body as it arrives, byte by byte, never more of the client's input than the body, and
/// an end only behind all of it; then nothing is left of it in the loop, and the connection is used again.
#[test]
fn a_body_is_passed_on_as_it_arrives() {
    for transport in [TransportChoice::Plain, TransportChoice::Shm] {
        let (seen, see) = mpsc::channel();
        let app = App::start(move |peer| {
            while let Some(asked) = peer.head() {
                let mut body = Vec::new();
                loop {
                    match peer.event() {
                        Some(Event::Stdin(part)) => {
                            body.extend(part);
                            seen.send(body.len()).unwrap();
                        }
                        Some(Event::StdinEnd) => break,
                        other => panic!("{other:?}"),
                    }
                }
                peer.answer(&asked, &[b"X-A: b\n\n", &body[..]].concat());
            }
        });
        let application = admitting(&app, |settings| settings.transport = transport);
        let (server, mut peer) = client();
        let mut driver = Driver::new();
        let body = bytes(200_000);
        let before = watched(&driver);
        driver.begin(1, streamed(&application, &server, &body[..70_000], 130_000, LONG_MS));
        assert!(!admits(&application), "it has taken the only place");
        for end in [70_000, 70_001, 150_000] {
            let mut total = 0;
            driver.run_until(|_| {
                total = see.try_iter().last().unwrap_or(total);
                total == end
            });
            let next = if end == 70_000 { 70_001 } else { 150_000 };
            peer.write_all(&body[end..next.max(end)]).unwrap();
        }
        peer.write_all(&[&body[150_000..], b"GET /next"].concat()).unwrap();
        let got = driver.finish(1);
        assert!(got.body == body && got.ending == Some(Ending::Complete));
        assert!(admits(&application), "and given it back");
        let mut next = [0; 100];
        assert_eq!(rustix::net::recv(&server, &mut next, rustix::net::RecvFlags::empty()).unwrap().1, 9);
        driver.run_until(|driver| driver.report("connections") == 0);
        assert_eq!(watched(&driver), before, "nothing is watched for any more");
        driver.ask(2, get(&application));
    }
}

/// Goal: neither side is read further than the other one goes along. Method: an application that does not read before it
/// is told to; the client can send no more than what sockets hold.
#[test]
fn the_client_waits_for_the_application() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let app = App::start(move |peer| {
        wait.lock().unwrap().recv().unwrap();
        while let Some(asked) = peer.request() {
            let len = asked.stdin.len().to_string();
            peer.answer(&asked, &[b"X-A: b\n\n", len.as_bytes()].concat());
        }
    });
    let application = admitting(&app, |settings| {
        settings.transport = TransportChoice::Plain;
        settings.timeout_ms = LONG_MS;
    });
    let (server, mut peer) = client();
    let mut driver = Driver::new();
    let body = vec![7; 40 << 20];
    driver.begin(1, streamed(&application, &server, &body[..70_000], body.len() as u64 - 70_000, LONG_MS));
    peer.set_nonblocking(true).unwrap();
    let mut sent = 70_000;
    let mut push = |peer: &mut TcpStream| {
        let mut progress = false;
        while sent < body.len() {
            match peer.write(&body[sent..]) {
                Ok(count) => (sent, progress) = (sent + count, true),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    break;
                }
            }
        }
        (sent, progress)
    };
    // Sockets grow for a while: until nothing moves for many rounds.
    let (mut quiet, mut stuck_at) = (0, 0);
    while quiet < 20 {
        let (sent, progress) = push(&mut peer);
        quiet = if progress { 0 } else { quiet + 1 };
        stuck_at = sent;
        driver.run_for(Duration::from_millis(10));
    }
    assert!(stuck_at < 30 << 20, "{stuck_at} bytes were taken for an application that reads nothing");
    go.send(()).unwrap();
    driver.run_until(|driver| {
        push(&mut peer);
        driver.got(1).is_over()
    });
    assert_eq!(driver.got(1).body, (40 << 20).to_string().as_bytes());
}

/// Goal: a body that breaks off never looks complete, and is not said to be the application's fault.
#[test]
fn a_client_that_goes_away_breaks_the_body_off() {
    for is_reset in [false, true] {
        let (seen, see) = mpsc::channel();
        let app = App::start(move |peer| {
            peer.head().unwrap();
            let mut ended = false;
            while let Some(event) = peer.event() {
                ended |= event == Event::StdinEnd;
            }
            seen.send(ended).unwrap();
        });
        let application = admitting(&app, |settings| settings.transport = TransportChoice::Plain);
        let (server, peer) = client();
        let mut driver = Driver::new();
        driver.begin(1, streamed(&application, &server, b"beginning", 1000, LONG_MS));
        (&peer).write_all(b"more").unwrap();
        driver.run_for(Duration::from_millis(20));
        if is_reset {
            rustix::net::sockopt::set_socket_linger(&peer, Some(Duration::ZERO)).unwrap();
        }
        drop(peer);
        let failure = Failure { why: Why::ClientGone, client_lost: false, must_end: false, unread: 996 };
        assert_eq!(driver.finish(1).ending, Some(Ending::Failed(failure)));
        assert!(!see.recv().unwrap(), "the end of a body that is not complete");
        assert!(admits(&application));
        assert_eq!((driver.report("failures"), driver.report("abandoned")), (0.into(), 1.into()));
    }
}

#[test]
fn a_client_that_falls_silent_is_not_waited_for() {
    let app = App::start(|peer| {
        peer.head().unwrap();
        while peer.event().is_some() {}
    });
    let application = admitting(&app, |settings| settings.transport = TransportChoice::Plain);
    let (server, _peer) = client();
    let mut driver = Driver::new();
    driver.begin(1, streamed(&application, &server, b"beginning", 1000, 30));
    assert_eq!(driver.finish(1).why(), Why::BodyTimedOut);
    assert_eq!(Why::BodyTimedOut.status(), 408);
}

/// An application that has what it needs answers; what it has not read stays with the client, and its connection is of
/// no further use.
#[test]
fn an_application_may_answer_before_the_end_of_the_body() {
    let app = App::start(|peer| {
        while let Some(asked) = peer.head() {
            peer.answer(&asked, HELLO);
        }
    });
    let application = admitting(&app, |settings| settings.transport = TransportChoice::Plain);
    let (server, _peer) = client();
    let mut driver = Driver::new();
    driver.begin(1, streamed(&application, &server, b"beginning", 1000, LONG_MS));
    let got = driver.finish(1);
    assert_eq!((&got.body[..], got.ending, got.unread), (&b"hello"[..], Some(Ending::Complete), 1000));
    assert!(admits(&application));
    assert_eq!(driver.report("connections"), 0);
}

/// Goal: a request is repeated only as long as all of it is there. Method: connections that were used before are closed
/// without an answer, before or after something was read of the rest; idempotent requests, which are repeated otherwise.
#[test]
fn a_request_is_not_repeated_once_its_body_was_read() {
    for (sent, expected) in [(&b""[..], None), (b"more", Some(Why::Ended))] {
        let (seen, see) = mpsc::channel();
        let app = App::start(move |peer| {
            let asked = peer.request().unwrap();
            peer.answer(&asked, HELLO);
            if peer.index > 0 {
                return;
            }
            let _ = peer.head();
            let mut body = Vec::new();
            while body.len() < b"beginning".len() + sent.len() {
                match peer.event() {
                    Some(Event::Stdin(part)) => body.extend(part),
                    _ => break,
                }
            }
            seen.send(()).unwrap();
        });
        let application = admitting(&app, |settings| {
            settings.transport = TransportChoice::Plain;
            settings.idle_timeout_ms = LONG_MS;
        });
        let (server, mut peer) = client();
        let mut driver = Driver::new();
        driver.ask(0, get(&application));
        let mut request = streamed(&application, &server, b"beginning", 10, LONG_MS);
        request.idempotent = true;
        driver.begin(1, request);
        peer.write_all(sent).unwrap();
        driver.run_until(|_| see.try_recv().is_ok());
        match expected {
            Some(why) => assert_eq!(driver.finish(1).why(), why),
            None => {
                driver.run_until(|driver| driver.report("retries") == 1);
                peer.write_all(&[7; 10]).unwrap();
                assert_eq!(driver.finish(1).body, b"hello");
            }
        }
    }
}

/// The same of an application that refuses the request, which is repeated otherwise whatever it is.
#[test]
fn a_refusal_behind_the_beginning_of_a_body_is_final() {
    let app = App::start(|peer| {
        while let Some(asked) = peer.head() {
            if peer.index == 0 && asked.params.is_empty() {
                return;
            }
            let mut is_streamed = false;
            loop {
                match peer.event() {
                    Some(Event::StdinEnd) => break,
                    Some(Event::Stdin(part)) if part == b"more" => {
                        is_streamed = true;
                        break;
                    }
                    Some(_) => {}
                    None => return,
                }
            }
            if is_streamed {
                peer.finish(&asked, ProtocolStatus::Overloaded);
                return;
            }
            peer.answer(&asked, HELLO);
        }
    });
    let application = admitting(&app, |settings| {
        settings.transport = TransportChoice::Plain;
        settings.idle_timeout_ms = LONG_MS;
    });
    let (server, mut peer) = client();
    let mut driver = Driver::new();
    driver.ask(0, get(&application));
    driver.begin(1, streamed(&application, &server, b"beginning", 10, LONG_MS));
    driver.run_for(Duration::from_millis(20));
    peer.write_all(b"more").unwrap();
    assert_eq!(driver.finish(1).why(), Why::Overloaded);
    assert_eq!(driver.report("retries"), 0);
}

/// An application that closes its connection in the middle of the body has failed; one that has answered before has not.
#[test]
fn an_application_that_dies_in_the_middle() {
    let app = App::start(|peer| {
        let asked = peer.head().unwrap();
        peer.event().unwrap();
        if peer.index == 1 {
            peer.answer(&asked, HELLO);
        }
    });
    let application = admitting(&app, |settings| settings.transport = TransportChoice::Plain);
    for whose in 0..2 {
        let (server, mut peer) = client();
        let mut driver = Driver::new();
        let body = bytes(1 << 20);
        driver.begin(whose, streamed(&application, &server, b"beginning", 1 << 20, LONG_MS));
        // It may not want all of it.
        peer.set_nonblocking(true).unwrap();
        let _ = peer.write(&body);
        match whose {
            0 => assert_eq!(driver.finish(whose).why(), Why::Ended),
            _ => assert_eq!(driver.finish(whose).body, b"hello"),
        }
        assert!(admits(&application));
        assert!(matches!(peer.read(&mut [0; 1]), Err(error) if error.kind() == ErrorKind::WouldBlock));
    }
}

/// A request that nobody wants any more gives back what it held, wherever it is.
#[test]
fn an_abandoned_upload_leaves_nothing() {
    let app = App::start(|peer| while peer.event().is_some() {});
    let application = admitting(&app, |settings| settings.transport = TransportChoice::Plain);
    let (server, _peer): (Arc<ClientSocket>, _) = client();
    let mut driver = Driver::new();
    let before = watched(&driver);
    driver.begin(1, streamed(&application, &server, b"beginning", 10, LONG_MS));
    driver.run_until(|driver| watched(driver) == before + 2);
    driver.abandon(1);
    assert_eq!(watched(&driver), before);
    assert!(admits(&application));
}

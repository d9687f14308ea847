//! Bodies that are streamed to the application while they arrive.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use baton_fcgi::response::ProtocolStatus;
use baton_upstream::{
    Application, Failure, FailureReason, RequestId, Settings, StreamedBodies, TransportChoice,
};

use crate::common::app::{App, Event};
use crate::common::driver::{Driver, Ending};
use crate::common::{application, get, streamed};

const HELLO: &[u8] = b"Content-Type: text/plain\n\nhello";

/// Longer than any test runs.
const LONG_MS: u64 = 100_000;

fn admitting(app: &App, change: impl FnOnce(&mut Settings)) -> Arc<Application> {
    application(app, |settings| {
        settings.streamed_bodies = StreamedBodies::default().with_max(1);
        settings.transport = TransportChoice::Plain;
        change(settings);
    })
}

fn admits(application: &Arc<Application>) -> bool {
    application.settings().streamed_bodies.admit().is_some()
}

/// Goal: the gateway learns the number of processes from concurrent answers, and admits uploads to half of them. Method:
/// requests that have the beginning of their answers, so that all are being answered.
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
    for (id, may_stream) in [(1, false), (2, true)] {
        driver.begin(id, get(&application));
        driver.run_until(|driver| driver.got(id).head.is_some());
        assert_eq!(admits(&application), may_stream, "{id}");
    }
    drop(go);
    for id in [1, 2] {
        assert_eq!(driver.finish(id).ending, Some(Ending::Complete));
    }
    assert!(admits(&application), "it is remembered for a while");
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 % 251) as u8).collect()
}

/// Goal: the application gets the body unchanged, and its end only behind all of it. Then the connection is reused.
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
        let mut driver = Driver::new();
        let body = bytes(200_000);
        driver.begin(1, streamed(&application, &body[..70_000], 130_000));
        assert!(!admits(&application), "it has taken the only place");
        let mut before = 70_000;
        for end in [70_001, 150_000, 200_000] {
            let mut total = 0;
            driver.run_until(|_| {
                total = see.try_iter().last().unwrap_or(total);
                total == before
            });
            driver.push(1, &body[before..end]);
            before = end;
        }
        let got = driver.finish(1);
        assert!(got.body == body && got.ending == Some(Ending::Complete));
        assert!(admits(&application), "and given it back");
        driver.ask(2, get(&application));
        assert_eq!(driver.report("connections_opened"), 1);
    }
}

/// Goal: the gateway asks for more only when the application has taken the last piece, and the application's timeout runs
/// meanwhile. Method: an application that does not read before the test tells it to.
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
    let application = admitting(&app, |settings| settings.timeout_ms = LONG_MS);
    let mut driver = Driver::new();
    let body = vec![7; 40 << 20];
    let mut pieces = body[70_000..].chunks(64 << 10);
    driver.begin(1, streamed(&application, &body[..70_000], (body.len() - 70_000) as u64));
    let mut pushed = 70_000;
    driver.run_for(Duration::from_millis(10));
    while driver.got(1).wants {
        let piece = pieces.next().expect("sockets do not hold all of it");
        driver.push(1, piece);
        pushed += piece.len();
        driver.run_for(Duration::ZERO);
    }
    driver.run_for(Duration::from_millis(50));
    assert!(!driver.got(1).wants, "{pushed} bytes lie there unread");
    assert!(pushed < 30 << 20, "{pushed} bytes were taken for an application that reads nothing");
    go.send(()).unwrap();
    for piece in pieces {
        driver.push(1, piece);
    }
    assert_eq!(driver.finish(1).body, (40 << 20).to_string().as_bytes());
}

/// Goal: waiting for the client does not count towards the application's timeout. Method: a client slower than that.
#[test]
fn an_application_that_waits_for_the_body_is_not_late() {
    let app = App::start(|peer| {
        while let Some(asked) = peer.request() {
            peer.answer(&asked, &[b"X-A: b\n\n", &asked.stdin[..]].concat());
        }
    });
    let application = admitting(&app, |settings| settings.timeout_ms = 30);
    let mut driver = Driver::new();
    driver.stop_clock(true);
    driver.begin(1, streamed(&application, b"beginning", 4));
    driver.run_until(|driver| driver.got(1).wants);
    driver.stop_clock(false);
    driver.run_for(Duration::from_millis(100));
    driver.stop_clock(true);
    driver.push(1, b"more");
    assert_eq!(driver.finish(1).body, b"beginningmore");
}

/// Goal: a body that breaks off never looks complete, and does not count as the application's failure.
#[test]
fn a_body_that_breaks_off_is_not_ended() {
    for why in [FailureReason::ClientGone, FailureReason::BodyTimedOut] {
        let (seen, see) = mpsc::channel();
        let app = App::start(move |peer| {
            peer.head().unwrap();
            let mut ended = false;
            while let Some(event) = peer.event() {
                ended |= event == Event::StdinEnd;
            }
            seen.send(ended).unwrap();
        });
        let application = admitting(&app, |_| {});
        let mut driver = Driver::new();
        driver.begin(1, streamed(&application, b"beginning", 1000));
        driver.push(1, b"more");
        driver.run_for(Duration::from_millis(20));
        driver.gateway.fail_body(RequestId::new(1), why, driver.now_ms());
        let failure = Failure { why, client_lost: false, must_end: false };
        assert_eq!(driver.finish(1).ending, Some(Ending::Failed(failure)));
        assert!(!see.recv().unwrap(), "the end of a body that is not complete");
        assert!(admits(&application));
        assert_eq!((driver.report("failures"), driver.report("abandoned")), (0.into(), 1.into()));
    }
    assert_eq!(FailureReason::BodyTimedOut.status(), 408);
}

/// Goal: pieces that come before the request has a connection are kept for it. Method: the only connection is in use.
#[test]
fn a_body_may_come_while_its_request_waits() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let app = App::start(move |peer| {
        while let Some(asked) = peer.request() {
            let _ = wait.lock().unwrap().recv();
            peer.answer(&asked, &[b"X-A: b\n\n", &asked.stdin[..]].concat());
        }
    });
    for ends_early in [false, true] {
        let application = admitting(&app, |settings| settings.connections_max = 1);
        let mut driver = Driver::new();
        driver.begin(1, get(&application));
        driver.begin(2, streamed(&application, b"beginning", 8));
        let now_ms = driver.now_ms();
        assert!(!driver.gateway.wants_body(RequestId::new(2)), "no application wants it yet");
        driver.gateway.push_body(RequestId::new(2), b"more".to_vec().into(), false, now_ms);
        if ends_early {
            driver.gateway.fail_body(RequestId::new(2), FailureReason::ClientGone, now_ms);
            assert_eq!(driver.finish(2).why(), FailureReason::ClientGone);
        }
        go.send(()).unwrap();
        assert_eq!(driver.finish(1).ending, Some(Ending::Complete));
        if !ends_early {
            driver.push(2, b"last");
            go.send(()).unwrap();
            assert_eq!(driver.finish(2).body, b"beginningmorelast");
        }
        assert!(admits(&application));
    }
}

/// An application may answer before the body is complete. Its connection is closed, and later pieces are dropped.
#[test]
fn an_application_may_answer_before_the_end_of_the_body() {
    let app = App::start(|peer| {
        while let Some(asked) = peer.head() {
            peer.answer(&asked, HELLO);
        }
    });
    let application = admitting(&app, |_| {});
    let mut driver = Driver::new();
    driver.begin(1, streamed(&application, b"beginning", 1000));
    driver.run_until(|driver| driver.report("connections") == 0);
    driver.gateway.push_body(RequestId::new(1), b"late".to_vec().into(), false, driver.now_ms());
    let got = driver.finish(1);
    assert_eq!((&got.body[..], got.ending), (&b"hello"[..], Some(Ending::Complete)));
    assert!(admits(&application));
}

/// Goal: a request is repeated only while the gateway still has all of it. Method: idempotent requests on reused connections
/// that close without an answer, before or after some or all of the rest was passed on.
#[test]
fn a_request_is_not_repeated_once_its_body_was_passed_on() {
    for (sent, expected) in [
        (&b""[..], None),
        (b"more", Some(FailureReason::Ended)),
        (b"more, to 10", Some(FailureReason::Ended)),
    ] {
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
        let application = admitting(&app, |settings| settings.idle_timeout_ms = LONG_MS);
        let mut driver = Driver::new();
        driver.ask(0, get(&application));
        let mut request = streamed(&application, b"beginning", 11);
        request.idempotent = true;
        driver.begin(1, request);
        if !sent.is_empty() {
            driver.push(1, sent);
        }
        driver.run_until(|_| see.try_recv().is_ok());
        match expected {
            Some(why) => assert_eq!(driver.finish(1).why(), why),
            None => {
                driver.run_until(|driver| driver.report("retries") == 1);
                driver.gateway.push_body(RequestId::new(1), vec![7; 11].into(), false, driver.now_ms());
                assert_eq!(driver.finish(1).body, b"hello");
            }
        }
    }
}

/// The same for an application that refuses the request, which is otherwise repeated even if not idempotent.
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
    let application = admitting(&app, |settings| settings.idle_timeout_ms = LONG_MS);
    let mut driver = Driver::new();
    driver.ask(0, get(&application));
    driver.begin(1, streamed(&application, b"beginning", 10));
    driver.run_for(Duration::from_millis(20));
    driver.push(1, b"more");
    assert_eq!(driver.finish(1).why(), FailureReason::Overloaded);
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
    let application = admitting(&app, |_| {});
    for id in 0..2 {
        let mut driver = Driver::new();
        driver.begin(id, streamed(&application, b"beginning", 1 << 20));
        // The application may close before it has all of it.
        driver.push(id, &bytes(64 << 10));
        match id {
            0 => assert_eq!(driver.finish(id).why(), FailureReason::Ended),
            _ => assert_eq!(driver.finish(id).body, b"hello"),
        }
        assert!(admits(&application));
    }
}

/// An abandoned request frees what it held, wherever it is.
#[test]
fn an_abandoned_upload_leaves_nothing() {
    let app = App::start(|peer| while peer.event().is_some() {});
    let application = admitting(&app, |_| {});
    let mut driver = Driver::new();
    driver.begin(1, streamed(&application, b"beginning", 10));
    driver.run_until(|driver| driver.got(1).wants);
    driver.abandon(1);
    assert!(admits(&application));
    driver.gateway.push_body(RequestId::new(1), b"late".to_vec().into(), false, driver.now_ms());
    assert!(!driver.gateway.wants_body(RequestId::new(1)));
}

//! Queues, and the choice of connections.

use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use baton_fcgi::response::ProtocolStatus;
use baton_upstream::{Address, Application, Endpoint, FailureReason, Settings, TransportChoice};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::common::app::App;
use crate::common::driver::{Driver, Ending};
use crate::common::{application, get, post};

pub(crate) const HELLO: &[u8] = b"Content-Type: text/plain\r\n\r\nhello";

fn plain(settings: &mut Settings) {
    settings.transport = TransportChoice::Plain;
}

/// An application that answers a request when the test tells it to.
pub(crate) fn answering_on_demand() -> (App, mpsc::Sender<()>) {
    let (sender, receiver) = mpsc::channel();
    let receiver = Mutex::new(receiver);
    let app = App::start(move |peer| {
        while let Some(asked) = peer.request() {
            receiver.lock().unwrap().recv().unwrap();
            peer.answer(&asked, HELLO);
        }
    });
    (app, sender)
}

/// Goal: a process whose connection is kept serves the next client on another one. Method: one process, two requests at
/// once, so that the second connection waits in the backlog when the first has served its request; connections are
/// kept for longer than the test runs.
#[test]
fn a_kept_connection_holds_no_process_that_another_needs() {
    let (app, go) = answering_on_demand();
    let application = application(&app, |settings| {
        plain(settings);
        settings.idle_timeout_ms = 3_600_000;
    });
    let mut driver = Driver::new();
    for id in 0..3 {
        driver.begin(id, get(&application));
    }
    for _ in 0..4 {
        go.send(()).unwrap();
    }
    for id in 0..3 {
        assert_eq!(driver.finish(id).body, b"hello");
    }
    assert_eq!(app.accepted(), 3);
    driver.ask(3, get(&application));
    assert_eq!(app.accepted(), 3, "the last one was kept");
}

#[test]
fn requests_beyond_the_connections_wait_in_order_and_beyond_the_queue_are_refused() {
    let (app, go) = answering_on_demand();
    let application = application(&app, |settings| {
        plain(settings);
        settings.connections_max = 1;
        settings.queue_max = 2;
    });
    let mut driver = Driver::new();
    for id in 0..4 {
        driver.begin(id, get(&application));
    }
    assert_eq!(driver.finish(3).why(), FailureReason::QueueFull);
    assert_eq!((driver.report("busy"), driver.report("waiting")), (1.into(), 2.into()));
    for id in 0..3 {
        assert!((id..3).all(|waiting| !driver.got(waiting).is_over()));
        go.send(()).unwrap();
        assert_eq!(driver.finish(id).body, b"hello");
    }
    assert_eq!(app.accepted(), 1);
}

#[test]
fn nobody_waits_for_longer_than_allowed() {
    let (app, go) = answering_on_demand();
    let application = application(&app, |settings| {
        plain(settings);
        settings.connections_max = 1;
        settings.queue_timeout_ms = 30;
    });
    let mut driver = Driver::new();
    driver.begin(0, get(&application));
    assert_eq!(driver.ask(1, get(&application)).why(), FailureReason::QueueTimeout);
    go.send(()).unwrap();
    assert_eq!(driver.finish(0).ending, Some(Ending::Complete));
}

/// A cancelled request leaves the queue.
#[test]
fn who_gives_up_waiting_is_forgotten() {
    let (app, go) = answering_on_demand();
    let application = application(&app, |settings| {
        plain(settings);
        settings.connections_max = 1;
        settings.queue_max = 1;
    });
    let mut driver = Driver::new();
    driver.begin(0, get(&application));
    driver.begin(1, get(&application));
    driver.abandon(1);
    driver.begin(2, get(&application));
    go.send(()).unwrap();
    go.send(()).unwrap();
    assert_eq!(driver.finish(2).body, b"hello");
    assert!(!driver.got(1).is_over());
}

#[test]
fn nobody_listens() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings::new("none", Endpoint::Shared(Address::Unix(folder.path().join("none"))));
    let mut driver = Driver::new();
    let request = get(&Application::new(settings).unwrap());
    assert_eq!(driver.ask(1, request).why(), FailureReason::NoConnection(Errno::NOENT));
    drop(UnixListener::bind(folder.path().join("refused")).unwrap());
    let settings = Settings::new("refused", Endpoint::Shared(Address::Unix(folder.path().join("refused"))));
    let request = get(&Application::new(settings).unwrap());
    assert_eq!(driver.ask(1, request).why(), FailureReason::NoConnection(Errno::CONNREFUSED));
    let settings = Settings::new("tcp", Endpoint::Shared(Address::Inet("127.0.0.1:1".parse().unwrap())));
    let request = get(&Application::new(settings).unwrap());
    assert_eq!(driver.ask(1, request).why(), FailureReason::NoConnection(Errno::CONNREFUSED));
}

/// A socket with a full backlog: a queue of one, and no process that accepts.
fn full_backlog(folder: &std::path::Path) -> (UnixListener, Vec<std::os::unix::net::UnixStream>) {
    let path = folder.join("full");
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    rustix::net::bind(&socket, &rustix::net::SocketAddrUnix::new(&path).unwrap()).unwrap();
    rustix::net::listen(&socket, 0).unwrap();
    let fillers = vec![std::os::unix::net::UnixStream::connect(&path).unwrap()];
    (UnixListener::from(socket), fillers)
}

#[test]
fn a_full_backlog_is_tried_again_until_the_time_is_up() {
    let folder = tempfile::tempdir().unwrap();
    let (listener, _fillers) = full_backlog(folder.path());
    let endpoint = Endpoint::Shared(Address::Unix(folder.path().join("full")));
    let mut settings = Settings::new("full", endpoint.clone());
    settings.transport = TransportChoice::Plain;
    settings.connect_timeout_ms = 40;
    let mut driver = Driver::new();
    let request = get(&Application::new(settings.clone()).unwrap());
    assert_eq!(driver.ask(1, request).why(), FailureReason::NoConnection(Errno::AGAIN));

    // The backlog has room in time: the request is served.
    settings.connect_timeout_ms = 10_000;
    driver.begin(2, get(&Application::new(settings).unwrap()));
    driver.run_for(Duration::from_millis(20));
    drop(listener.accept().unwrap());
    driver.run_until(|driver| driver.report("connections") == 1);
    let (server, _) = listener.accept().unwrap();
    drop(server);
    assert_eq!(driver.finish(2).why(), FailureReason::Ended);
}

#[test]
fn a_connection_that_was_closed_between_requests_is_replaced() {
    let app = App::start(|peer| {
        if let Some(asked) = peer.request() {
            peer.answer(&asked, HELLO);
        }
    });
    let application = application(&app, plain);
    let mut driver = Driver::new();
    for id in 0..5 {
        let got = driver.ask(id, post(&application, b"not to be sent twice"));
        assert_eq!(got.ending, Some(Ending::Complete), "{id}");
        // Nothing tells the gateway that the connection is gone.
        app.wait_closed(id as usize + 1);
    }
    assert_eq!(app.accepted(), 5);
}

/// An application that closes a kept connection when it has read the second request on it.
fn closing_after_the_second() -> App {
    App::start(|peer| {
        let asked = peer.request().unwrap();
        peer.answer(&asked, HELLO);
        if peer.index == 0 {
            peer.request();
        }
    })
}

#[test]
fn what_can_be_asked_twice_is_when_a_kept_connection_ends() {
    let app = closing_after_the_second();
    let application = application(&app, plain);
    let mut driver = Driver::new();
    driver.ask(1, get(&application));
    assert_eq!(driver.ask(2, get(&application)).body, b"hello");
    assert_eq!(driver.report("retries"), 1);
    assert_eq!(app.accepted(), 2);
}

#[test]
fn what_cannot_be_asked_twice_is_not() {
    let app = closing_after_the_second();
    let application = application(&app, plain);
    let mut driver = Driver::new();
    driver.ask(1, post(&application, b"1"));
    assert_eq!(driver.ask(2, post(&application, b"2")).why(), FailureReason::Ended);
    assert_eq!(driver.report("retries"), 0);
}

/// An application that refuses a request on a kept connection has not begun with it.
#[test]
fn a_request_refused_on_a_kept_connection_goes_to_another() {
    let app = App::start(|peer| {
        let asked = peer.request().unwrap();
        if peer.index == 2 {
            peer.finish(&asked, ProtocolStatus::Overloaded);
            return;
        }
        peer.answer(&asked, HELLO);
        if let Some(asked) = peer.request() {
            peer.finish(&asked, ProtocolStatus::Overloaded);
        }
    });
    let application = application(&app, plain);
    let mut driver = Driver::new();
    driver.ask(1, post(&application, b"1"));
    assert_eq!(driver.ask(2, post(&application, b"2")).body, b"hello");
    assert_eq!(driver.report("retries"), 1);
    // On a new connection a refusal is final.
    driver.ask(3, post(&application, b"3"));
    assert_eq!(driver.got(3).why(), FailureReason::Overloaded);
}

#[test]
fn connections_are_kept_only_as_configured() {
    let kept = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&kept);
    let app = App::start(move |peer| {
        while let Some(asked) = peer.request() {
            told.fetch_or(asked.keep, Ordering::SeqCst);
            peer.answer(&asked, HELLO);
            if !asked.keep {
                return;
            }
        }
    });
    let mut driver = Driver::new();
    let never = application(&app, |settings| {
        plain(settings);
        settings.keep_connections = false;
    });
    for id in 0..3 {
        driver.ask(id, get(&never));
    }
    assert_eq!(app.accepted(), 3);
    assert!(!kept.load(Ordering::SeqCst));
    let twice = application(&app, |settings| {
        plain(settings);
        settings.requests_max_per_connection = 2;
    });
    for id in 0..6 {
        driver.ask(id, get(&twice));
    }
    assert_eq!(app.accepted(), 6);
}

/// The pool of an old configuration is dropped when its last request has ended.
#[test]
fn pools_do_not_outlive_their_configuration() {
    let app = App::answering(HELLO);
    let mut driver = Driver::new();
    for id in 0..3 {
        let application = application(&app, plain);
        driver.ask(id, get(&application));
    }
    driver.run_until(|driver| driver.gateway.report().as_array().unwrap().is_empty());
}

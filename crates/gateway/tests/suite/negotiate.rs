//! What an application can do is asked without a request noticing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use baton_fcgi::application;
use baton_gateway::{Address, Place, Protocol, Settings, StreamedBodies, TransportChoice};

use crate::common::app::{App, Asked, Event, Offered, Peer, shared};
use crate::common::driver::{Driver, Ending};
use crate::common::{application as with, client, get, handed, members, post, roster};

/// Notes what was offered, and answers in the ordinary way.
fn note(seen: &Mutex<Vec<&'static str>>, peer: &mut Peer, mut asked: Asked) {
    seen.lock().unwrap().push(match asked.offer {
        Offered::Nothing => "nothing",
        Offered::Shm(_) => "shm",
        Offered::PassFd { .. } => "passfd",
    });
    asked.offer = Offered::Nothing;
    peer.answer(&asked, b"X-A: b\n\nhello");
}

/// An application of `processes` that answers questions with `values`, and nothing if there are none.
fn app(
    processes: usize,
    values: &'static [(&'static str, &'static str)],
) -> (App, Arc<Mutex<Vec<&'static str>>>) {
    let seen = shared::<Vec<&'static str>>();
    let told = Arc::clone(&seen);
    let app = App::with_processes(processes, move |peer| {
        loop {
            let mut asked = Asked::default();
            match peer.event() {
                Some(Event::GetValues) => {
                    let mut records = Vec::new();
                    for value in values {
                        application::push_values_result(&mut records, &[*value]);
                    }
                    peer.write(&records);
                    continue;
                }
                Some(Event::Begin { id, keep }) => (asked.id, asked.keep) = (id, keep),
                Some(_) => continue,
                None => return,
            }
            let Some(rest) = peer.request() else { return };
            note(&told, peer, Asked { id: asked.id, ..rest });
        }
    });
    (app, seen)
}

/// Asks until the application has been found out, and once more.
fn ask_until_known(driver: &mut Driver, application: &Arc<baton_gateway::Application>, transport: &str) {
    let (server, _client) = client();
    let mut whose = 0;
    driver.run_until(|driver| {
        whose += 1;
        let got = driver.ask(whose, handed(application, &server));
        assert_eq!((got.ending, &got.body[..]), (Some(Ending::Complete), &b"hello"[..]));
        driver.report("transport") == transport
    });
    driver.ask(whose + 1, handed(application, &server));
}

const BOTH: &[(&str, &str)] = &[("FCGI_MAX_CONNS", "1"), ("BATON_TRANSPORTS", "passfd, shm")];

#[test]
fn what_is_listed_is_offered() {
    for processes in [1, 3] {
        let (app, seen) = app(processes, BOTH);
        let application = with(&app, |_| {});
        let mut driver = Driver::new();
        ask_until_known(&mut driver, &application, "passfd");
        assert_eq!(seen.lock().unwrap().first(), Some(&"nothing"), "the first request waited for nothing");
        assert_eq!(seen.lock().unwrap().last(), Some(&"passfd"));
        driver.ask(0, get(&application));
        assert_eq!(seen.lock().unwrap().last(), Some(&"shm"), "without a client to hand over");
    }
}

/// How many processes there are is known when the application has said so: half of them may have bodies that arrive.
#[test]
fn how_many_there_are_is_asked() {
    let (app, _) = app(1, &[("FCGI_MPXS_CONNS", "0"), ("FCGI_MAX_REQS", "5"), ("FCGI_MAX_CONNS", "5")]);
    let application = with(&app, |settings| {
        settings.streamed_bodies = StreamedBodies::default().with_learned_max(1, 8);
    });
    let admitted = || {
        let all: Vec<_> = std::iter::from_fn(|| application.settings().streamed_bodies.admit()).collect();
        all.len()
    };
    let mut driver = Driver::new();
    assert_eq!(admitted(), 0);
    let mut whose = 0;
    driver.run_until(|driver| {
        whose += 1;
        driver.ask(whose, get(&application));
        admitted() == 2
    });
}

#[test]
fn only_what_is_listed_is_offered() {
    let (app, seen) = app(2, &[("BATON_TRANSPORTS", "shm,teleport")]);
    let mut driver = Driver::new();
    ask_until_known(&mut driver, &with(&app, |_| {}), "shm");
    assert!(!seen.lock().unwrap().contains(&"passfd"));
}

/// A connection of its own for a process that has only one, and keeps that: the question comes between two requests.
#[test]
fn a_process_with_one_connection_is_asked_too() {
    let (app, _) = app(1, BOTH);
    let mut settings = Settings::new("member", members(app.folder(), &[&app], roster(&[&app])));
    settings.idle_timeout_ms = 3_600_000;
    let application = baton_gateway::Application::new(settings).unwrap();
    let mut driver = Driver::new();
    ask_until_known(&mut driver, &application, "passfd");
}

/// Applications that answer without a word on transports, with nothing, or by closing: requests go on.
#[test]
fn applications_that_know_nothing_are_served_as_ever() {
    for values in [&[("FCGI_MPXS_CONNS", "0")][..], &[]] {
        let (app, seen) = app(1, values);
        let application = with(&app, |_| {});
        let mut driver = Driver::new();
        let (server, _client) = client();
        for whose in 0..10 {
            let got = driver.ask(whose, handed(&application, &server));
            assert_eq!((got.ending, &got.body[..]), (Some(Ending::Complete), &b"hello"[..]));
        }
        driver.run_until(|driver| driver.report("busy") == 0);
        assert_eq!(driver.report("transport"), "plain");
        assert!(seen.lock().unwrap().iter().all(|offered| *offered == "nothing"));
    }
    let closing = App::start(|peer| {
        if let Some(Event::Begin { id, .. }) = peer.event() {
            while peer.event() != Some(Event::StdinEnd) {}
            peer.answer(&Asked { id, ..Asked::default() }, b"X-A: b\n\nhello");
        }
    });
    let application = with(&closing, |_| {});
    let mut driver = Driver::new();
    for whose in 0..10 {
        assert_eq!(driver.ask(whose, get(&application)).body, b"hello");
    }
}

/// An explicit transport is offered at once, and nothing is asked.
#[test]
fn an_explicit_transport_needs_no_question() {
    let (server, _client) = client();
    for (transport, offered) in [
        (TransportChoice::Shm, "shm"),
        (TransportChoice::PassFd, "passfd"),
        (TransportChoice::Plain, "nothing"),
    ] {
        let (app, seen) = app(1, BOTH);
        let application = with(&app, |settings| settings.transport = transport);
        let mut driver = Driver::new();
        for whose in 0..3 {
            driver.ask(whose, handed(&application, &server));
        }
        assert_eq!(*seen.lock().unwrap(), [offered; 3]);
        assert_eq!(app.accepted(), 1);
    }
}

/// Over TCP and with SCGI there is nothing to ask for.
#[test]
fn scgi_over_tcp() {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Inet(listener.local_addr().unwrap());
    let accepted = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&accepted);
    std::thread::spawn(move || {
        while let Ok((mut socket, _)) = listener.accept() {
            count.fetch_add(1, Ordering::SeqCst);
            let mut request = Vec::new();
            while !request.ends_with(b",body") {
                let mut some = [0; 100];
                let read = socket.read(&mut some).unwrap();
                request.extend_from_slice(&some[..read]);
            }
            assert!(request.windows(17).any(|part| part == b"CONTENT_LENGTH\x004\0"));
            socket.write_all(b"Status: 201 Made\r\n\r\nhel").unwrap();
            socket.write_all(b"lo").unwrap();
        }
    });
    let mut settings = Settings::new("scgi", Place::Shared(address));
    settings.protocol = Protocol::Scgi;
    let application = baton_gateway::Application::new(settings).unwrap();
    let mut driver = Driver::new();
    for whose in 0..3 {
        let got = driver.ask(whose, post(&application, b"body"));
        assert_eq!((got.ending, &got.body[..]), (Some(Ending::Complete), &b"hello"[..]));
        assert_eq!(got.head.as_ref().unwrap().status(), 201);
    }
    assert_eq!(accepted.load(Ordering::SeqCst), 3);
    let mut odd = get(&application);
    baton_fcgi::params::push(&mut odd.params, b"ODD", b"a\0b");
    assert!(matches!(driver.ask(9, odd).why(), baton_gateway::Why::BadRequest(_)));
}

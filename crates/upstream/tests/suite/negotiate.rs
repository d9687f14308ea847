//! The gateway learns from answers which transports an application supports.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use baton_upstream::{Address, Application, Endpoint, Protocol, Settings, TransportChoice, Trust};

use crate::common::app::{App, Offered, Peer, shared};
use crate::common::driver::{Driver, Ending};
use crate::common::{application as with, client, get, handed, post};

/// The words for what an application was offered.
type Seen = Arc<Mutex<Vec<&'static str>>>;

/// An application that takes up the offers in `can`, and answers through the connection otherwise.
fn app(can: &'static [&'static str]) -> (App, Seen) {
    let seen: Seen = shared();
    let noted = Arc::clone(&seen);
    let app = App::start(move |peer| while answer(peer, can, &noted) {});
    (app, seen)
}

fn answer(peer: &mut Peer, can: &[&str], seen: &Mutex<Vec<&'static str>>) -> bool {
    let Some(mut asked) = peer.request() else { return false };
    let offer = std::mem::take(&mut asked.offer);
    let word = match offer {
        Offered::Nothing => "nothing",
        Offered::Shm(_) => "shm",
        Offered::PassFd { .. } => "passfd",
    };
    seen.lock().unwrap().push(word);
    match offer {
        Offered::PassFd { .. } if can.contains(&word) => peer.answered(&asked, 5),
        Offered::Shm(ring) if can.contains(&word) => peer.share_and_end(&asked, &ring, HELLO),
        _ => peer.answer_at_once(&asked, HELLO),
    }
}

const HELLO: &[u8] = b"X-A: b\n\nhello";

/// Sends requests of a client that can be handed over. Returns the transport in use afterwards.
fn ask(driver: &mut Driver, application: &Arc<Application>, times: u64) -> String {
    let (server, _client) = client();
    for id in 0..times {
        let got = driver.ask(id, handed(application, &server));
        assert!(matches!(got.ending, Some(Ending::Complete | Ending::Answered(_))), "{got:?}");
    }
    driver.report("transport").as_str().unwrap().to_owned()
}

#[test]
fn what_is_taken_up_is_offered_again() {
    let (app, seen) = app(&["passfd", "shm"]);
    let application = with(&app, |_| {});
    let mut driver = Driver::new();
    assert_eq!(ask(&mut driver, &application, 20), "passfd");
    driver.ask(0, get(&application));
    let mut expected = vec!["passfd"; 21];
    // The first request, and the one without a client to hand over.
    (expected[0], expected[20]) = ("shm", "shm");
    assert_eq!(*seen.lock().unwrap(), expected);
    assert_eq!(app.accepted(), 1, "no connection but for requests");
}

#[test]
fn what_is_declined_again_and_again_is_not_offered() {
    for (can, transport, ninth, last) in
        [(&["shm"][..], "shm", "passfd", "shm"), (&[][..], "plain", "nothing", "nothing")]
    {
        let (app, seen) = app(can);
        let application = with(&app, |_| {});
        let mut driver = Driver::new();
        assert_eq!(ask(&mut driver, &application, 20), transport);
        let seen = seen.lock().unwrap();
        assert_eq!((seen[0], seen[8], seen[19]), ("shm", ninth, last));
        assert_eq!(app.accepted(), 1, "no connection but for requests");
    }
}

/// An application that declines because the server compresses knows the offer. It gets one with one of eight answers; the
/// report says how they travelled.
#[test]
fn what_is_compressed_travels_by_shared_memory_mostly() {
    let app = App::start(|peer| {
        while let Some(mut asked) = peer.request() {
            match std::mem::take(&mut asked.offer) {
                Offered::Shm(ring) => peer.share_and_end(&asked, &ring, HELLO),
                Offered::PassFd { client, .. } => {
                    drop(client);
                    let mut out = Vec::new();
                    baton_fcgi::application::push_declined(&mut out, asked.id, baton_fcgi::Declined::Coded);
                    peer.write(&out);
                    peer.answer_at_once(&asked, HELLO)
                }
                Offered::Nothing => panic!("no offer"),
            };
        }
    });
    let application = with(&app, |_| {});
    let mut driver = Driver::new();
    ask(&mut driver, &application, 41);
    // The first tells of the library. Eight more are declined; then one of eight is.
    let answers = driver.report("answers");
    assert_eq!(answers, serde_json::json!({ "shm": 1 + 4 * 7, "declined-compression": 8 + 4 }));
}

/// A reason for declining what was not offered is no part of the protocol.
#[test]
fn a_reason_without_an_offer_is_refused() {
    let app = App::start(|peer| {
        while let Some(asked) = peer.request() {
            let mut out = Vec::new();
            baton_fcgi::application::push_declined(&mut out, asked.id, baton_fcgi::Declined::Coded);
            peer.write(&out);
            peer.answer_at_once(&asked, HELLO);
        }
    });
    let application = with(&app, |settings| settings.transport = TransportChoice::Plain);
    let mut driver = Driver::new();
    let got = driver.ask(0, get(&application));
    assert!(matches!(got.ending, Some(Ending::Failed(_))), "{got:?}");
}

/// An application gets clients' sockets only if a trusted user listens on its socket, or if the configuration names
/// `passfd`. The report says why an application that supports them does not get them.
#[test]
fn sockets_of_clients_are_for_trusted_users() {
    let user = rustix::process::geteuid().as_raw();
    let (auto, named) = (TransportChoice::Auto, TransportChoice::PassFd);
    for (choice, trust, transport, withheld) in [
        (auto, Trust::All, "passfd", false),
        (auto, Trust::Users(vec![user + 1, user]), "passfd", false),
        (auto, Trust::Users(vec![user + 1]), "shm", true),
        (auto, Trust::Users(vec![]), "shm", true),
        (named, Trust::Users(vec![]), "passfd", false),
    ] {
        let (app, seen) = app(&["passfd", "shm"]);
        let application = with(&app, |settings| {
            settings.transport = choice;
            settings.passfd_trust = trust.clone();
        });
        let mut driver = Driver::new();
        assert_eq!(ask(&mut driver, &application, 10), transport, "{trust:?}");
        assert_eq!(seen.lock().unwrap().contains(&"passfd"), transport == "passfd", "{trust:?}");
        assert_eq!(driver.report("passfd_withheld").is_string(), withheld, "{trust:?}");
    }
}

/// An explicit transport is offered with every request.
#[test]
fn an_explicit_transport_is_always_offered() {
    let (server, _client) = client();
    for (transport, offered) in [
        (TransportChoice::Shm, "shm"),
        (TransportChoice::PassFd, "passfd"),
        (TransportChoice::Plain, "nothing"),
    ] {
        let (app, seen) = app(&[]);
        let application = with(&app, |settings| settings.transport = transport);
        let mut driver = Driver::new();
        for id in 0..20 {
            driver.ask(id, handed(&application, &server));
        }
        assert_eq!(*seen.lock().unwrap(), [offered; 20]);
        assert_eq!(app.accepted(), 1);
    }
}

/// A client whose socket cannot be passed gets its answer through shared memory.
#[test]
fn instead_of_a_socket_that_cannot_be_passed_memory_is_offered() {
    let (app, seen) = app(&["passfd", "shm"]);
    let application = with(&app, |settings| settings.transport = TransportChoice::PassFd);
    let (server, _client) = client();
    let mut driver = Driver::new();
    for (id, request) in [get(&application), handed(&application, &server)].into_iter().enumerate() {
        driver.ask(id as u64, request);
    }
    assert_eq!(*seen.lock().unwrap(), ["shm", "passfd"]);
}

/// Over TCP and with SCGI there is nothing to offer.
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
    let mut settings = Settings::new("scgi", Endpoint::Shared(address));
    settings.protocol = Protocol::Scgi;
    let application = Application::new(settings).unwrap();
    let mut driver = Driver::new();
    for id in 0..3 {
        let got = driver.ask(id, post(&application, b"body"));
        assert_eq!((got.ending, &got.body[..]), (Some(Ending::Complete), &b"hello"[..]));
        assert_eq!(got.head.as_ref().unwrap().status().code(), 201);
    }
    assert_eq!(accepted.load(Ordering::SeqCst), 3);
    let mut odd = get(&application);
    baton_fcgi::params::push(&mut odd.text, b"ODD", b"a\0b");
    assert!(matches!(driver.ask(9, odd).why(), baton_upstream::FailureReason::BadRequest(_)));
}

//! Applications that end just when the next request comes: another process gets it.

use std::sync::Arc;

use baton_upstream::{Application, ClientSocket, FailureReason, Request, TransportChoice};
use rustix::event::{PollFd, PollFlags, poll};

use crate::common::app::{App, Offered, Peer, ReceivedRequest};
use crate::common::driver::{Driver, Ending};
use crate::common::{application, client, handed, post};

/// What an application that is about to end does with its last request.
#[derive(Clone, Copy)]
enum Leaving {
    /// It never looks at it.
    Unread,
    /// It reads all of it.
    Read,
    /// It shuts its socket down for reading, so that sending fails.
    Shut,
}

/// An application whose first process answers two requests and ends. Later processes answer all requests.
fn leaving(how: Leaving, speaks: bool) -> App {
    App::start(move |peer| {
        for count in 0.. {
            if peer.index == 0 && count == 2 {
                match how {
                    Leaving::Unread => wait_for_input(peer),
                    Leaving::Read => _ = peer.request(),
                    Leaving::Shut => {}
                }
                return;
            }
            let Some(asked) = peer.request() else { return };
            if peer.index == 0 && count == 1 && matches!(how, Leaving::Shut) {
                peer.socket.shutdown(std::net::Shutdown::Read).unwrap();
            }
            answer(peer, asked, speaks);
        }
    })
}

/// Answers over the offered transport, if the application `speaks` its protocol.
fn answer(peer: &mut Peer, mut asked: ReceivedRequest, speaks: bool) {
    match std::mem::take(&mut asked.offer) {
        Offered::PassFd { client, .. } if speaks => {
            drop(client);
            peer.answered(&asked, 5);
        }
        Offered::Shm(ring) if speaks => _ = peer.share_and_end(&asked, &ring, b"X: y\n\nshared"),
        _ => _ = peer.answer_at_once(&asked, b"X: y\n\nplain"),
    }
}

/// Waits for input without reading it.
fn wait_for_input(peer: &Peer) {
    poll(&mut [PollFd::new(&peer.socket, PollFlags::IN)], None).unwrap();
}

fn of(transport: TransportChoice, app: &App) -> Arc<Application> {
    application(app, |settings| settings.transport = transport)
}

/// A request that must not be answered twice.
fn once(application: &Arc<Application>, socket: &Arc<ClientSocket>, body: &[u8]) -> Request {
    Request { pass: handed(application, socket).pass, ..post(application, body) }
}

/// Sends six requests, all answered by two processes. Returns the loop.
fn all_are_answered_by_two(how: Leaving, transport: TransportChoice) -> Driver {
    let app = leaving(how, true);
    let application = of(transport, &app);
    let (socket, _client) = client();
    let mut driver = Driver::new();
    for id in 0..6 {
        let got = driver.ask(id, once(&application, &socket, b"body"));
        assert!(matches!(got.ending, Some(Ending::Answered(_) | Ending::Complete)), "{id}: {got:?}");
    }
    assert_eq!(app.accepted(), 2);
    assert_eq!(Arc::strong_count(&socket), 1, "the application has no copy of the socket");
    driver
}

#[test]
fn what_was_left_unread_is_sent_to_another() {
    for transport in [TransportChoice::PassFd, TransportChoice::Shm] {
        let driver = all_are_answered_by_two(Leaving::Unread, transport);
        assert_eq!(driver.report("retries"), 1);
    }
}

/// The connection has served only clients whose sockets cannot be passed: that the application reads a message at a time is
/// known from its use of shared memory.
#[test]
fn what_was_left_unread_of_other_clients_is_sent_to_another() {
    let app = leaving(Leaving::Unread, true);
    let application = of(TransportChoice::PassFd, &app);
    let mut driver = Driver::new();
    for id in 0..3 {
        let got = driver.ask(id, post(&application, b"body"));
        assert_eq!(got.ending, Some(Ending::Complete), "{id}: {got:?}");
    }
    assert_eq!(driver.report("retries"), 1);
}

#[test]
fn what_could_not_be_sent_is_sent_to_another() {
    for transport in [TransportChoice::PassFd, TransportChoice::Shm, TransportChoice::Plain] {
        all_are_answered_by_two(Leaving::Shut, transport);
    }
}

/// A process that has read a request may have begun with it, so the gateway does not repeat it.
#[test]
fn what_was_read_is_not_repeated() {
    for transport in [TransportChoice::PassFd, TransportChoice::Shm] {
        let app = leaving(Leaving::Read, true);
        let application = of(transport, &app);
        let (socket, _client) = client();
        let mut driver = Driver::new();
        for id in 0..2 {
            assert!(driver.ask(id, once(&application, &socket, b"body")).is_over());
        }
        let got = driver.ask(2, once(&application, &socket, b"body"));
        let Some(Ending::Failed(failure)) = got.ending else { panic!("{got:?}") };
        assert_eq!(failure.why, FailureReason::Ended);
        assert_eq!(driver.report("retries"), 0);
    }
}

/// An application may have read a part of a request that is longer than what libraries read with one call. So may one that
/// is not known to have a library.
#[test]
fn what_may_have_been_read_in_part_is_not_repeated() {
    for (speaks, body) in [(true, vec![b'b'; 17_000]), (false, b"body".to_vec())] {
        let app = leaving(Leaving::Unread, speaks);
        let application = of(TransportChoice::PassFd, &app);
        let (socket, _client) = client();
        let mut driver = Driver::new();
        for id in 0..2 {
            assert!(driver.ask(id, once(&application, &socket, b"body")).is_over());
        }
        let got = driver.ask(2, once(&application, &socket, &body));
        let Some(Ending::Failed(failure)) = got.ending else { panic!("{speaks}: {got:?}") };
        assert_eq!(failure.why, FailureReason::Ended);
        assert_eq!(driver.report("retries"), 0);
    }
}

/// An idempotent request goes to another process, with the client's socket. Only an application without a library is known
/// not to use that socket.
#[test]
fn a_get_is_repeated_if_the_application_cannot_hold_the_client() {
    for how in [Leaving::Unread, Leaving::Read] {
        for speaks in [false, true] {
            let app = leaving(how, speaks);
            let application = of(TransportChoice::PassFd, &app);
            let (socket, _client) = client();
            let mut driver = Driver::new();
            for id in 0..2 {
                assert!(driver.ask(id, handed(&application, &socket)).is_over());
            }
            let got = driver.ask(2, handed(&application, &socket));
            let failed = matches!(got.ending, Some(Ending::Failed(_)));
            assert_eq!(failed, speaks && matches!(how, Leaving::Read), "{got:?}");
            assert_eq!(driver.report("retries"), usize::from(!failed));
        }
    }
}

/// Goal: a request is answered although several processes end at the same time. Method: all of them do, repeatedly.
#[test]
fn a_request_meets_one_that_leaves_more_than_once() {
    let app = App::with_processes(3, |peer| {
        if let Some(asked) = peer.request() {
            answer(peer, asked, true);
        }
        wait_for_input(peer);
    });
    let application = application(&app, |settings| {
        settings.transport = TransportChoice::PassFd;
        settings.connections_max = 3;
    });
    let (socket, _client) = client();
    let mut driver = Driver::new();
    for round in 0..10 {
        for id in 0..6 {
            driver.begin(6 * round + id, once(&application, &socket, b"body"));
        }
        for id in 0..6 {
            let got = driver.finish(6 * round + id);
            assert!(matches!(got.ending, Some(Ending::Answered(_) | Ending::Complete)), "{id}: {got:?}");
        }
    }
}

//! Faults of applications, under every transport (section 7 of the protocol).

use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use baton_fcgi::cgi::{BadHead, HEAD_BYTES_MAX};
use baton_fcgi::record::RecordHeader;
use baton_fcgi::{Broken, RegionSlice, application};
use baton_upstream::{Application, ClientSocket, Failure, FailureReason, TransportChoice};

use crate::common::app::{App, Offered, Peer, ReceivedRequest};
use crate::common::driver::{ClientView, Driver, Ending};
use crate::common::{application, client, get, handed};

/// The transports under which a fault is tried.
const EVERY: [TransportChoice; 3] = [TransportChoice::Plain, TransportChoice::Shm, TransportChoice::PassFd];

/// One request to a faulty application, with its outcome and its client.
struct Case {
    driver: Driver,
    client: TcpStream,
    server: Arc<ClientSocket>,
    application: Arc<Application>,
    _app: App,
}

impl Case {
    fn new(transport: TransportChoice, script: impl Fn(&mut Peer) + Send + Sync + 'static) -> Self {
        let app = App::start(script);
        let (server, client) = client();
        let mut driver = Driver::new();
        let application = application(&app, |settings| settings.transport = transport);
        driver.begin(1, handed(&application, &server));
        Self { driver, client, server, application, _app: app }
    }

    fn got(&mut self) -> &ClientView {
        self.driver.finish(1)
    }

    /// Whether the client's connection has ended, despite copies of its socket.
    fn client_is_cut(&mut self) -> bool {
        matches!(self.client.read(&mut [0; 1]), Ok(0) | Err(_))
    }
}

/// A response through the connection or through the region.
fn output(peer: &mut Peer, asked: &mut ReceivedRequest, bytes: &[u8]) -> bool {
    match std::mem::take(&mut asked.offer) {
        Offered::Shm(mut ring) => {
            let written = peer.share(asked, &mut ring, bytes);
            asked.offer = Offered::Shm(ring);
            written
        }
        _ => peer.stdout(asked, bytes),
    }
}

#[test]
fn closed_without_reading() {
    for transport in EVERY {
        let mut case = Case::new(transport, |_| {});
        // The scheduler decides whether the request was written before the application ended. If it was, the client was
        // handed over.
        let Some(Ending::Failed(Failure { why: FailureReason::Ended, client_lost: false, must_end, .. })) =
            case.got().ending
        else {
            panic!("{transport:?}: {:?}", case.got());
        };
        assert!(!must_end || transport == TransportChoice::PassFd);
    }
}

#[test]
fn closed_after_reading() {
    for transport in EVERY {
        let mut case = Case::new(transport, |peer| drop(peer.request().unwrap()));
        let must_end = transport == TransportChoice::PassFd;
        let failure = Failure { why: FailureReason::Ended, client_lost: false, must_end };
        assert_eq!(case.got().ending, Some(Ending::Failed(failure)), "{transport:?}");
        rustix::io::write(&case.server, b"5").unwrap();
        assert!(!case.client_is_cut(), "{transport:?}: it can be answered");
    }
}

/// After one byte the server must not answer: the client would take the answer for the rest. The same holds for a client on
/// a Unix socket, where the kernel does not count what is written.
#[test]
fn closed_after_writing_to_the_client() {
    let mut case = Case::new(TransportChoice::PassFd, |peer| {
        if let Offered::PassFd { client, .. } = peer.request().unwrap().offer {
            rustix::io::write(&client, b"H").unwrap();
        }
    });
    let lost = Failure { why: FailureReason::Ended, client_lost: true, must_end: false };
    assert_eq!(case.got().ending, Some(Ending::Failed(lost)));
    while !matches!(case.client.read(&mut [0; 1]), Ok(0) | Err(_)) {}

    let app = App::start(|peer| drop(peer.request()));
    let application = application(&app, |settings| settings.transport = TransportChoice::PassFd);
    let (server, mut client) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut driver = Driver::new();
    let got = driver.ask(1, handed(&application, &Arc::new(OwnedFd::from(server).into())));
    assert_eq!(got.ending, Some(Ending::Failed(lost)));
    assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
}

/// The application ends after each byte of its answer: a response that was cut short never looks complete.
#[test]
fn closed_after_any_number_of_bytes() {
    let mut records = Vec::new();
    application::push_stdout(&mut records, 1, b"X-A: b\n\nbody");
    application::push_end(&mut records, 1, 0, baton_fcgi::response::ProtocolStatus::RequestComplete);
    for transport in EVERY {
        for cut in 1..records.len() {
            let some = records[..cut].to_vec();
            let mut case = Case::new(transport, move |peer| {
                let asked = peer.request().unwrap();
                assert_eq!(asked.id, 1);
                drop(asked);
                peer.write(&some);
            });
            let got = case.got();
            let Some(Ending::Failed(Failure {
                why: FailureReason::Ended, client_lost: false, must_end, ..
            })) = got.ending
            else {
                panic!("{transport:?}, {cut} bytes: {got:?}");
            };
            // The first byte of output shows that it did not answer there.
            assert_eq!(must_end, transport == TransportChoice::PassFd && cut <= 8, "{cut}");
            assert_eq!(got.head.is_some(), cut >= 16);
        }
    }
}

#[test]
fn closed_in_the_middle_of_a_response_through_the_region() {
    let mut case = Case::new(TransportChoice::Shm, |peer| {
        let mut asked = peer.request().unwrap();
        output(peer, &mut asked, b"X-A: b\n\nhalf of the bo");
    });
    let got = case.got();
    assert_eq!((got.why(), &got.body[..]), (FailureReason::Ended, &b"half of the bo"[..]));
    assert!(got.shared_bytes > 0);
}

#[test]
fn garbage() {
    for transport in EVERY {
        let mut case = Case::new(transport, |peer| {
            let _asked = peer.request().unwrap();
            peer.write(b"HTTP/1.1 200 OK\r\n\r\nhello");
            peer.event();
        });
        let lost = transport == TransportChoice::PassFd;
        let failure =
            Failure { why: FailureReason::Broken(Broken::Version(b'H')), client_lost: lost, must_end: false };
        assert_eq!(case.got().ending, Some(Ending::Failed(failure)));
        assert!(!lost || case.client_is_cut());
    }
}

#[test]
fn records_of_another_request_are_passed_over() {
    for transport in EVERY {
        let mut case = Case::new(transport, |peer| {
            let mut asked = peer.request().unwrap();
            let id = asked.id;
            asked.id = 77;
            peer.stdout(&asked, b"X-Wrong: yes\n\nnot for you");
            asked.id = id;
            output(peer, &mut asked, b"X-A: b\n\nright");
            peer.end(&asked);
            peer.event();
        });
        let got = case.got();
        assert_eq!((got.ending, &got.body[..]), (Some(Ending::Complete), &b"right"[..]), "{transport:?}");
        assert!(got.head.as_ref().unwrap().field("X-Wrong").is_none());
    }
}

/// Output behind the end of a request is dropped, whenever it arrives.
#[test]
fn writing_after_the_end() {
    for transport in EVERY {
        let mut case = Case::new(transport, |peer| {
            while let Some(mut asked) = peer.request() {
                output(peer, &mut asked, b"X-A: b\n\nright");
                peer.end(&asked);
                peer.stdout(&asked, b"wrong");
            }
        });
        for id in 1..20 {
            let got = case.driver.finish(id);
            assert_eq!((got.ending, &got.body[..]), (Some(Ending::Complete), &b"right"[..]), "{transport:?}");
            let next = handed(&case.application, &case.server);
            case.driver.begin(id + 1, next);
        }
    }
}

#[test]
fn heads_that_no_client_should_see() {
    let cases: [(&[u8], BadHead); 4] = [
        (b"", BadHead::Empty),
        (b"\n\nbody", BadHead::Empty),
        (b"this is not a head\n\nbody", BadHead::NotAField),
        (b"Status: fine\n\nbody", BadHead::Status),
    ];
    for transport in EVERY {
        for (bytes, bad) in cases {
            let mut case = Case::new(transport, move |peer| {
                let mut asked = peer.request().unwrap();
                output(peer, &mut asked, bytes);
                asked.offer = Offered::Nothing;
                peer.end(&asked);
                peer.event();
            });
            assert_eq!(case.got().why(), FailureReason::BadHead(bad), "{transport:?} {bytes:?}");
        }
    }
}

#[test]
fn a_head_without_an_end_is_bounded() {
    for transport in EVERY {
        let mut case = Case::new(transport, |peer| {
            let mut asked = peer.request().unwrap();
            while output(peer, &mut asked, b"X-Long: lies about its own length\n") {}
        });
        assert_eq!(
            case.got().why(),
            FailureReason::BadHead(BadHead::TooLarge { limit: HEAD_BYTES_MAX }),
            "{transport:?}"
        );
    }
}

#[test]
fn slices_of_what_is_not_its_own() {
    let wrong: [&[(u32, u32)]; 6] = [
        &[(1, 1)],
        &[(0, u32::MAX)],
        &[(u32::MAX, 1)],
        &[(0, (2 << 20) + 1)],
        &[(0, 10), (5, 10)],
        &[(0, 10), (0, 10)],
    ];
    for slices in wrong {
        let mut case = Case::new(TransportChoice::Shm, move |peer| {
            let asked = peer.request().unwrap();
            let slices: Vec<_> = slices.iter().map(|&(offset, len)| RegionSlice { offset, len }).collect();
            peer.slices(&asked, &slices);
            peer.event();
        });
        assert_eq!(case.got().why(), FailureReason::Broken(Broken::HandOver), "{slices:?}");
    }
}

/// Records of the hand-over protocol without an offer, or in the wrong order.
#[test]
fn hand_over_records_out_of_place() {
    fn answered_unasked(peer: &mut Peer, asked: &ReceivedRequest) {
        peer.answered(asked, 5);
    }
    fn slices_unasked(peer: &mut Peer, asked: &ReceivedRequest) {
        peer.slices(asked, &[RegionSlice { offset: 0, len: 1 }]);
    }
    fn answered_after_output(peer: &mut Peer, asked: &ReceivedRequest) {
        peer.stdout(asked, b"X-A: b\n\n");
        peer.answered(asked, 5);
    }
    fn unknown(peer: &mut Peer, asked: &ReceivedRequest) {
        let header = RecordHeader { kind: 66, request_id: asked.id, content_len: 1, padding_len: 0 };
        peer.write(&header.to_bytes());
        peer.write(&[99]);
    }
    type Fault = fn(&mut Peer, &ReceivedRequest);
    let cases: [(TransportChoice, Fault); 6] = [
        (TransportChoice::Plain, answered_unasked),
        (TransportChoice::Shm, answered_unasked),
        (TransportChoice::Plain, slices_unasked),
        (TransportChoice::PassFd, slices_unasked),
        (TransportChoice::PassFd, answered_after_output),
        (TransportChoice::PassFd, unknown),
    ];
    for (transport, fault) in cases {
        let mut case = Case::new(transport, move |peer| {
            let mut asked = peer.request().unwrap();
            asked.offer = Offered::Nothing;
            fault(peer, &asked);
            peer.event();
        });
        let Some(Ending::Failed(Failure { why: FailureReason::Broken(Broken::HandOver), .. })) =
            case.got().ending
        else {
            panic!("{transport:?}: {:?}", case.got());
        };
    }
}

#[test]
fn output_behind_an_answer_given_elsewhere() {
    let mut case = Case::new(TransportChoice::PassFd, |peer| {
        let mut asked = peer.request().unwrap();
        asked.offer = Offered::Nothing;
        let mut records = Vec::new();
        let answered = baton_fcgi::Answered {
            complete: true,
            may_go_on: true,
            outcome: baton_fcgi::AnswerOutcome::Complete,
            status: 200,
            head_bytes: 0,
            body_bytes: 0,
        };
        application::push_answered(&mut records, asked.id, &answered);
        application::push_stdout(&mut records, asked.id, b"more");
        peer.write(&records);
        peer.event();
    });
    let Some(Ending::Failed(Failure { why: FailureReason::Broken(Broken::Order), .. })) = case.got().ending
    else {
        panic!("{:?}", case.got());
    };
}

#[test]
fn hanging_applications_are_given_up() {
    for transport in EVERY {
        let app = App::start(|peer| {
            let _asked = peer.request().unwrap();
            peer.event();
        });
        let (server, mut client) = client();
        let application = application(&app, |settings| {
            settings.transport = transport;
            settings.timeout_ms = 60;
        });
        let mut driver = Driver::new();
        let lost = transport == TransportChoice::PassFd;
        let failure = Failure { why: FailureReason::TimedOut, client_lost: lost, must_end: false };
        assert_eq!(driver.ask(1, handed(&application, &server)).ending, Some(Ending::Failed(failure)));
        let mut reset =
            || client.read(&mut [0; 1]).is_err_and(|error| error.kind() == ErrorKind::ConnectionReset);
        assert!(!lost || reset(), "an orderly end could pass for the end of a body");
    }
}

/// Goal: a client may leave at any point of its request. The application is free for the next client, which sees nothing of
/// the first one's answer.
#[test]
fn clients_that_go_away() {
    for transport in EVERY {
        let app = App::start(|peer| {
            while let Some(mut asked) = peer.head() {
                output(peer, &mut asked, b"X-A: b\n\n");
                let body = vec![b'x'; 300_000];
                if !(output(peer, &mut asked, &body) && peer.end(&asked)) {
                    return;
                }
            }
        });
        let application = application(&app, |settings| settings.transport = transport);
        let mut driver = Driver::new();
        for rounds in 0..12 {
            let (server, _client) = client();
            driver.begin(1, handed(&application, &server));
            let mut left = rounds;
            driver.run_until(|driver| {
                left -= 1;
                left < 0 || driver.got(1).is_over()
            });
            driver.abandon(1);
            assert_eq!(Arc::strong_count(&server), 1);
            let got = driver.ask(2, get(&application));
            assert_eq!(
                (got.ending, got.body.len()),
                (Some(Ending::Complete), 300_000),
                "{transport:?} {rounds}"
            );
        }
    }
}

#[test]
fn messages_for_the_error_log_come_in_lines() {
    for transport in EVERY {
        let mut case = Case::new(transport, |peer| {
            let mut asked = peer.request().unwrap();
            let mut records = Vec::new();
            for part in [&b"first li"[..], b"ne\nsecond", b" line\nand the last"] {
                application::push_stderr(&mut records, asked.id, part);
            }
            peer.write(&records);
            output(peer, &mut asked, b"X-A: b\n\n");
            peer.end(&asked);
            peer.event();
        });
        assert_eq!(case.got().stderr, b"first line\nsecond line\nand the last\n");
        assert_eq!(case.got().ending, Some(Ending::Complete));
    }
}

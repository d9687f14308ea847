//! A gateway in front of a listening socket, whose other side the test plays by hand.

use std::io::{ErrorKind, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use baton_buf::Aggregate;
use baton_dispatch::PolicyName;
use baton_http::origin::RequestKind;
use rustix::event::epoll;

use super::*;
use crate::{Address, Application, BalanceSettings, Endpoint, Peer, Peers, Settings, TurnSought};

struct Bench {
    gateway: Gateway,
    epoll: OwnedFd,
    listener: UnixListener,
    application: Arc<Application>,
    now_ms: u64,
}

impl Bench {
    fn new(name: &str, change: impl FnOnce(&mut Settings)) -> Self {
        let name = format!("baton-gateway-{name}-{}", std::process::id());
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        listener.set_nonblocking(true).unwrap();
        let endpoint = Endpoint::Shared(Address::Abstract(name.into_bytes()));
        let mut settings = Settings { protocol: Protocol::Http1, ..Settings::new("origin", endpoint) };
        change(&mut settings);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let gateway = Gateway::new(epoll.try_clone().unwrap());
        Self { gateway, epoll, listener, application: Application::new(settings).unwrap(), now_ms: 1_000 }
    }

    fn request(&self) -> Request {
        Request {
            application: Arc::clone(&self.application),
            peers: None,
            turn: None,
            text: b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
            asked: RequestKind::Usual,
            body: Aggregate::new(),
            rest: None,
            idempotent: true,
            pass: None,
            takes_pipes: false,
            ends: None,
            client: None,
        }
    }

    fn begin(&mut self, number: u64) -> RequestId {
        let request_id = RequestId::new(number);
        self.gateway.begin(request_id, self.request(), self.now_ms);
        self.gateway.check_invariants();
        request_id
    }

    /// Hands in what has happened to the sockets by now, and the time.
    fn round(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        let mut events = Vec::with_capacity(16);
        let none = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&none)).unwrap();
        for event in events {
            self.gateway.handle_event(event.data.u64(), event.flags, now_ms);
            self.gateway.check_invariants();
        }
        self.gateway.handle_time(now_ms);
        self.gateway.check_invariants();
    }

    fn take(&mut self, request_id: RequestId) -> Vec<ResponseEvent> {
        let events = std::iter::from_fn(|| self.gateway.take(request_id)).collect();
        self.gateway.check_invariants();
        events
    }

    /// The origin's end of the next connection; `None`: none waits.
    fn accept(&self) -> Option<UnixStream> {
        match self.listener.accept() {
            Ok((stream, _)) => Some(stream),
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(error) => panic!("{error}"),
        }
    }

    fn answer(&self, stream: &mut UnixStream) {
        let mut request = [0; 1024];
        assert!(stream.read(&mut request).unwrap() > 0);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").unwrap();
    }

    fn busy_and_idle(&self) -> (u64, u64) {
        let report = self.gateway.report();
        (report[0]["busy"].as_u64().unwrap(), report[0]["idle"].as_u64().unwrap())
    }
}

fn why(events: &[ResponseEvent]) -> Option<FailureReason> {
    match events.last()? {
        ResponseEvent::Failed(failure) => Some(failure.why),
        _ => None,
    }
}

/// Goal: the caller knows of a switch of protocols before it gets what is said in the other protocol.
#[test]
fn what_is_taken_at_once_ends_with_a_switch_of_protocols() {
    let mut bench = Bench::new("switch", |_| {});
    let request_id = RequestId::new(1);
    let request = Request { asked: RequestKind::Upgrade, ..bench.request() };
    bench.gateway.begin(request_id, request, bench.now_ms);
    let mut stream = bench.accept().expect("a connection");
    let answer = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\nhi";
    stream.write_all(answer).unwrap();
    bench.round(1_010);
    let events = bench.gateway.take_all(request_id);
    assert!(matches!(events[..], [ResponseEvent::Switch(_)]), "{events:?}");
    assert!(bench.gateway.is_tunnel(request_id));
    let events = bench.gateway.take_all(request_id);
    assert!(matches!(events[..], [ResponseEvent::Body(_)]), "{events:?}");
    assert!(bench.gateway.take_all(request_id).is_empty());
}

#[test]
fn a_response_leaves_its_connection_to_the_next_request() {
    let mut bench = Bench::new("kept", |_| {});
    let first = bench.begin(1);
    let mut stream = bench.accept().expect("a connection");
    assert_eq!((bench.gateway.poll_ready(), bench.busy_and_idle()), (None, (1, 0)));
    for request_id in [first, RequestId::new(2)] {
        if request_id != first {
            bench.begin(2);
        }
        bench.answer(&mut stream);
        bench.round(1_010);
        assert_eq!(bench.gateway.poll_ready(), Some(request_id));
        let events = match request_id == first {
            true => bench.take(request_id),
            false => bench.gateway.take_all(request_id).into_vec(),
        };
        assert!(
            matches!(
                events[..],
                [
                    ResponseEvent::Head(..),
                    ResponseEvent::Body(_),
                    ResponseEvent::Trail(..),
                    ResponseEvent::End { .. }
                ]
            ),
            "{events:?}"
        );
        assert_eq!(bench.busy_and_idle(), (0, 1));
        assert!(bench.take(request_id).is_empty(), "it is forgotten");
    }
    assert!(bench.accept().is_none(), "no other connection was needed");
}

#[test]
fn a_request_waits_for_a_connection_and_gets_the_one_that_is_given_up() {
    let mut bench = Bench::new("queue", |settings| settings.connections_max = 1);
    let (first, second) = (bench.begin(1), bench.begin(2));
    let _stream = bench.accept().expect("a connection");
    assert!(bench.accept().is_none() && bench.gateway.is_unanswered(second));
    bench.gateway.abandon(first, bench.now_ms);
    bench.gateway.check_invariants();
    let mut other = bench.accept().expect("the other request's connection");
    bench.answer(&mut other);
    bench.round(1_010);
    assert_eq!(bench.take(second).len(), 4);
}

#[test]
fn a_request_fails_when_its_time_in_the_queue_is_over() {
    let mut bench = Bench::new("overdue", |settings| {
        (settings.connections_max, settings.queue_max, settings.queue_timeout_ms) = (1, 1, 50);
    });
    let _first = bench.begin(1);
    let (second, third) = (bench.begin(2), bench.begin(3));
    assert_eq!(why(&bench.take(third)), Some(FailureReason::QueueFull));
    bench.round(1_049);
    assert!(bench.take(second).is_empty());
    bench.round(1_050);
    assert_eq!(why(&bench.take(second)), Some(FailureReason::QueueTimeout));
}

#[test]
fn an_origin_that_says_nothing_is_given_up() {
    let mut bench = Bench::new("silent", |settings| settings.timeout_ms = 300);
    let request_id = bench.begin(1);
    let stream = bench.accept().expect("a connection");
    bench.round(1_299);
    assert!(bench.take(request_id).is_empty());
    assert_eq!(bench.gateway.deadline_ms(), Some(1_300));
    bench.round(1_300);
    assert_eq!(why(&bench.take(request_id)), Some(FailureReason::TimedOut));
    assert_eq!(bench.busy_and_idle(), (0, 0), "its connection is closed");
    drop(stream);
}

#[test]
fn a_drained_origin_is_not_asked() {
    let mut bench = Bench::new("drained", |_| {});
    bench.application.settings().record.set_drained(true);
    let request_id = bench.begin(1);
    assert_eq!(why(&bench.take(request_id)), Some(FailureReason::Drained));
    assert!(bench.accept().is_none());
}

#[test]
fn an_idle_connection_goes_when_its_time_is_over_or_the_origin_ends_it() {
    for ends in [false, true] {
        let mut bench = Bench::new("idle", |settings| settings.idle_timeout_ms = 100);
        let request_id = bench.begin(1);
        let mut stream = bench.accept().expect("a connection");
        bench.answer(&mut stream);
        bench.round(1_000);
        bench.take(request_id);
        assert_eq!(bench.busy_and_idle(), (0, 1));
        let stream = Some(stream).filter(|_| !ends);
        bench.round(if ends { 1_001 } else { 1_100 });
        assert_eq!(bench.busy_and_idle(), (0, 0));
        drop(stream);
    }
}

/// Bug: a request that went on to another peer kept its client's share of the connections of the first.
#[test]
fn a_request_that_moves_on_takes_no_share_of_the_peer_that_it_leaves() {
    let mut bench = Bench::new("moved", |settings| settings.connections_max = 1);
    let first = bench.begin(1);
    let nowhere = Endpoint::Shared(Address::Abstract(b"baton-gateway-nowhere".to_vec()));
    let gone = Settings { protocol: Protocol::Http1, ..Settings::new("gone", nowhere) };
    let peer = |application: &Arc<Application>, is_backup| Peer {
        application: Arc::clone(application),
        weight: 1,
        is_backup,
        check_text: Vec::new(),
        public: None,
    };
    let gone = Application::new(gone).unwrap();
    let peers = vec![peer(&gone, false), peer(&bench.application, true)];
    let settings = BalanceSettings {
        policy: PolicyName::Wrr,
        ejection: None,
        check: None,
        slow_start_ms: 0,
        cluster: None,
    };
    let peers = Peers::new(peers, &settings).unwrap();
    let request = Request { peers: Some(TurnSought::new(peers, b"/", None)), ..bench.request() };
    let second = RequestId::new(2);
    bench.gateway.begin(second, request, bench.now_ms);
    bench.gateway.check_invariants();
    assert!(bench.gateway.is_unanswered(second), "it waits for the peer that is left");
    bench.gateway.abandon(first, bench.now_ms);
    drop(bench.accept());
    let mut other = bench.accept().expect("its connection");
    bench.answer(&mut other);
    bench.round(1_010);
    assert_eq!(bench.take(second).len(), 5);
}

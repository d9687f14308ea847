//! A loop with a cache, in front of an origin that the test plays by hand.

use std::cell::Cell;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use baton_buf::Aggregate;
use baton_http::origin::RequestKind;
use baton_http::{HeadLimits, RequestHead};
use baton_segment::policy::PolicyChoice;
use baton_segment::rules::{Arrival, RouteRules, Scheme};
use baton_upstream::{Address, Application, Endpoint, Gateway, Protocol, RequestId, ResponseEvent};
use rustix::event::epoll;

use crate::loop_cache::{Caching, LoopCache};
use crate::{Ask, CacheCounters, CachedRoute, Settings, SharedCache, Sources};

/// A loop, and the origin behind it.
pub(crate) struct Bench {
    pub(crate) cache: LoopCache,
    pub(crate) gateway: Gateway,
    pub(crate) shared: Arc<SharedCache>,
    route: Arc<CachedRoute>,
    application: Arc<Application>,
    listener: UnixListener,
    epoll: OwnedFd,
    names: u64,
}

thread_local! {
    static NOW_S: Cell<u64> = const { Cell::new(1_000_000_000) };
}

/// Lets so many seconds pass on the clock of this test's thread.
pub(crate) fn wait_s(seconds: u64) {
    NOW_S.set(NOW_S.get() + seconds);
}

pub(crate) fn counters() -> CacheCounters {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    CacheCounters {
        stored: &COUNT,
        evicted: &COUNT,
        purged: &COUNT,
        saved_bytes: &COUNT,
        not_written: &COUNT,
        lost: &COUNT,
        recovered: &COUNT,
        prefetched: &COUNT,
    }
}

impl Bench {
    /// `name` tells tests of one process apart.
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("baton-cache-{name}-{}", std::process::id());
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        listener.set_nonblocking(true).unwrap();
        let endpoint = Endpoint::Shared(Address::Abstract(name.into_bytes()));
        let settings = baton_upstream::Settings {
            protocol: Protocol::Http1,
            ..baton_upstream::Settings::new("origin", endpoint)
        };
        let sources = Sources { secret: [7; 16], starts: 0, process: 1, seed: 1, unix_s: || NOW_S.get() };
        let shared = SharedCache::open_with(&Settings::default(), counters(), None, &sources).unwrap();
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let cache = LoopCache::new(&epoll, Arc::clone(&shared)).unwrap();
        let gateway = Gateway::new(epoll.try_clone().unwrap());
        let rules = RouteRules::default();
        let route = Arc::new(CachedRoute {
            partition: "site".into(),
            policy: PolicyChoice::default(),
            rules,
            prefetch: 0,
        });
        let application = Application::new(settings).unwrap();
        Self { cache, gateway, shared, route, application, listener, epoll, names: 0 }
    }

    pub(crate) fn ask(&self, path: &str) -> Arc<Ask> {
        let text = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
        let limits = HeadLimits::default();
        let head = RequestHead::parse(text.as_bytes(), &limits).unwrap();
        let arrival = Arrival { scheme: Scheme::Http, is_trusted: false };
        let key = Ask::key_of(&self.route, &self.shared.secret, arrival, &head).unwrap();
        Arc::new(Ask::new(&self.route, key, &head, None, &limits).unwrap())
    }

    pub(crate) fn request(&self, path: &str) -> baton_upstream::Request {
        baton_upstream::Request {
            application: Arc::clone(&self.application),
            peers: None,
            turn: None,
            text: format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes(),
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

    /// A client asks for this path.
    pub(crate) fn begin(&mut self, path: &str) -> RequestId {
        self.names += 1;
        let name = RequestId::new(self.names);
        let (ask, request) = (self.ask(path), self.request(path));
        self.cache.begin(&mut self.gateway, name, ask, request, 0);
        self.check_invariants();
        name
    }

    /// The origin's end of the next connection; `None`: none waits.
    pub(crate) fn accept(&self) -> Option<UnixStream> {
        match self.listener.accept() {
            Ok((stream, _)) => Some(stream),
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// The origin answers, and the loop hears of it. Returns what it was asked.
    pub(crate) fn answer(&mut self, stream: &mut UnixStream, response: &str) -> String {
        let mut request = [0; 1024];
        let count = stream.read(&mut request).unwrap();
        stream.write_all(response.as_bytes()).unwrap();
        self.round();
        String::from_utf8_lossy(&request[..count]).into_owned()
    }

    /// Hands in what has happened to the sockets by now.
    pub(crate) fn round(&mut self) {
        let mut events = Vec::with_capacity(16);
        let none = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&none)).unwrap();
        for event in events {
            match event.data.u64() {
                LoopCache::MAIL => self.cache.handle_mail(&mut self.gateway, 0),
                data => self.gateway.handle_event(data, event.flags, 0),
            }
            self.check_invariants();
        }
        self.gateway.handle_time(0);
    }

    /// The loop's part of the cache, with the gateway.
    pub(crate) fn caching(&mut self) -> Caching<'_> {
        self.cache.with(&mut self.gateway)
    }

    /// Waits until a thread has told the loop something.
    pub(crate) fn wait_for_mail(&mut self) {
        let mut events = Vec::with_capacity(1);
        epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), None).unwrap();
    }

    /// Takes what a client gets next.
    pub(crate) fn take(&mut self, name: RequestId) -> Option<ResponseEvent> {
        let event = self.cache.take(&mut self.gateway, name);
        self.check_invariants();
        event
    }

    /// A client leaves.
    pub(crate) fn abandon(&mut self, name: RequestId) {
        self.cache.abandon(&mut self.gateway, name, 0);
        self.check_invariants();
    }

    fn poll_ready(&mut self) -> Option<RequestId> {
        while let Some(name) = self.gateway.poll_ready() {
            self.cache.handle_ready(name);
        }
        self.cache.poll_ready(&mut self.gateway)
    }

    fn check_invariants(&self) {
        self.cache.check_invariants();
        self.gateway.check_invariants();
    }

    /// What a client gets, once the loop is told that there is something: what the cache did, the status, and the body;
    /// status 0: a failure.
    pub(crate) fn response(&mut self, name: RequestId) -> (Vec<&'static str>, u16, Vec<u8>) {
        let (mut notes, mut status, mut body) = (Vec::new(), 0, Vec::new());
        let mut ready = Vec::new();
        while let Some(next) = self.poll_ready() {
            ready.push(next);
        }
        for _ in 0..ROUNDS_MAX {
            while let Some(event) = self.take(name) {
                match event {
                    ResponseEvent::CacheNote(word) => notes.push(word),
                    ResponseEvent::Head(head, _) => status = head.status().code(),
                    ResponseEvent::Body(bytes) => {
                        for piece in bytes.pieces() {
                            let baton_buf::Piece::Memory(slice) = piece else { panic!("{piece:?}") };
                            body.extend_from_slice(slice);
                        }
                    }
                    ResponseEvent::End { .. } => return (notes, status, body),
                    ResponseEvent::Failed(_) => return (notes, 0, body),
                    _ => {}
                }
            }
            self.cache.note_sent(&mut self.gateway, name, 0);
            self.round();
            while self.poll_ready().is_some() {}
        }
        panic!("{name:?} has no end: {notes:?} {status}")
    }
}

/// Rounds of the loop within which a response that has come is taken.
const ROUNDS_MAX: usize = 10;

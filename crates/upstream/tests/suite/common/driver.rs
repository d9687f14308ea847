//! An event loop in place of the engine. The test plays its clients, each with the number of its request.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use baton_buf::{Aggregate, Piece, Slice};
use baton_fcgi::{Answered, Rest};
use baton_http::origin::{ResponseHead, Trailers};
use baton_upstream::{Failure, FailureReason, Gateway, Request, RequestId, ResponseEvent, Trail};
use rustix::event::epoll::{self, CreateFlags, Event};

/// An event loop with a gateway and nothing else.
pub(crate) struct Driver {
    pub(crate) gateway: Gateway,
    epoll: OwnedFd,
    started: Instant,
    /// Where the clock stands, if it does.
    stopped_ms: Option<u64>,
    got: HashMap<u64, ClientView>,
    /// Requests with stalled clients.
    slow: HashSet<u64>,
}

/// What a client has got.
#[derive(Debug, Default)]
pub(crate) struct ClientView {
    pub(crate) interim: Vec<u16>,
    pub(crate) head: Option<ResponseHead>,
    pub(crate) trailers: Option<Trailers>,
    pub(crate) is_switched: bool,
    pub(crate) is_half_over: bool,
    pub(crate) trail: Option<Trail>,
    pub(crate) body: Vec<u8>,
    pub(crate) file_bytes: u64,
    pub(crate) shared_bytes: u64,
    pub(crate) piped_bytes: u64,
    pub(crate) stderr: Vec<u8>,
    pub(crate) rest: Option<Rest>,
    pub(crate) ending: Option<Ending>,
    /// Whether the gateway has asked for more of the body without having got it.
    pub(crate) wants: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Complete,
    Answered(Answered),
    Failed(Failure),
}

impl ClientView {
    pub(crate) fn is_over(&self) -> bool {
        self.ending.is_some()
    }

    /// Why it failed, provided that the client's socket is usable.
    #[track_caller]
    pub(crate) fn why(&self) -> FailureReason {
        match self.ending {
            Some(Ending::Failed(Failure { why, client_lost: false, .. })) => why,
            _ => panic!("{self:?}"),
        }
    }
}

impl Driver {
    pub(crate) fn new() -> Self {
        let epoll = epoll::create(CreateFlags::CLOEXEC).unwrap();
        let gateway = Gateway::new(rustix::io::fcntl_dupfd_cloexec(&epoll, 0).unwrap());
        let (started, stopped_ms) = (Instant::now(), None);
        Self { gateway, epoll, started, stopped_ms, got: HashMap::new(), slow: HashSet::new() }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.stopped_ms.unwrap_or_else(|| 1_000_000 + self.started.elapsed().as_millis() as u64)
    }

    /// Stops the clock, or lets it go on from where it would be.
    pub(crate) fn stop_clock(&mut self, stops: bool) {
        self.stopped_ms = None;
        self.stopped_ms = stops.then(|| self.now_ms());
    }

    pub(crate) fn begin(&mut self, id: u64, request: Request) {
        self.got.remove(&id);
        self.gateway.begin(RequestId::new(id), request, self.now_ms());
    }

    /// Begins a request and waits for its end.
    pub(crate) fn ask(&mut self, id: u64, request: Request) -> &ClientView {
        self.begin(id, request);
        self.finish(id)
    }

    /// Waits for the end of a request.
    #[track_caller]
    pub(crate) fn finish(&mut self, id: u64) -> &ClientView {
        self.run_until(|driver| driver.got(id).is_over());
        self.got(id)
    }

    /// Stalls a client, or lets it go on.
    pub(crate) fn set_slow(&mut self, id: u64, slow: bool) {
        if slow {
            self.slow.insert(id);
        } else {
            self.slow.remove(&id);
            self.take(id);
        }
    }

    pub(crate) fn got(&mut self, id: u64) -> &ClientView {
        self.got.entry(id).or_default()
    }

    /// Pushes some of a request's body as soon as it is wanted.
    #[track_caller]
    pub(crate) fn push(&mut self, id: u64, part: &[u8]) {
        self.push_piece(id, part.to_vec().into(), false);
    }

    /// The same with the last of it, which may be nothing.
    #[track_caller]
    pub(crate) fn push_last(&mut self, id: u64, part: &[u8]) {
        self.push_piece(id, part.to_vec().into(), true);
    }

    /// The same with a piece where it is.
    #[track_caller]
    pub(crate) fn push_piece(&mut self, id: u64, part: Slice, is_last: bool) {
        self.run_until(|driver| driver.got(id).wants);
        self.got.entry(id).or_default().wants = false;
        self.gateway.push_body(RequestId::new(id), part, is_last, self.now_ms());
        self.note_want(id);
    }

    fn note_want(&mut self, id: u64) {
        let got = self.got.entry(id).or_default();
        got.wants |= self.gateway.wants_body(RequestId::new(id));
    }

    pub(crate) fn abandon(&mut self, id: u64) {
        self.gateway.abandon(RequestId::new(id), self.now_ms());
    }

    /// The first pool of the report.
    pub(crate) fn report(&self, what: &str) -> serde_json::Value {
        self.gateway.report()[0][what].clone()
    }

    /// Runs rounds of the loop until the condition holds.
    #[track_caller]
    pub(crate) fn run_until(&mut self, mut is_true: impl FnMut(&mut Self) -> bool) {
        let limit = Instant::now() + Duration::from_secs(20);
        while !is_true(self) {
            assert!(Instant::now() < limit, "it never happens: {:?} {}", self.got, self.gateway.report());
            self.round();
        }
    }

    /// Runs rounds of the loop for some time, and a few in any case, to see that something does *not* happen.
    pub(crate) fn run_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        for _ in 0..4 {
            self.round();
        }
        while Instant::now() < end {
            self.round();
        }
    }

    pub(crate) fn round(&mut self) {
        let wait_ms = self.gateway.deadline_ms().map_or(5, |due| due.saturating_sub(self.now_ms()).min(5));
        let timeout = rustix::event::Timespec { tv_sec: 0, tv_nsec: wait_ms as i64 * 1_000_000 };
        let mut events: Vec<Event> = Vec::with_capacity(64);
        let _ = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&timeout));
        for event in &events {
            let (data, flags) = (event.data.u64(), event.flags);
            assert!(Gateway::owns(data));
            self.gateway.handle_event(data, flags, self.now_ms());
            self.take_events();
        }
        self.gateway.handle_time(self.now_ms());
        self.gateway.check_invariants();
        self.take_events();
    }

    fn take_events(&mut self) {
        while let Some(id) = self.gateway.poll_ready().map(RequestId::number) {
            self.note_want(id);
            if !self.slow.contains(&id) {
                self.take(id);
            }
        }
    }

    fn take(&mut self, id: u64) {
        let got = self.got.entry(id).or_default();
        while let Some(event) = self.gateway.take(RequestId::new(id)) {
            assert!(!got.is_over(), "an event behind the last");
            match event {
                ResponseEvent::Stderr(lines) => got.stderr.extend(lines),
                ResponseEvent::Interim(head) => got.interim.push(head.status().code()),
                ResponseEvent::Head(head, _) => {
                    assert!(got.head.is_none() && got.body.is_empty());
                    got.head = Some(head);
                }
                ResponseEvent::Switch(head) => {
                    assert!(got.head.is_none() && got.body.is_empty());
                    (got.head, got.is_switched) = (Some(head), true);
                }
                ResponseEvent::Trailers(trailers) => got.trailers = Some(trailers),
                ResponseEvent::HalfEnd => got.is_half_over = true,
                ResponseEvent::Trail(_, trail) => got.trail = Some(trail),
                ResponseEvent::Travelled(_) => {}
                ResponseEvent::CacheNote(word) => panic!("{word}: there is no cache"),
                ResponseEvent::Rest(rest) => {
                    assert!(got.head.is_none() && got.body.is_empty());
                    got.rest = Some(rest);
                }
                ResponseEvent::Body(body) => got.take_body(&body),
                ResponseEvent::End { .. } => got.ending = Some(Ending::Complete),
                ResponseEvent::Answered(answered) => got.ending = Some(Ending::Answered(answered)),
                ResponseEvent::Failed(failure) => got.ending = Some(Ending::Failed(failure)),
                ResponseEvent::Answering(_) => {}
                ResponseEvent::Chosen(_) => panic!("no other way was offered"),
            }
        }
        self.gateway.note_sent(RequestId::new(id), self.now_ms());
    }
}

impl ClientView {
    fn take_body(&mut self, body: &Aggregate) {
        for piece in body.pieces() {
            match piece {
                Piece::Memory(slice) => self.body.extend_from_slice(slice),
                Piece::Shared(slice) => {
                    self.shared_bytes += slice.len() as u64;
                    slice.copy_prefix_to(slice.len(), &mut self.body);
                }
                Piece::File(slice) => {
                    self.file_bytes += slice.len();
                    let mut bytes = vec![0; slice.len() as usize];
                    let count = rustix::io::pread(slice.file(), &mut bytes, slice.offset()).unwrap();
                    assert_eq!(count, bytes.len());
                    self.body.extend(bytes);
                }
                Piece::Piped(slice) => {
                    self.piped_bytes += slice.len();
                    let mut left = vec![0; slice.len() as usize];
                    while !left.is_empty() {
                        let count = slice.read(&mut left).unwrap();
                        self.body.extend(left.drain(..count));
                    }
                }
            }
        }
    }
}

//! A law of all states: every wait for the client has a deadline.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use baton_buf::{Aggregate, Buffer};
use baton_content::{Blocking, Cache, CacheSettings, Tree, TreeConfig};
use baton_fcgi::cgi::Instruction;
use baton_fcgi::{AnswerOutcome, Answered, Rest};
use baton_http::origin::ResponseHead;
use baton_http::{FieldRules, Status};
use baton_response::send_way::{SendWay, SendWays};
use baton_shares::ClientKey;
use baton_site::address_range::{AddressSet, OuterRanges};
use baton_site::guards::RealAddress;
use baton_site::limits::Limits;
use baton_site::matcher::Matcher;
use baton_site::plan::{Action, CgiTerms, Delegate, Plan, Route, Site, Terms, UploadSettings};
use baton_telemetry::log::{AccessLogs, SiteLog};
use baton_telemetry::metrics::{Counters, Tally};
use baton_upstream::{
    Address, Application, Endpoint, Failure, FailureReason, ResponseEvent, Settings, TemporaryFiles,
    TemporarySpace,
};
use proptest::prelude::*;
use tempfile::TempDir;

use super::{Need, Session, Stage, UpstreamNeed};
use crate::context::{Context, Records};
use crate::protocol::StreamId;
use crate::send_queue::{SendPolicy, SendfileMode, is_resident};
use crate::session::Wake;

/// An application with all paths below its own, with which the server shares what it can.
fn sharing_terms(path: &str) -> CgiTerms {
    CgiTerms {
        path: path.into(),
        passes_socket: true,
        encoded_slashes: true,
        keep_passed: true,
        document_root: None,
        local_redirects: true,
        params: Vec::new(),
        trusted: AddressSet::default(),
        named: Vec::new(),
        internal: Vec::new(),
    }
}

/// What happens to a session.
#[derive(Clone, Debug)]
enum Event {
    ClientSends(&'static str),
    ClientReads(usize),
    ClientEndsItsInput,
    Application(AppAnswer),
    DeadlinePasses,
    Turn,
    Drain,
}

/// How an application answers.
#[derive(Clone, Copy, Debug)]
enum AppAnswer {
    Answered { may_go_on: bool },
    AnsweredInPart,
    HandedBack { may_go_on: bool },
    InTheOrdinaryWay,
    BeginsAndPauses,
    FailsBeforeAll { must_end: bool },
    FailsWithItsClient,
}

const INPUT: [&str; 9] = [
    "GET /small HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /large HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    "GET /app HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /app HTTP/1.1\r\nHost: a\r\n\r\nGET /app HTTP/1.1\r\nHo",
    "st: a\r\n\r\n",
    "POST /app HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234",
    "56789",
    "no request\r\n\r\n",
];

fn events() -> impl Strategy<Value = Vec<Event>> {
    let told = prop_oneof![
        3 => any::<bool>().prop_map(|may_go_on| AppAnswer::Answered { may_go_on }),
        1 => Just(AppAnswer::AnsweredInPart),
        2 => any::<bool>().prop_map(|may_go_on| AppAnswer::HandedBack { may_go_on }),
        2 => Just(AppAnswer::InTheOrdinaryWay),
        1 => Just(AppAnswer::BeginsAndPauses),
        1 => any::<bool>().prop_map(|must_end| AppAnswer::FailsBeforeAll { must_end }),
        1 => Just(AppAnswer::FailsWithItsClient),
    ];
    let event = prop_oneof![
        8 => proptest::sample::select(&INPUT[..]).prop_map(Event::ClientSends),
        4 => proptest::sample::select(&[100, 10_000, 10_000_000][..]).prop_map(Event::ClientReads),
        1 => Just(Event::ClientEndsItsInput),
        8 => told.prop_map(Event::Application),
        1 => Just(Event::DeadlinePasses),
        2 => Just(Event::Turn),
        1 => Just(Event::Drain),
    ];
    proptest::collection::vec(event, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn every_wait_for_a_client_has_its_deadline(events in events()) {
        let mut game = Game::new();
        for event in events {
            if !game.play(event) {
                break;
            }
        }
    }
}

/// A connection that is kept after an answer by `passfd` ends like any other, after the time between two requests.
#[test]
fn an_answer_by_the_application_itself_leaves_no_endless_wait() {
    let mut game = Game::new();
    assert!(game.play(Event::ClientSends("GET /app HTTP/1.1\r\nHost: a\r\n\r\n")));
    assert!(game.play(Event::Application(AppAnswer::Answered { may_go_on: true })));
    assert!(game.session.is_idle());
    assert_eq!(game.session.deadline_ms(), game.ctx.clock.now_ms() + game.ctx.plan.limits.idle_timeout_ms);
}

/// Goal: what a proxy asks for over one connection takes turns as the clients' that it tells of.
#[test]
fn jobs_behind_a_proxy_are_of_its_clients() {
    let folder = tempfile::tempdir().unwrap();
    let from =
        AddressSet { ranges: OuterRanges::from_iter(["192.0.2.0/28".parse().unwrap()]), has_local: false };
    let field = "X-Forwarded-For".to_owned();
    let mut ctx = context_behind(&folder, Some(RealAddress { from, field }));
    let (ours, mut proxy) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let peer = "192.0.2.1:1".parse().unwrap();
    let mut session = Session::new(OwnedFd::from(ours), Some(peer), 0, &mut ctx);
    for (number, told) in ["198.51.100.7", "198.51.100.8", "unknown"].into_iter().enumerate() {
        let request = format!("GET /{number} HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {told}\r\n\r\n");
        proxy.write_all(request.as_bytes()).unwrap();
        session.handle_ready(true);
        let Need::Job(job, client) = session.step(&mut ctx, Stage::Any) else { panic!("no job") };
        assert_eq!(client, Some(ClientKey::of(told.parse().unwrap_or(peer.ip()))));
        session.handle_job(job.run(), &ctx);
        assert!(matches!(session.step(&mut ctx, Stage::Any), Need::Readable));
    }
}

/// A session, its client, and an application that answers it.
struct Game {
    session: Session,
    ctx: Context,
    client: UnixStream,
    /// What the application says next, last first.
    events: Vec<ResponseEvent>,
    /// The request that it was given last.
    delegated: Option<StreamId>,
    waits_for_application: bool,
    _folder: TempDir,
}

impl Game {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("small"), [b's'; 1000]).unwrap();
        std::fs::write(folder.path().join("large"), vec![b'l'; 3_000_000]).unwrap();
        let mut ctx = context(&folder);
        let (ours, client) = UnixStream::pair().unwrap();
        client.set_nonblocking(true).unwrap();
        ours.set_nonblocking(true).unwrap();
        let session = Session::new(OwnedFd::from(ours), None, 0, &mut ctx);
        Self {
            session,
            ctx,
            client,
            events: Vec::new(),
            delegated: None,
            waits_for_application: false,
            _folder: folder,
        }
    }

    /// False: the session has ended.
    fn play(&mut self, event: Event) -> bool {
        self.ctx.clock.tick();
        let wake = match event {
            Event::ClientSends(bytes) => {
                let _ = self.client.write(bytes.as_bytes());
                Wake::Ready { readable: true, input_ends: false, hung_up: false }
            }
            Event::ClientReads(bytes) => {
                let _ = self.client.read(&mut vec![0; bytes]);
                Wake::Ready { readable: false, input_ends: false, hung_up: false }
            }
            Event::ClientEndsItsInput => {
                let _ = self.client.shutdown(Shutdown::Write);
                Wake::Ready { readable: true, input_ends: true, hung_up: false }
            }
            Event::Application(told) => {
                let Some(stream) = self.delegated.filter(|_| self.waits_for_application) else { return true };
                self.events = told.events();
                Wake::ResponseEvents(stream, self.events.pop().into_iter().collect())
            }
            Event::DeadlinePasses if self.session.deadline_ms() == u64::MAX => return true,
            Event::DeadlinePasses => Wake::TimedOut,
            Event::Turn => Wake::Turn,
            Event::Drain => {
                self.ctx.draining = true;
                Wake::Turn
            }
        };
        let need = match self.session.handle_wake(wake, &mut self.ctx) {
            Some(need) => need,
            None => self.session.step(&mut self.ctx, Stage::Any),
        };
        self.follow(need)
    }

    /// Does what an event loop does, until the session waits.
    fn follow(&mut self, mut need: Need) -> bool {
        loop {
            self.session.check_invariants();
            self.waits_for_application = matches!(need, Need::ResponseAwaited);
            match need {
                Need::Readable | Need::Writable => {
                    self.assert_deadline(&need);
                    return true;
                }
                Need::ResponseAwaited => return true,
                Need::Finished => return false,
                Need::Turn => {}
                Need::Job(job, _) => self.session.handle_job(job.run(), &self.ctx),
                Need::JobUnderWay => panic!("jobs are done at once here"),
                Need::Upstream(UpstreamNeed::Abandon(_)) => panic!("HTTP/1 ends with its request"),
                Need::Upstream(UpstreamNeed::Resume(..)) => panic!("no tunnel has arrived"),
                Need::Upstream(UpstreamNeed::Body(..)) => {
                    panic!("requests are given away without bodies here")
                }
                Need::Upstream(UpstreamNeed::Delegate(stream, _))
                | Need::Upstream(UpstreamNeed::ResponseEvents(stream)) => {
                    self.delegated = Some(stream);
                    let events = self.events.pop().into_iter().collect();
                    self.session.handle_response_events(stream, events, &mut self.ctx);
                }
            }
            need = self.session.step(&mut self.ctx, Stage::Any);
        }
    }

    fn assert_deadline(&self, need: &Need) {
        let limits = &self.ctx.plan.limits;
        let longest_ms = match need {
            Need::Writable => limits.send_timeout_ms,
            _ if self.session.is_idle() => limits.idle_timeout_ms.max(limits.head_timeout_ms),
            _ => limits.body_timeout_ms.max(limits.head_timeout_ms).max(limits.linger_timeout_ms),
        };
        let left_ms = self.session.deadline_ms().saturating_sub(self.ctx.clock.now_ms());
        assert!(left_ms <= longest_ms, "{need:?} for {left_ms} ms: {:?}", self.session);
    }
}

impl AppAnswer {
    /// Last first.
    fn events(self) -> Vec<ResponseEvent> {
        let answered = |complete, may_go_on| {
            let outcome = AnswerOutcome::Complete;
            ResponseEvent::Answered(Answered {
                complete,
                may_go_on,
                outcome,
                status: 200,
                head_bytes: 40,
                body_bytes: 2,
            })
        };
        let failed = |must_end, client_lost| {
            ResponseEvent::Failed(Failure { why: FailureReason::Ended, client_lost, must_end })
        };
        let mut in_order = match self {
            Self::Answered { may_go_on } => vec![answered(true, may_go_on)],
            Self::AnsweredInPart => vec![answered(false, false)],
            Self::HandedBack { may_go_on } => {
                let rest = Rest { may_go_on, status: 200, head_sent: 40, body_sent: 2 };
                vec![ResponseEvent::Rest(rest), body(400_000), ResponseEvent::End { app_status: 0 }]
            }
            Self::InTheOrdinaryWay => vec![head(), body(10), ResponseEvent::End { app_status: 0 }],
            Self::BeginsAndPauses => vec![head(), body(400_000)],
            Self::FailsBeforeAll { must_end } => vec![failed(must_end, false)],
            Self::FailsWithItsClient => vec![failed(false, true)],
        };
        in_order.reverse();
        in_order
    }
}

pub(super) fn head() -> ResponseEvent {
    let lines = b"Content-Type: text/plain\r\n".to_vec();
    let head = ResponseHead::of_lines(lines, Status::OK, b"OK", None, |_| true);
    ResponseEvent::Head(head, Instruction::None)
}

pub(super) fn body(bytes: usize) -> ResponseEvent {
    let mut body = Aggregate::default();
    body.push(Buffer::new(vec![b'b'; bytes]));
    ResponseEvent::Body(body)
}

pub(super) fn context(folder: &TempDir) -> Context {
    context_behind(folder, None)
}

fn context_behind(folder: &TempDir, real_address: Option<RealAddress>) -> Context {
    let tree = Tree::open(TreeConfig { root: folder.path().to_owned(), ..TreeConfig::default() }).unwrap();
    let endpoint = Endpoint::Shared(Address::Unix(folder.path().join("app.sock")));
    let application = Application::new(Settings::new("app", endpoint)).unwrap();
    let upload = UploadSettings {
        bytes_max: 1 << 20,
        timeout_ms: None,
        memory_bytes_max: 1 << 10,
        first_bytes: 0,
        temporary: TemporaryFiles { folder: folder.path().into(), space: TemporarySpace::default() },
    };
    let terms = Terms::Cgi(sharing_terms("/app"));
    let delegate = Delegate { application, upload, terms, cache: None };
    let site = Site {
        name: "site".into(),
        listeners: Vec::new(),
        hosts: Vec::new(),
        routes: vec![
            Route {
                matcher: Matcher::prefix("/"),
                when: None,
                pages: None,
                cache_bypass: None,
                headers: FieldRules::default(),
                compress: None,
                digest: None,
                cors: None,
                guards: None,
                action: Action::Files(Arc::new(tree)),
                otherwise: None,
            },
            Route {
                matcher: Matcher::prefix("/app"),
                when: None,
                pages: None,
                cache_bypass: None,
                headers: FieldRules::default(),
                compress: None,
                digest: None,
                cors: None,
                guards: None,
                action: Action::Delegated(Arc::new(delegate)),
                otherwise: None,
            },
        ],
        headers: FieldRules::default(),
        compress: None,
        cors: None,
        guards: None,
        real_address: real_address.map(Arc::new),
        error_pages: Vec::new(),
        clients: None,
        figures: None,
        marking: None,
        log: SiteLog::Main,
        log_when: None,
    };
    let send = SendPolicy {
        sendfile: SendfileMode::NonBlocking,
        quantum_bytes: 1 << 20,
        test_residency: true,
        is_resident,
        kernel_tls: false,
    };
    let counters = Counters::allocate(1).unwrap().remove(0);
    let records = Records { tally: Tally::new(counters, None), log: AccessLogs::default(), warnings: |_| {} };
    Context::new(
        Arc::new(Plan::new(vec![site], Limits::default(), true)),
        Arc::new(Cache::new(CacheSettings::default())),
        Blocking::Never,
        send,
        SendWays::new(SendWay::Measured),
        records,
    )
}

//! The loop's own decisions, with clients that need what a test says: what is watched, queued, handed to jobs, timed out and
//! ended.

use std::cell::RefCell;
use std::os::unix::net::UnixStream;
use std::rc::Rc;

use baton_content::CacheSettings;
use baton_session::session::Spare;
use baton_site::limits::Limits;
use baton_site::plan::Plan;
use baton_upstream::ClientSocket;
use rustix::event::Timespec;

use super::*;
use crate::settings::Tuning;
use crate::steering::{DrainLimits, Steering};

/// What has happened, in the order of events.
type Diary = Rc<RefCell<Vec<String>>>;

/// A client that needs these things one after the other, then input for ever.
struct Scripted {
    needs: VecDeque<Need>,
    diary: Diary,
    deadline_ms: u64,
    socket: ClientSocket,
    _theirs: UnixStream,
}

impl Connection for Scripted {
    fn deadline_ms(&self) -> u64 {
        self.deadline_ms
    }

    fn spare(&self) -> Option<Spare> {
        None
    }

    fn passport_version(&self) -> Option<u32> {
        None
    }

    fn may_go_back(&self) -> bool {
        false
    }
}

impl Client for Scripted {
    fn begin(_session: Session, _ctx: &mut Context) -> Option<Self> {
        unreachable!("the test begins clients")
    }

    fn advance(&mut self, wake: Wake, _ctx: &mut Takeable<Context>) -> Need {
        self.diary.borrow_mut().push(format!("{wake:?}"));
        if matches!(wake, Wake::End(_)) {
            return Need::Finished;
        }
        self.needs.pop_front().unwrap_or(Need::Readable)
    }

    fn socket(&self) -> &ClientSocket {
        &self.socket
    }
}

/// Jobs that are never done; steps of clients are taken away if `takes_steps`.
struct Noted {
    diary: Diary,
    takes_steps: bool,
}

impl Jobs<Scripted> for Noted {
    fn begin(&mut self, _whose: Token, _client: Option<ClientKey>, job: Job) {
        let kind = if matches!(job, Job::PageIn { .. }) { "PageIn" } else { "other" };
        self.diary.borrow_mut().push(format!("begin {kind}"));
    }

    fn forget(&mut self, _whose: Token) {
        self.diary.borrow_mut().push("forget".into());
    }

    fn give_step(&mut self, _whose: Token, _client: &mut Scripted) -> bool {
        self.takes_steps
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn take_done(&mut self, _into: &mut Vec<(Token, Wake)>) {}

    fn report(&self) -> Value {
        Value::Null
    }
}

struct Bench {
    diary: Diary,
    event_loop: EventLoop<Scripted, Noted>,
    steering: Arc<Steering>,
}

impl Bench {
    fn new(takes_steps: bool) -> Self {
        let (diary, steering) = (Diary::default(), Arc::new(Steering::new()));
        steering.begin(Arc::new(Plan::new(Vec::new(), Limits::default(), true)), Vec::new(), None);
        let event_loop = EventLoop::new(
            Context::without_sites(CacheSettings::default()),
            Acceptor::new(&Tuning::default(), &[], |_| {}),
            ConnectionCount::new(usize::MAX),
            steering.follow(),
            Noted { diary: Rc::clone(&diary), takes_steps },
            None,
        );
        Self { diary, event_loop: event_loop.unwrap(), steering }
    }

    /// A client with these needs, which has had its first turn.
    fn begin(&mut self, needs: impl IntoIterator<Item = Need>, deadline_ms: u64) -> Token {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let client = Scripted {
            needs: needs.into_iter().collect(),
            diary: Rc::clone(&self.diary),
            deadline_ms,
            socket: ClientSocket::from(OwnedFd::from(ours)),
            _theirs: theirs,
        };
        let place = self.event_loop.connection_count.enter(None, &self.event_loop.ctx);
        let token = self.event_loop.clients.insert(client, place, 0);
        self.event_loop.advance(token, Wake::Turn);
        token
    }

    /// What has happened since this was asked last.
    fn happened(&self) -> Vec<String> {
        self.diary.take()
    }

    fn interest(&mut self, token: Token) -> Interest {
        self.event_loop.clients.get_mut(token).expect("a client").interest
    }
}

fn page_in() -> Need {
    let file = Arc::new(baton_buf::OpenFile::new(std::fs::File::open("/dev/null").unwrap().into()));
    Need::Job(Job::PageIn { stream: None, slice: baton_buf::FileSlice::new(file, 0, 0) }, None)
}

/// Goal: a client that waits is watched once, for both directions; one that can go on costs no system call, and the loop does not
/// sleep meanwhile.
#[test]
fn a_client_that_waits_is_watched_and_one_that_can_go_on_is_queued() {
    let mut bench = Bench::new(false);
    let waits = bench.begin([Need::Readable], u64::MAX);
    assert_eq!(bench.interest(waits), Interest::InputAndOutput);
    assert!(bench.event_loop.runnable.is_empty());
    let goes_on = bench.begin([Need::Turn], u64::MAX);
    assert_eq!(bench.interest(goes_on), Interest::Nothing);
    assert_eq!(bench.event_loop.runnable, [goes_on]);
    assert_eq!(bench.event_loop.timeout(), Some(Timespec { tv_sec: 0, tv_nsec: 0 }));
}

#[test]
fn a_step_that_another_thread_takes_is_not_queued() {
    let mut bench = Bench::new(true);
    bench.begin([Need::Turn], u64::MAX);
    assert!(bench.event_loop.runnable.is_empty());
}

/// Goal: a client goes on with what its job does not hold up, and a job whose client has gone is forgotten.
#[test]
fn jobs_end_with_their_client() {
    let mut bench = Bench::new(false);
    let token = bench.begin([page_in(), Need::JobUnderWay], u64::MAX);
    assert_eq!(bench.happened(), ["Turn", "begin PageIn", "Resumed"]);
    bench.event_loop.end(token, Outcome::ClientGone);
    assert_eq!(bench.happened(), ["End(ClientGone)", "forget"]);
    let without_job = bench.begin([], u64::MAX);
    bench.event_loop.end(without_job, Outcome::Stopped);
    assert_eq!(bench.happened(), ["Turn", "End(Stopped)"]);
}

/// Goal: an event of a client that has gone wakes no other, even one with its slot.
#[test]
fn an_event_for_a_client_that_has_gone_wakes_none() {
    let mut bench = Bench::new(false);
    let gone = bench.begin([], u64::MAX);
    bench.event_loop.end(gone, Outcome::Complete);
    bench.begin([], u64::MAX);
    bench.happened();
    bench.event_loop.advance(gone, Wake::Turn);
    assert_eq!(bench.event_loop.clients.len(), 1);
    assert!(bench.happened().is_empty());
}

/// Goal: what is overdue is woken, and nothing else.
#[test]
fn a_deadline_wakes_its_client() {
    let mut bench = Bench::new(false);
    bench.begin([], 5_000);
    bench.begin([], 5_001);
    bench.happened();
    bench.event_loop.handle_second(4_999);
    assert!(bench.happened().is_empty());
    bench.event_loop.handle_second(5_000);
    assert_eq!(bench.happened(), ["TimedOut"]);
}

/// Goal: a drain waits for requests under way, for as long as it may.
#[test]
fn a_drain_ends_with_its_clients_or_its_time() {
    for (requests_ms, is_over) in [(u64::MAX, false), (0, true)] {
        let mut bench = Bench::new(false);
        bench.begin([], u64::MAX);
        bench.happened();
        bench.steering.drain(DrainLimits { requests_ms, tunnels_ms: u64::MAX });
        bench.event_loop.apply_new_orders().unwrap();
        assert!(bench.event_loop.ctx.draining);
        assert_eq!(bench.event_loop.is_drained(), is_over);
        assert_eq!(bench.happened(), if is_over { vec!["End(Stopped)"] } else { Vec::new() });
    }
}

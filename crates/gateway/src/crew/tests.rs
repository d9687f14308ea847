//! Applications that are models: on a CPU that all processes share, or waiting for something else.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;

use baton_buf::Aggregate;
use baton_fcgi::application::push_waits;
use rustix::event::epoll;

use super::*;
use crate::{
    Address, Application, ClientSocket, Gateway, HandOver, Place, Request, Settings, TransportChoice,
};

/// What an application with eight processes does with so many requests at a time.
#[derive(Clone, Copy, Debug)]
enum Model {
    /// Each takes so many microseconds of one CPU, and so many percent more for each further one that is there.
    Computes { micros: u64, percent: u64 },
    /// Each takes so many microseconds of one CPU, and so many more if it is interrupted, as it is by a loop that does
    /// not defer to it.
    IsInterrupted { micros: u64, lost: u64 },
    /// Each takes so many microseconds of one CPU, and so many more if the loop defers: to anybody else, too.
    SharesItsCpu { micros: u64, lost: u64 },
    /// Each takes so many microseconds, however many there are.
    Waits { micros: u64 },
}

/// Clients that ask again as soon as they are answered.
struct Stage {
    crew: Crew,
    model: Model,
    waiting: usize,
    /// Requests with the application, and when each is done at the earliest.
    under_way: VecDeque<(ConnectionId, u64)>,
    now_us: u64,
    ids: u64,
    answers: u64,
}

const PROCESSES: usize = 8;

impl Stage {
    fn new(model: Model, clients: usize) -> Self {
        let crew = Crew::new(PROCESSES, true);
        Self { crew, model, waiting: clients, under_way: VecDeque::new(), now_us: 0, ids: 0, answers: 0 }
    }

    /// Lets so much time pass. Returns how many were answered.
    fn run(&mut self, seconds: u64) -> u64 {
        let (until_us, before) = (self.now_us + seconds * 1_000_000, self.answers);
        while self.now_us < until_us {
            while self.waiting > 0
                && self.under_way.len() < PROCESSES
                && self.crew.may_begin(self.now_us / 1_000)
            {
                self.begin();
            }
            self.step();
        }
        self.answers - before
    }

    fn begin(&mut self) {
        let id = ConnectionId::from_data(self.ids);
        self.ids += 1;
        self.waiting -= 1;
        let done_us = match self.model {
            Model::Waits { micros } => self.now_us + micros,
            _ => 0,
        };
        self.crew.begin(id, self.now_us / 1_000);
        self.under_way.push_back((id, done_us));
    }

    /// Until the next answer, or until somebody else may begin.
    fn step(&mut self) {
        let crowd = self.under_way.len() as u64;
        let defers = self.crew.defers_now(self.now_us / 1_000);
        let next_us = match self.model {
            Model::Computes { micros, percent } => self.now_us + micros * (100 + percent * (crowd - 1)) / 100,
            Model::IsInterrupted { micros, lost } => self.now_us + micros + if defers { 0 } else { lost },
            Model::SharesItsCpu { micros, lost } => self.now_us + micros + if defers { lost } else { 0 },
            Model::Waits { .. } => self.under_way.front().expect("somebody is under way").1,
        };
        let turn_us = self.crew.due_ms().filter(|_| self.waiting > 0).map(|due_ms| due_ms * 1_000);
        if let Some(turn_us) = turn_us.filter(|turn_us| (self.now_us..next_us).contains(turn_us))
            && matches!(self.model, Model::Waits { .. })
        {
            self.now_us = turn_us;
            assert!(self.crew.may_begin(turn_us / 1_000), "it was due");
            return self.begin();
        }
        self.now_us = next_us;
        let (id, _) = self.under_way.pop_front().expect("somebody is under way");
        self.crew.end(id, self.waiting, self.now_us / 1_000);
        self.waiting += 1;
        self.answers += 1;
    }
}

#[test]
fn who_computes_gets_few_at_a_time() {
    let mut stage = Stage::new(Model::Computes { micros: 50, percent: 3 }, 8);
    stage.run(5);
    assert_eq!(stage.crew.limit(), Some(1));
    let (answers, possible) = (stage.run(10), 10_000_000 / 50);
    assert!(answers * 100 > possible * 99, "{answers} of {possible}");
    assert!(!stage.crew.defers(), "nobody gains by it");
}

/// A trial that answers half as much is not carried to its end.
#[test]
fn an_application_that_waits_is_hardly_held_up_by_trials() {
    let mut stage = Stage::new(Model::Waits { micros: 3_000 }, 16);
    let (answers, possible) = (stage.run(4), 4_000_000 / 3_000 * PROCESSES as u64);
    assert!(answers * 1_000 > possible * 990, "{answers} of {possible}");
}

#[test]
fn who_is_held_up_by_interruptions_is_not_interrupted() {
    for (clients, lost) in [(16, 10), (64, 40)] {
        let mut stage = Stage::new(Model::IsInterrupted { micros: 50, lost }, clients);
        stage.run(60);
        assert!(stage.crew.defers());
        let (answers, possible) = (stage.run(60), 60_000_000 / 50);
        assert!(answers * 100 > possible * 97, "{answers} of {possible}");
        stage.model = Model::Waits { micros: 1_000 };
        stage.run(100);
        assert_eq!(stage.crew.limit(), None, "it has all of its processes for that");
    }
}

/// Somebody else begins to use the CPU, to whom the loop would defer, too.
#[test]
fn deference_ends_when_it_is_no_longer_of_use() {
    for (lost, soon) in [(100, 60), (1_000, 60), (5_000, 3), (30_000, 3)] {
        let mut stage = Stage::new(Model::IsInterrupted { micros: 50, lost: 40 }, 64);
        stage.run(60);
        assert!(stage.crew.defers());
        stage.model = Model::SharesItsCpu { micros: 50, lost };
        stage.run(soon);
        assert!(!stage.crew.defers(), "{lost} us");
        let (answers, possible) = (stage.run(100), 100_000_000 / 50);
        assert!(answers * 100 > possible * 95, "{lost} us: {answers} of {possible}");
    }
}

#[test]
fn nobody_is_deferred_to_unless_somebody_else_waits() {
    let mut stage = Stage::new(Model::IsInterrupted { micros: 50, lost: 40 }, 64);
    stage.run(60);
    let mut now_ms = stage.now_us / 1_000;
    assert!(stage.crew.way.defers && stage.crew.defers_now(now_ms));
    assert!(!stage.crew.defers_now(now_ms + IDLE_MS), "no answers, no hurry");
    // The last of them are answered, and nobody has come.
    while let Some((id, _)) = stage.under_way.pop_front() {
        now_ms += IDLE_MS;
        stage.crew.end(id, 0, now_ms);
        assert!(!stage.crew.defers_now(now_ms));
    }
    let mut few = Stage::new(Model::IsInterrupted { micros: 50, lost: 40 }, 1);
    few.run(60);
    assert!(!few.crew.defers());
}

#[test]
fn who_waits_gets_all_there_are() {
    for micros in [200, 1_000, 3_000, 30_000] {
        let mut stage = Stage::new(Model::Waits { micros }, 64);
        let answers = stage.run(100);
        let possible = 100_000_000 / micros * PROCESSES as u64;
        assert!(answers * 100 > possible * 97, "{micros} us: {answers} of {possible}");
        assert_eq!(stage.crew.limit(), None);
    }
}

#[test]
fn fewer_processes_than_there_may_be_are_no_obstacle() {
    let mut stage = Stage::new(Model::Computes { micros: 50, percent: 3 }, 64);
    stage.crew = Crew::new(PROCESSES * 512, true);
    stage.run(5);
    assert_eq!(stage.crew.limit(), Some(1));
    let mut stage = Stage::new(Model::Waits { micros: 1_000 }, 64);
    stage.crew = Crew::new(PROCESSES * 512, true);
    stage.run(100);
    assert_eq!(stage.crew.limit(), None);
}

#[test]
fn few_clients_wait_for_nobody() {
    let mut stage = Stage::new(Model::Computes { micros: 50, percent: 3 }, 1);
    stage.run(10);
    assert_eq!(stage.crew.limit(), None);
}

#[test]
fn an_application_that_begins_to_wait_has_its_processes_back_at_once() {
    for micros in [500, 5_000, 50_000] {
        let mut stage = Stage::new(Model::Computes { micros: 50, percent: 3 }, 64);
        stage.run(10);
        assert_eq!(stage.crew.limit(), Some(1));
        stage.model = Model::Waits { micros };
        stage.run(if micros > STALL_MS * 1_000 { 1 } else { 30 });
        assert_eq!(stage.crew.limit(), None, "{micros} us");
    }
}

#[test]
fn one_who_is_stuck_holds_up_nobody_for_long() {
    let mut crew = Crew::with_limit(PROCESSES, 1);
    let id = ConnectionId::from_data;
    crew.begin(id(0), 100);
    assert!(!crew.may_begin(100 + STALL_MS - 1));
    assert_eq!(crew.due_ms(), Some(100 + STALL_MS));
    assert!(crew.may_begin(100 + STALL_MS));
    assert_eq!(crew.limit(), Some(2), "as somebody waited");
    for (at, limit) in [(1, Some(4)), (3, None)] {
        (at..at * 2 + 2).for_each(|number| crew.begin(id(number), 200 * at));
        assert!(crew.may_begin(200 * at + STALL_MS));
        assert_eq!(crew.limit(), limit);
    }
}

#[test]
fn nothing_is_tried_where_it_is_not_wanted() {
    let mut stage = Stage::new(Model::Computes { micros: 50, percent: 10 }, 64);
    stage.crew = Crew::new(PROCESSES, false);
    stage.run(10);
    assert_eq!(stage.crew.limit(), None);
    assert!(stage.crew.trial.is_none());
}

/// A loop defers only while all that it is asked for is the application's.
#[test]
fn whoever_asks_for_something_else_ends_the_deference() {
    let place = |port| Place::Shared(Address::Inet(([127, 0, 0, 1], port).into()));
    let settings =
        |port| Settings { transport: TransportChoice::Plain, ..Settings::new("test", place(port)) };
    let (one, other) = (Application::new(settings(1)).unwrap(), Application::new(settings(2)).unwrap());
    let mut gateway = Gateway::new(epoll::create(epoll::CreateFlags::CLOEXEC).unwrap());
    let pool = gateway.pool_of(&one);
    let crew = Crew { crowded_ms: 100, ..Crew::with_limit(PROCESSES, 1) };
    gateway.pools[pool].as_mut().unwrap().crew = Crew { way: Way { limit: 1, defers: true }, ..crew };
    assert!(gateway.defers(100));
    let mut ask = |whose, application: &Arc<Application>, now_ms| {
        let request = Request {
            application: Arc::clone(application),
            params: Vec::new(),
            body: Aggregate::default(),
            rest: None,
            idempotent: true,
            handover: None,
        };
        gateway.begin(whose, request, now_ms);
        gateway.note_input(whose, now_ms);
        for pool in gateway.pools.iter_mut().flatten() {
            pool.crew.crowded_ms = now_ms;
        }
        gateway.defers(now_ms)
    };
    assert!(ask(1, &one, 101), "that is what it is for");
    assert!(!ask(2, &other, 102), "another application");
    assert!(!ask(3, &one, 1_101));
    assert!(ask(4, &one, 1_102));
    gateway.note_input(99, 1_103);
    assert!(!gateway.defers(1_103), "no application at all");
}

/// An application that says that it waits for its client gives its turn to somebody else, long before the limit of time.
#[test]
fn who_waits_for_a_client_gives_up_its_turn() {
    let folder = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(folder.path().join("app")).unwrap();
    let place = Place::Shared(Address::Unix(folder.path().join("app")));
    let settings = Settings { transport: TransportChoice::PassFd, ..Settings::new("test", place) };
    let application = Application::new(settings).unwrap();
    let (client, _far) = UnixStream::pair().unwrap();
    let client = Arc::new(ClientSocket::from(OwnedFd::from(client)));
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    let mut gateway = Gateway::new(epoll.try_clone().unwrap());
    let pool = gateway.pool_of(&application);
    gateway.pools[pool].as_mut().unwrap().crew = Crew::with_limit(PROCESSES, 1);
    for whose in [1, 2] {
        let fields = Vec::new();
        let client = Arc::clone(&client);
        let handover = Some(HandOver { client, minor: 1, keep: true, head: false, fields, sent: 0 });
        let (application, body) = (Arc::clone(&application), Aggregate::default());
        let request =
            Request { application, params: Vec::new(), body, rest: None, idempotent: true, handover };
        gateway.begin(whose, request, 1);
    }
    let busy = |gateway: &Gateway| gateway.pools[pool].as_ref().unwrap().busy();
    assert_eq!(busy(&gateway), 1);
    let (mut process, _) = listener.accept().unwrap();
    let mut record = Vec::new();
    push_waits(&mut record, 1);
    process.write_all(&record).unwrap();
    let mut events = Vec::with_capacity(8);
    epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None).unwrap();
    for event in &events {
        gateway.handle_event(event.data.u64(), event.flags, 1);
    }
    gateway.serve_released(1);
    assert_eq!(busy(&gateway), 2);
}

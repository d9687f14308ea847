//! The acceptor over real sockets: how many it takes, when it pauses, and what it does with listeners that go.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use baton_sys::passing;
use rustix::event::Timespec;
use rustix::event::epoll::CreateFlags;
use tempfile::TempDir;

use super::*;
use crate::listen::{ListenOptions, bind};

/// A folder of sockets, and an acceptor with its poller. A client of a Unix socket waits in the queue as soon as it has connected.
struct Bench {
    folder: TempDir,
    epoll: OwnedFd,
    acceptor: Acceptor,
}

impl Bench {
    fn new(arrivals: &[Arc<Arrivals>]) -> Self {
        let tuning = Tuning { accepts_per_wake: 2, ..Tuning::default() };
        Self {
            folder: tempfile::tempdir().unwrap(),
            epoll: epoll::create(CreateFlags::CLOEXEC).unwrap(),
            acceptor: Acceptor::new(&tuning, arrivals, |_| {}),
        }
    }

    fn listener(&self, id: usize, name: &str) -> Arc<Listener> {
        let address = ListenAddress::Unix(self.folder.path().join(name));
        let options =
            ListenOptions { backlog: 9, reuse_port: false, defer_accept_s: 0, send_buffer_bytes: None };
        let socket = bind(&address, &options).unwrap();
        Arc::new(Listener { id, address, socket })
    }

    fn connect(&self, name: &str) -> UnixStream {
        UnixStream::connect(self.folder.path().join(name)).unwrap()
    }

    fn listen(&mut self, listeners: &[Arc<Listener>]) -> Vec<Arc<Listener>> {
        self.acceptor.listen(listeners, &self.epoll).unwrap()
    }

    /// The data of the events that the poller has now.
    fn events(&self) -> Vec<u64> {
        let mut events = Vec::with_capacity(8);
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&at_once)).unwrap();
        events.iter().map(|event| event.data.u64()).collect()
    }

    /// The ids of the listeners whose clients a round accepts.
    fn accept(&mut self, mut round: AcceptRound) -> Vec<usize> {
        let mut ids = Vec::new();
        while let Some(accepted) = self.acceptor.next(&mut round, usize::MAX, &self.epoll) {
            let Accepted::Client { listener, .. } = accepted else { panic!("{accepted:?}") };
            ids.push(listener);
        }
        ids
    }
}

/// Goal: other clients have a turn after so many, and none is left behind.
#[test]
fn a_round_accepts_no_more_than_it_may() {
    let mut bench = Bench::new(&[]);
    let listener = bench.listener(7, "a");
    bench.listen(&[listener]);
    let _clients = ["a", "a", "a"].map(|name| bench.connect(name));
    for expected in [vec![7, 7], vec![7]] {
        let [data] = bench.events()[..] else { panic!("one listener is ready") };
        let round = bench.acceptor.begin(data);
        assert_eq!(bench.accept(round), expected);
    }
    assert!(bench.events().is_empty());
}

/// Goal: without room a loop is not woken for clients that wait, and takes them when there is room again.
#[test]
fn accepting_pauses_while_there_is_no_room() {
    let mut bench = Bench::new(&[]);
    let listener = bench.listener(0, "a");
    bench.listen(&[listener]);
    let _client = bench.connect("a");
    let [data] = bench.events()[..] else { panic!("a client waits") };
    let mut round = bench.acceptor.begin(data);
    assert!(matches!(bench.acceptor.next(&mut round, 0, &bench.epoll), Some(Accepted::Paused)));
    assert!(bench.acceptor.next(&mut round, 1, &bench.epoll).is_none(), "the round is over");
    bench.acceptor.pause(1_000, &bench.epoll);
    assert!(bench.events().is_empty(), "the client waits in the queue");
    for (after_ms, has_room, resumes) in
        [(PAUSE_MS - 1, true, false), (PAUSE_MS, false, false), (2 * PAUSE_MS, true, true)]
    {
        bench.acceptor.handle_time(1_000 + after_ms, has_room, &bench.epoll);
        assert_eq!(bench.acceptor.resume_ms().is_none(), resumes, "{after_ms} ms");
        assert_eq!(bench.events().len(), usize::from(resumes));
    }
    // A connection that ends makes room at once.
    bench.acceptor.pause(2_000, &bench.epoll);
    bench.acceptor.resume(2_001);
    bench.acceptor.handle_time(2_001, true, &bench.epoll);
    let round = bench.acceptor.begin(data);
    assert_eq!(bench.accept(round), [0]);
}

/// Goal: the kernel has announced a client to this process alone, so the process takes it, though it listens elsewhere now. Of an
/// address that goes, clients are refused as by a server that has ended.
#[test]
fn a_listener_that_is_replaced_is_accepted_from_once_more() {
    let mut bench = Bench::new(&[]);
    let (stays, goes) = (bench.listener(1, "a"), bench.listener(2, "b"));
    bench.listen(&[Arc::clone(&stays), goes]);
    let _client = bench.connect("a");
    let replaced = bench.listener(1, "c");
    let left = bench.listen(&[Arc::clone(&replaced)]);
    assert!(left.len() == 1 && Arc::ptr_eq(&left[0], &stays));
    assert!(bench.events().is_empty(), "it is not watched any more");
    assert_eq!(bench.accept(Acceptor::finish_with(stays)), [1]);
    assert!(bench.listen(&[replaced]).is_empty(), "the same again changes nothing");
}

/// Goal: a process that leaves takes the clients that it was told of, once, and none after that.
#[test]
fn a_process_that_leaves_takes_the_clients_that_it_was_told_of() {
    let (ours, _theirs) = passing::message_pair().unwrap();
    let mut bench = Bench::new(&[Arc::new(Arrivals::new(ours).unwrap())]);
    let listener = bench.listener(3, "a");
    bench.listen(&[listener]);
    let _client = bench.connect("a");
    let rounds = bench.acceptor.leave(&bench.epoll).unwrap();
    let taken: Vec<_> = rounds.into_iter().flat_map(|round| bench.accept(round)).collect();
    assert_eq!(taken, [3]);
    bench.listen(&[]);
    assert!(bench.acceptor.leave(&bench.epoll).unwrap().is_empty());
    let round = bench.acceptor.begin(FIRST_ARRIVALS_DATA);
    assert!(bench.accept(round).is_empty(), "an event from before finds no listener for a client");
}

/// Goal: the end of the other server wakes a loop once.
#[test]
fn the_end_of_the_other_server_is_heard_once() {
    let (ours, theirs) = passing::message_pair().unwrap();
    let mut bench = Bench::new(&[Arc::new(Arrivals::new(ours).unwrap())]);
    let listener = bench.listener(0, "a");
    bench.listen(&[listener]);
    assert!(bench.events().is_empty());
    drop(theirs);
    assert_eq!(bench.events(), [FIRST_ARRIVALS_DATA]);
    let round = bench.acceptor.begin(FIRST_ARRIVALS_DATA);
    assert!(bench.accept(round).is_empty());
    assert!(bench.events().is_empty());
}

//! First come, first served: requests for an application whose processes share an address and keep their connections.
//!
//! Clients send the next request as soon as they are answered, and the application notes the order of requests. All numbers
//! are counts of requests, never times.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use baton_upstream::{Application, BacklogNotices, Request, TransportChoice};

use crate::common::app::{App, Event, ReceivedRequest, shared};
use crate::common::driver::Driver;
use crate::common::{application as with, get, post};
use crate::pool::HELLO;

const PROCESSES: usize = 3;
const CLIENTS: u64 = 9;
const REQUESTS: u64 = 1_200;

/// The numbers of requests, in the order in which the application got them.
type Order = Arc<Mutex<Vec<u64>>>;

/// Processes that work for a while on each request.
fn app() -> (App, Order) {
    let order: Order = shared();
    let noted = Arc::clone(&order);
    let app = App::with_processes(PROCESSES, move |peer| {
        while let Some(asked) = peer.request() {
            noted.lock().unwrap().push(number_of(&asked));
            std::thread::sleep(Duration::from_millis(2));
            if !peer.answer_at_once(&asked, HELLO) {
                return;
            }
        }
    });
    (app, order)
}

fn application(app: &App, loops: u64) -> Arc<Application> {
    with(app, |settings| {
        settings.transport = TransportChoice::Plain;
        settings.idle_timeout_ms = 3_600_000;
        if loops > 1 {
            settings.backlog_notice = BacklogNotices::allocate().unwrap().of(&app.address());
        }
    })
}

fn numbered(application: &Arc<Application>, number: u64) -> Request {
    let mut request = get(application);
    baton_fcgi::params::push(&mut request.text, b"NUMBER", number.to_string().as_bytes());
    request
}

fn number_of(asked: &ReceivedRequest) -> u64 {
    let mut params = asked.params.iter();
    let value = params.find_map(|(name, value)| (name == b"NUMBER").then_some(value)).unwrap();
    std::str::from_utf8(value).unwrap().parse().unwrap()
}

/// Sends all requests from clients of several loops, each on its own thread. `first_loop`: the number of clients of the
/// first loop.
fn ask(loops: u64, first_loop: u64, application: &Arc<Application>) {
    let next = AtomicU64::new(0);
    let work = |own: u64| {
        let mut driver = Driver::new();
        let loop_of = |client: u64| if client < first_loop { 0 } else { 1 + client % (loops - 1) };
        let mut clients: Vec<u64> = (0..CLIENTS).filter(|client| loop_of(*client) == own).collect();
        let begin = |driver: &mut Driver, client: u64| {
            let number = next.fetch_add(1, Ordering::SeqCst);
            if number < REQUESTS {
                driver.begin(client, numbered(application, number));
            }
            number < REQUESTS
        };
        clients.retain(|client| begin(&mut driver, *client));
        while !clients.is_empty() {
            driver.round();
            clients.retain(|client| {
                let got = driver.got(*client);
                if !got.is_over() {
                    return true;
                }
                assert_eq!(got.body, b"hello");
                begin(&mut driver, *client)
            });
        }
    };
    std::thread::scope(|scope| {
        for own in 0..loops {
            let work = &work;
            scope.spawn(move || work(own));
        }
    });
}

/// By how many later requests each request was overtaken, sorted.
fn overtakings(order: &Order) -> Vec<usize> {
    let order = order.lock().unwrap();
    assert_eq!(order.len() as u64, REQUESTS, "each was given to the application once");
    let overtaken = |at: usize| order[..at].iter().filter(|number| **number > order[at]).count();
    let mut counts: Vec<_> = (0..order.len()).map(overtaken).collect();
    counts.sort_unstable();
    counts
}

fn shown(counts: &[usize]) -> String {
    let at = |percent: usize| counts[(counts.len() - 1) * percent / 100];
    format!("overtaken by {:?}", [50, 90, 95, 99, 100].map(at))
}

/// Goal: a client that was just answered does not overtake waiting ones. Method: nineteen of twenty requests are overtaken
/// by no more requests than there are processes.
#[test]
fn requests_are_served_in_their_order() {
    let (app, order) = app();
    ask(1, CLIENTS, &application(&app, 1));
    let counts = overtakings(&order);
    assert!(counts[counts.len() * 19 / 20] <= PROCESSES, "{}", shown(&counts));
}

/// Goal: the same for clients of several loops, however many each has.
#[test]
fn requests_of_several_loops_are_served_in_their_order() {
    for (loops, first_loop) in [(2, 4), (2, 7), (2, 2), (4, 3)] {
        let (app, order) = app();
        ask(loops, first_loop, &application(&app, loops));
        let counts = overtakings(&order);
        assert!(counts[counts.len() * 9 / 10] <= PROCESSES, "{loops} {first_loop}: {}", shown(&counts));
    }
}

/// Goal: a connection counts as accepted even if the application, as php-fpm does, leaves the end of a body unread while it
/// works. Method: all processes but one are busy with such requests. The last one keeps its connection, because no
/// connection waits.
#[test]
fn what_is_read_in_part_has_been_accepted() {
    let (go, receiver) = mpsc::channel::<()>();
    let receiver = Mutex::new(receiver);
    let app = App::with_processes(PROCESSES, move |peer| {
        peer.read_bytes = 1;
        while let Some(asked) = peer.head() {
            if peer.index % PROCESSES < PROCESSES - 1 {
                receiver.lock().unwrap().recv().unwrap();
            }
            while peer.event() != Some(Event::StdinEnd) {}
            peer.answer_at_once(&asked, HELLO);
        }
    });
    for body in [0, 100, 10_000] {
        let application = application(&app, 1);
        let mut driver = Driver::new();
        let before = app.accepted();
        (1..PROCESSES).for_each(|busy| driver.begin(busy as u64, post(&application, &vec![0; body])));
        driver.run_until(|_| app.accepted() == before + PROCESSES - 1);
        driver.run_for(Duration::from_millis(50));
        for _ in 0..20 {
            assert_eq!(driver.ask(0, get(&application)).body, b"hello");
        }
        assert_eq!(app.accepted(), before + PROCESSES, "no connection was given up");
        for busy in 1..PROCESSES {
            go.send(()).unwrap();
            driver.finish(busy as u64);
        }
    }
}

/// Goal: the body comes with the end of the parameters. Method: a program that, as Perl's FCGI does, answers as soon as it has
/// the parameters and forgets what it has read beyond. Its next read has to return the next request.
#[test]
fn nothing_comes_behind_the_answer_of_a_program_that_reads_no_body() {
    let app = App::with_processes(PROCESSES, |peer| {
        loop {
            match peer.event() {
                Some(Event::Begin { id, keep }) => {
                    while peer.event() != Some(Event::ParamsEnd) {}
                    peer.discard_input();
                    peer.answer_at_once(&ReceivedRequest { id, keep, ..ReceivedRequest::default() }, HELLO);
                }
                None => return,
                Some(event) => panic!("{event:?} is no beginning"),
            }
        }
    });
    for _ in 0..200 {
        let application = application(&app, 1);
        let mut driver = Driver::new();
        for body in [&b""[..], b"a body"] {
            assert_eq!(driver.ask(0, post(&application, body)).body, b"hello");
        }
    }
}

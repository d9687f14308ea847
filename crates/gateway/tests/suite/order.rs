//! First come, first served: requests for an application whose processes share an address and keep their connections.
//!
//! Clients ask again as soon as they are answered, and the application notes in which order it is given their requests. All
//! numbers are counts of requests, never times.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use baton_gateway::{Application, Request, TransportChoice};

use crate::common::app::{App, Asked, Event, shared};
use crate::common::driver::Driver;
use crate::common::{application as with, get};
use crate::pool::HELLO;

const PROCESSES: usize = 3;
const CLIENTS: u64 = 9;
const REQUESTS: u64 = 1_200;

/// The numbers of requests, in the order in which the application was given them.
type Order = Arc<Mutex<Vec<u64>>>;

/// Processes that work for a while on each request.
fn app() -> (App, Order) {
    let order: Order = shared();
    let noted = Arc::clone(&order);
    let app = App::with_processes(PROCESSES, move |peer| {
        while let Some(asked) = peer.request() {
            noted.lock().unwrap().push(number_of(&asked));
            std::thread::sleep(Duration::from_millis(1));
            if !peer.answer_at_once(&asked, HELLO) {
                return;
            }
        }
    });
    (app, order)
}

fn application(app: &App) -> Arc<Application> {
    with(app, |settings| {
        settings.transport = TransportChoice::Plain;
        settings.take_turns = false;
        settings.idle_timeout_ms = 3_600_000;
    })
}

fn numbered(application: &Arc<Application>, number: u64) -> Request {
    let mut request = get(application);
    baton_fcgi::params::push(&mut request.params, b"NUMBER", number.to_string().as_bytes());
    request
}

fn number_of(asked: &Asked) -> u64 {
    let mut params = asked.params.iter();
    let value = params.find_map(|(name, value)| (name == b"NUMBER").then_some(value)).unwrap();
    std::str::from_utf8(value).unwrap().parse().unwrap()
}

/// Has clients ask so many loops, each of which has a thread, until there were all requests.
fn ask(loops: u64, application: &Arc<Application>) {
    let next = AtomicU64::new(0);
    let work = |own: u64| {
        let mut driver = Driver::new();
        let mut clients: Vec<u64> = (0..CLIENTS).filter(|client| client % loops == own).collect();
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

/// By how many later ones each request was overtaken, in order.
fn overtakings(order: &Order) -> Vec<usize> {
    let order = order.lock().unwrap();
    assert_eq!(order.len() as u64, REQUESTS, "each was given to the application once");
    let overtaken = |at: usize| order[..at].iter().filter(|number| **number > order[at]).count();
    let mut counts: Vec<_> = (0..order.len()).map(overtaken).collect();
    counts.sort_unstable();
    counts
}

/// Goal: a client that has just been answered does not overtake those that wait. Method: of ten requests nine are overtaken by
/// no more than there are processes, and the mean is less; the few by which the loop finds out how many processes there are
/// may be overtaken by more. Connections are kept: few are opened.
#[test]
fn requests_are_served_in_their_order() {
    let (app, order) = app();
    ask(1, &application(&app));
    let counts = overtakings(&order);
    assert!(counts[counts.len() * 9 / 10] <= PROCESSES, "{counts:?}");
    assert!(counts.iter().sum::<usize>() <= counts.len() * PROCESSES, "{counts:?}");
    assert!(app.accepted() <= REQUESTS as usize / 10, "{}", app.accepted());
}

/// Goal: the same if the clients are those of several loops, which share the processes. To serve the oldest request, a loop
/// may have to give up a process, and a connection.
#[test]
fn requests_of_several_loops_are_served_in_their_order() {
    for loops in [2, 4] {
        let (app, order) = app();
        ask(loops, &application(&app));
        let counts = overtakings(&order);
        assert!(counts.iter().sum::<usize>() <= counts.len() * PROCESSES, "{loops}: {counts:?}");
    }
}

/// Goal: that there are more processes is noticed, though no connection waits for them in the backlog. Method: more are
/// started while requests wait, and all have to be at work at once.
#[test]
fn more_processes_get_more_requests() {
    let working = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let (now, seen) = (Arc::clone(&working), Arc::clone(&most));
    let app = App::start(move |peer| {
        while let Some(asked) = peer.request() {
            seen.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(1));
            now.fetch_sub(1, Ordering::SeqCst);
            peer.answer_at_once(&asked, HELLO);
        }
    });
    let application = application(&app);
    let mut driver = Driver::new();
    (0..CLIENTS).for_each(|client| driver.begin(client, get(&application)));
    let clients = |driver: &mut Driver| {
        for client in 0..CLIENTS {
            if driver.got(client).is_over() {
                driver.begin(client, get(&application));
            }
        }
    };
    driver.run_until(|driver| {
        clients(driver);
        driver.report("connections") == 1 && driver.report("waiting") == CLIENTS - 1
    });
    assert_eq!(most.load(Ordering::SeqCst), 1);
    (1..PROCESSES).for_each(|_| app.add_process());
    driver.run_until(|driver| {
        clients(driver);
        most.load(Ordering::SeqCst) == PROCESSES
    });
}

/// Goal: a connection is not taken for unaccepted because the application, as php-fpm does, leaves the end of a body unread
/// while it makes a response. Method: all processes but one are busy with such requests; the one that is left keeps its
/// connection, as none starves.
#[test]
fn what_is_read_in_part_has_been_accepted() {
    let (go, receiver) = mpsc::channel::<()>();
    let receiver = Mutex::new(receiver);
    let app = App::with_processes(PROCESSES, move |peer| {
        peer.read_bytes = 1;
        while let Some(asked) = peer.head() {
            if peer.index < PROCESSES - 1 {
                receiver.lock().unwrap().recv().unwrap();
            }
            while peer.event() != Some(Event::StdinEnd) {}
            peer.answer_at_once(&asked, HELLO);
        }
    });
    let application = application(&app);
    let mut driver = Driver::new();
    (1..PROCESSES).for_each(|busy| driver.begin(busy as u64, get(&application)));
    driver.run_until(|_| app.accepted() == PROCESSES - 1);
    let end = Instant::now() + Duration::from_millis(200);
    while Instant::now() < end {
        assert_eq!(driver.ask(0, get(&application)).body, b"hello");
    }
    assert_eq!(app.accepted(), PROCESSES, "no connection was given up");
    for busy in 1..PROCESSES {
        go.send(()).unwrap();
        driver.finish(busy as u64);
    }
}

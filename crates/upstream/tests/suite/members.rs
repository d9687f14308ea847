//! Processes with an address each, and the loops that share them.

use std::sync::{Arc, Mutex, mpsc};

use baton_process_table::ProcessTable;
use baton_upstream::{Application, Failure, FailureReason, Settings, TransportChoice};

use crate::common::app::{App, Offered};
use crate::common::driver::{Driver, Ending};
use crate::common::{client, get, handed, members, table};
use crate::pool::{HELLO, answering_on_demand};

fn application(
    apps: &[&App],
    table: &Arc<ProcessTable>,
    change: impl FnOnce(&mut Settings),
) -> Arc<Application> {
    let endpoint = members(apps[0].folder(), apps, Arc::clone(table));
    let mut settings = Settings::new("members", endpoint);
    settings.transport = TransportChoice::Plain;
    settings.idle_timeout_ms = 3_600_000;
    change(&mut settings);
    Application::new(settings).unwrap()
}

fn states(table: &ProcessTable) -> Vec<&'static str> {
    table.report().iter().map(|slot| slot.state).collect()
}

/// Goal: requests go to idle processes, and no process has two.
#[test]
fn members_get_one_request_each() {
    let apps: Vec<_> = (0..3).map(|_| answering_on_demand()).collect();
    let all: Vec<_> = apps.iter().map(|(app, _)| app).collect();
    let application = application(&all, &table(&all), |_| {});
    let mut driver = Driver::new();
    for id in 0..4 {
        driver.begin(id, get(&application));
    }
    assert_eq!((driver.report("busy"), driver.report("waiting")), (3.into(), 1.into()));
    // The first member to answer gets the fourth request.
    let (app, go) = &apps[1];
    go.send(()).unwrap();
    go.send(()).unwrap();
    assert_eq!(driver.finish(3).body, b"hello");
    assert_eq!(app.accepted(), 1);
    for (_, go) in &apps {
        go.send(()).unwrap();
    }
    for id in 0..3 {
        driver.finish(id);
    }
}

/// Goal: a loop gives an idle process to another loop that needs it. While both need it, both get it in turn.
#[test]
fn loops_share_a_member() {
    let app = App::answering(HELLO);
    let table = table(&[&app]);
    let application = application(&[&app], &table, |_| {});
    let (mut one, mut other) = (Driver::new(), Driver::new());
    assert_eq!(one.ask(0, get(&application)).body, b"hello");
    assert_eq!(states(&table), ["busy"], "it is kept");
    other.begin(0, get(&application));
    other.run_until(|other| {
        one.round();
        other.got(0).is_over()
    });
    for id in 1..20 {
        one.begin(id, get(&application));
        other.begin(id, get(&application));
    }
    other.run_until(|other| {
        one.round();
        (1..20).all(|id| one.got(id).is_over() && other.got(id).is_over())
    });
    assert_eq!((table.waiting(), table.report()[0].requests), (0, 40));
}

/// Goal: an unreachable process is left to its supervisor, and its requests go to other processes.
#[test]
fn a_member_that_is_gone_is_passed_over() {
    let apps = [App::answering(HELLO), App::answering(HELLO)];
    let all = [&apps[0], &apps[1]];
    let table = table(&all);
    let application = application(&all, &table, |_| {});
    std::fs::remove_file(apps[0].folder().join("member.0")).unwrap();
    let mut driver = Driver::new();
    driver.begin(0, get(&application));
    driver.begin(1, get(&application));
    assert_eq!(driver.finish(0).body, b"hello");
    assert_eq!(driver.finish(1).body, b"hello");
    assert_eq!(states(&table), ["unsure", "busy"]);
    // Its supervisor has found that it listens.
    std::os::unix::fs::symlink(apps[0].folder().join("app"), apps[0].folder().join("member.0")).unwrap();
    table.set_open(0);
    driver.begin(2, get(&application));
    driver.begin(3, get(&application));
    assert_eq!((driver.report("waiting"), &states(&table)[..]), (0.into(), &["busy", "busy"][..]));
}

/// Goal: a process gets no more requests than it may. The next request waits for the next process.
#[test]
fn members_are_not_given_more_than_they_may_have() {
    let app = App::answering(HELLO);
    let table = Arc::new(ProcessTable::create(1, 1).unwrap());
    table.begin(0, 1, Some(3));
    table.set_open(0);
    let application = application(&[&app], &table, |_| {});
    let mut driver = Driver::new();
    for id in 0..3 {
        assert_eq!(driver.ask(id, get(&application)).body, b"hello");
    }
    assert!(table.is_spent(0) && table.is_vacated(0));
    driver.begin(3, get(&application));
    assert_eq!(driver.report("waiting"), 1);
    table.end(0);
    table.begin(0, 2, Some(3));
    assert_eq!(driver.report("waiting"), 1, "it is not marked as ready");
    table.set_open(0);
    assert_eq!(driver.finish(3).body, b"hello");
    assert_eq!(table.requests(0), 1);
}

/// Goal: a process is retired only between requests. An idle connection does not keep it.
#[test]
fn members_are_retired_between_requests() {
    let (app, go) = answering_on_demand();
    let table = table(&[&app]);
    let application = application(&[&app], &table, |_| {});
    let mut driver = Driver::new();
    driver.begin(0, get(&application));
    assert!(!table.retire_if_idle(0));
    table.retire(0);
    assert!(!table.is_vacated(0));
    go.send(()).unwrap();
    assert_eq!(driver.finish(0).body, b"hello");
    assert!(table.is_vacated(0));

    table.begin(0, 2, None);
    table.set_open(0);
    go.send(()).unwrap();
    driver.ask(1, get(&application));
    assert!(!table.is_vacated(0), "its connection is kept");
    table.retire(0);
    driver.run_until(|_| table.is_vacated(0));
}

/// Goal: the supervisor sees which processes have timed out, and which were cut off in the middle of a request.
#[test]
fn members_in_an_unknown_state_are_left_to_the_keeper() {
    let (app, _go) = answering_on_demand();
    let table = table(&[&app]);
    let application = application(&[&app], &table, |settings| settings.timeout_ms = 20);
    let mut driver = Driver::new();
    driver.begin(0, get(&application));
    assert_eq!(driver.finish(0).why(), FailureReason::TimedOut);
    assert!(table.is_overdue(0) && !table.is_unsure(0));

    table.begin(0, 2, None);
    table.set_open(0);
    driver.begin(1, get(&application));
    driver.abandon(1);
    assert!(table.is_unsure(0) && !table.is_overdue(0));
    let loops = std::mem::replace(&mut driver, Driver::new());
    drop(loops);
    assert_eq!(states(&table), ["unsure"]);
}

/// Goal: a request in the backlog of a dead process goes to the next process, even while the socket still exists. Method: a
/// socket without a process that accepts.
#[test]
fn requests_in_the_backlog_of_who_has_ended_are_given_to_the_next() {
    let app = App::answering(HELLO);
    let table = table(&[&app]);
    let application = application(&[&app], &table, |_| {});
    let path = app.folder().join("member.0");
    std::fs::remove_file(&path).unwrap();
    let _orphan = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let mut driver = Driver::new();
    driver.begin(0, get(&application));
    driver.run_until(|driver| driver.report("busy") == 1);
    table.end(0);
    driver.run_until(|driver| driver.report("waiting") == 1);
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(app.folder().join("app"), &path).unwrap();
    table.begin(0, 2, None);
    table.set_open(0);
    assert_eq!(driver.finish(0).body, b"hello");
}

/// Goal: after a timeout, a client whose socket the application has gets an error response once the process has ended, and is
/// cut off otherwise. Method: the test plays the supervisor. The application obeys its order to end, ignores it, or first
/// writes to the client. Meanwhile other requests wait for the next process.
#[test]
fn a_client_is_told_of_a_timeout_when_the_process_has_ended() {
    const WRITES_AND_ENDS: &str = "writes and ends";
    const STAYS: &str = "stays";
    const ENDS: &str = "ends";
    for what in [ENDS, WRITES_AND_ENDS, STAYS] {
        let (end, ending) = mpsc::channel::<()>();
        let ending = Mutex::new(ending);
        let app = App::start(move |peer| {
            if peer.index > 0 {
                while let Some(asked) = peer.request() {
                    peer.answer_at_once(&asked, HELLO);
                }
                return;
            }
            let asked = peer.request().unwrap();
            ending.lock().unwrap().recv().unwrap();
            match (what, asked.offer) {
                (WRITES_AND_ENDS, Offered::PassFd { client, .. }) => {
                    assert!(rustix::io::write(&client, b"HTTP/1.1 2").unwrap() > 0);
                }
                (STAYS, _) => assert_eq!(peer.event(), None, "until the server gives up"),
                _ => {}
            }
        });
        let table = table(&[&app]);
        let application = application(&[&app], &table, |settings| {
            settings.transport = TransportChoice::PassFd;
            settings.timeout_ms = 1_000;
        });
        let (server, _client) = client();
        let mut driver = Driver::new();
        driver.begin(1, handed(&application, &server));
        driver.run_until(|_| states(&table) == ["overdue"]);
        assert!(!driver.got(1).is_over(), "it waits for the end of the process");
        driver.begin(2, get(&application));
        end.send(()).unwrap();
        let lost = what != ENDS;
        let failure = Failure { why: FailureReason::TimedOut, client_lost: lost, must_end: !lost };
        assert_eq!(driver.finish(1).ending, Some(Ending::Failed(failure)), "{what}");
        // The supervisor has started the next process.
        table.end(0);
        table.begin(0, 2, None);
        table.set_open(0);
        assert_eq!(driver.finish(2).body, b"hello", "{what}");
        assert_eq!(states(&table), ["busy"], "its lane is held once, and kept");
    }
}

/// A process that answers several requests at a time is not ended, so the client gets no error response.
#[test]
fn a_client_is_cut_off_where_the_process_goes_on() {
    let app = App::start(|peer| {
        peer.request();
        peer.event();
    });
    let table = Arc::new(ProcessTable::create(1, 2).unwrap());
    table.begin(0, 1, None);
    table.set_open(0);
    let application = application(&[&app], &table, |settings| {
        settings.transport = TransportChoice::PassFd;
        settings.timeout_ms = 1_000;
    });
    let (server, _client) = client();
    let mut driver = Driver::new();
    let failure = Failure { why: FailureReason::TimedOut, client_lost: true, must_end: false };
    assert_eq!(driver.ask(1, handed(&application, &server)).ending, Some(Ending::Failed(failure)));
}

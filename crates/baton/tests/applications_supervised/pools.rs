//! Pools that grow and shrink, processes that are replaced unnoticed, and those that take too long.
//!
//! The stop signal has no handler in the application, which dies at once with its request. So no request fails only
//! if the signal comes between two requests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::client::{Client, Response};
use crate::common::matrix;
use crate::common::server::{Server, wait_until};
use crate::processes::{everybody, lives, pid_of, pools, told};
use crate::supervised::{folder, rewrite};

/// A site with the application below `/app`, with these keys beside its command.
fn site(workers: usize, arguments: &str, keys: &str) -> String {
    format!(
        "processes = {workers}\n[[site]]\nlisten = ['127.0.0.1:0']\nroot = '{{root}}'\n[[site.route]]\npath = '/app'\n\
         fastcgi = {{ command = ['./application'{arguments}], stop_signal = 'int', {keys} }}\n"
    )
}

fn run(workers: usize, keys: &str) -> Server {
    Server::run(folder(), &site(workers, "", keys))
}

/// A client that has sent a request and not read the answer.
fn asking(server: &Server, path: &str) -> Client {
    let mut client = server.connect();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
    client
}

/// Sends a request that takes long, and leaves.
fn give_up(server: &Server, path: &str) {
    let requests = || pools(server)[0]["processes"][0]["requests"].as_u64();
    let before = requests();
    let client = asking(server, path);
    wait_until("the application has it", || requests() > before);
    rustix::net::sockopt::set_socket_linger(client.stream(), Some(Duration::ZERO)).expect("an option");
}

/// A file that is not there yet, and a path that is answered when it is.
fn gate(server: &Server, what: &str) -> (PathBuf, String) {
    let file = server.folder().base().join("gate");
    let path = format!("/app/{what}={}", file.display());
    (file, path)
}

fn count(server: &Server, what: &str) -> u64 {
    pools(server)[0][what].as_u64().unwrap_or_else(|| panic!("no {what}"))
}

/// The processes, without their manager.
fn processes(server: &Server) -> BTreeSet<i32> {
    everybody(server)[1..].iter().copied().collect()
}

fn states(server: &Server) -> Vec<Value> {
    let processes = pools(server)[0]["processes"].as_array().cloned().expect("processes");
    processes.iter().map(|process| process["state"].clone()).collect()
}

/// Goal: there are as many processes as needed, within bounds, for any worker; and surplus ones end without affecting
/// a request.
#[test]
fn a_pool_grows_while_requests_wait_and_shrinks_again() {
    for workers in [1, 2] {
        let server = run(workers, "processes = { min = 1, max = 3, idle_s = 1 }");
        wait_until("it begins with one", || states(&server) == ["idle"]);
        let (file, path) = gate(&server, "wait");
        let mut clients: Vec<_> = (0..5).map(|_| asking(&server, &path)).collect();
        wait_until("all are busy", || states(&server) == ["busy"; 3] && count(&server, "waiting") == 2);
        assert_eq!(count(&server, "started"), 3);
        fs::write(file, "").expect("a file");
        let answers: Vec<_> = clients.iter_mut().map(Client::response).collect();
        let pids: BTreeSet<_> = answers.iter().map(pid_of).collect();
        assert_eq!(pids.len(), 3, "the three that were started, and each did something");
        wait_until("those that are not needed end", || {
            // Two workers that keep their connections for a moment would need two processes.
            assert!(workers > 1 || server.get("/app").status == 200);
            processes(&server).len() == 1
        });
        wait_until("they have ended", || pids.iter().filter(|&&pid| lives(pid)).count() == 1);
        assert_eq!((count(&server, "killed"), count(&server, "restarts")), (0, 0));
    }
}

/// Goal: each process gets exactly its maximum of requests, and its successor runs by then. Method: one process,
/// whose clients would have to wait otherwise; and several, with many clients.
#[test]
fn processes_are_replaced_after_so_many_requests() {
    let server = run(1, "processes = 1, requests_max = 5");
    let pids: Vec<_> = (0..20).map(|_| pid_of(&server.get("/app"))).collect();
    for of_one in pids.chunks(5) {
        assert!(of_one.iter().all(|pid| *pid == of_one[0]), "{pids:?}");
    }
    assert_eq!(pids.iter().collect::<BTreeSet<_>>().len(), 4);
    wait_until("the last one is replaced, too", || count(&server, "recycled") == 4);
    wait_until("they are gone", || !pids.iter().any(|&pid| lives(pid)));

    let server = run(2, "processes = 3, requests_max = 7");
    let answers = thread::scope(|scope| {
        let asks = |_| {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.connect();
                (0..40).map(|_| pid_of(&client.get("/app"))).collect::<Vec<_>>()
            })
        };
        let clients: Vec<_> = (0..6).map(asks).collect();
        clients.into_iter().flat_map(|client| client.join().expect("a client")).collect::<Vec<_>>()
    });
    let mut requests: BTreeMap<i32, u64> = BTreeMap::new();
    answers.into_iter().for_each(|pid| *requests.entry(pid).or_default() += 1);
    assert_eq!(requests.values().sum::<u64>(), 240);
    let (full, others): (Vec<u64>, Vec<u64>) = requests.values().partition(|&&requests| requests == 7);
    // A probe of a process has a connection of its own, and is no request.
    assert!(others.iter().all(|requests| *requests < 7) && others.len() <= 3, "{full:?} {others:?}");
    assert_eq!((count(&server, "killed"), count(&server, "restarts")), (0, 0));
}

/// Goal: old processes end between two requests, and their successor runs. Method: requests without a pause.
#[test]
fn old_processes_are_replaced_without_a_failed_request() {
    let server = run(2, "processes = 1, lifetime_s = 1");
    let mut pids = BTreeSet::new();
    wait_until("two are replaced", || {
        pids.insert(pid_of(&server.get("/app")));
        pids.len() == 3
    });
}

/// Goal: the process that takes too long is killed, even if it ignores signals, and no other. Method: another one
/// writes all the time.
#[test]
fn only_the_process_that_takes_too_long_is_killed() {
    for arguments in ["", ", 'stubborn'"] {
        let keys = "processes = 2, timeout_ms = 500, grace_s = 0, transport = 'unix'";
        let server = Server::run(folder(), &site(2, arguments, keys));
        wait_until("they are ready", || states(&server) == ["idle"; 2]);
        let first = processes(&server);
        let (file, path) = gate(&server, "drip");
        let mut other = server.connect();
        other.send(format!("GET {path} HTTP/1.0\r\n\r\n"));
        wait_until("one is busy", || states(&server).contains(&"busy".into()));
        assert_eq!(server.get("/app/hang").status, 504);
        wait_until("it is replaced", || count(&server, "killed") == 1 && states(&server).len() == 2);
        let second = processes(&server);
        fs::write(file, "").expect("a file");
        let answer = String::from_utf8(other.until_the_end()).expect("text");
        let (dots, pid) =
            answer.split_once("\r\n\r\n").and_then(|answer| answer.1.split_once("pid=")).expect("all");
        assert!(dots.bytes().all(|byte| byte == b'.') && !dots.is_empty(), "{answer}");
        let kept: Vec<_> = first.intersection(&second).collect();
        assert!(kept.len() == 1 && pid == format!("{}\n", kept[0]), "{answer}");
        wait_until("it is gone", || first.iter().filter(|&&pid| lives(pid)).count() == 1);
        assert!(server.said().contains("takes too long for a request"), "{}", server.said());
    }
}

/// Goal: the client gets an error also if the process has its socket: the process has ended by then and cannot
/// answer, too. Method: one that ends at once, and one that must be killed.
#[test]
fn a_client_gets_a_timeout_by_passfd() {
    for arguments in ["", ", 'stubborn'"] {
        let keys = "processes = 1, timeout_ms = 500, grace_s = 0, transport = 'passfd'";
        let server = Server::run(folder(), &site(1, arguments, keys));
        wait_until("it is ready", || states(&server) == ["idle"]);
        let mut client = asking(&server, "/app/hang");
        let answer = client.response();
        assert_eq!((answer.status, answer.field("connection")), (504, Some("close")), "{arguments}");
        client.expect_end();
        wait_until("it is replaced", || count(&server, "killed") == 1 && states(&server) == ["idle"]);
        assert_eq!(server.get("/app").status, 200);
    }
}

#[test]
fn an_answer_that_has_begun_is_cut_when_its_process_is_killed() {
    let server = run(1, "processes = 1, timeout_ms = 300, transport = 'unix'");
    wait_until("it is ready", || states(&server) == ["idle"]);
    let mut client = asking(&server, "/app/begin/hang");
    let got = client.until_the_end();
    let text = String::from_utf8_lossy(&got);
    assert!(
        text.starts_with("HTTP/1.1 200") && text.contains("begun") && !text.ends_with("0\r\n\r\n"),
        "{text}"
    );
    wait_until("it is replaced", || count(&server, "killed") == 1 && states(&server) == ["idle"]);
    assert_eq!(server.get("/app").status, 200);
}

/// Goal: a process whose client has left gets no request before it has finished, and does not stay for ever.
#[test]
fn an_abandoned_process_comes_back_or_is_killed() {
    let server = run(1, "processes = 1, timeout_ms = 1000, transport = 'unix'");
    wait_until("it is ready", || states(&server) == ["idle"]);
    let (file, path) = gate(&server, "wait");
    give_up(&server, &path);
    wait_until("nobody knows", || states(&server) == ["unsure"]);
    let mut waiting = asking(&server, "/app");
    fs::write(file, "").expect("a file");
    assert_eq!(waiting.response().status, 200);
    assert_eq!(count(&server, "killed"), 0);

    let pid = pid_of(&server.get("/app"));
    give_up(&server, "/app/hang");
    wait_until("it is killed", || count(&server, "killed") == 1);
    assert_ne!(pid_of(&server.get("/app")), pid);
}

/// Goal: successors that cannot start are retried with growing pauses, and meanwhile the old process serves; requests
/// beyond its maximum wait.
#[test]
fn successors_that_die_at_once_stop_no_request() {
    let folder = folder();
    let stop = folder.base().join("stop");
    let arguments = format!(", 'unless={}'", stop.display());
    let server = Server::run(folder, &site(1, &arguments, "processes = 1, requests_max = 8"));
    wait_until("it is ready", || states(&server) == ["idle"]);
    fs::write(&stop, "").expect("a file");
    let first = pid_of(&server.get("/app"));
    for _ in 0..6 {
        assert_eq!(pid_of(&server.get("/app")), first);
    }
    wait_until("heirs die", || server.said().contains("the next one starts in 400ms"));
    assert_eq!(pid_of(&server.get("/app")), first);
    let mut client = asking(&server, "/app");
    wait_until("it waits", || count(&server, "waiting") == 1);
    fs::remove_file(stop).expect("a file");
    assert_ne!(pid_of(&client.response()), first);
}

/// Goal: a reload in the middle of a request: the old process answers it, and the new one later ones.
#[test]
fn a_reload_waits_for_requests_in_flight() {
    let server = run(1, "processes = 1, timeout_ms = 3600000");
    wait_until("it is ready", || states(&server) == ["idle"]);
    let (file, path) = gate(&server, "wait");
    let mut client = asking(&server, &path);
    wait_until("it is busy", || states(&server) == ["busy"]);
    rewrite(&server, &site(1, ", 'new'", "processes = 1, timeout_ms = 3600000"));
    server.ctl(&["reload"]);
    assert_eq!(told(&server.get("/app"), "args"), "new");
    fs::write(file, "").expect("a file");
    assert_eq!(told(&client.response(), "args"), "");
    wait_until("the old pool has ended, long before its time", || pools(&server).len() == 1);
}

/// Goal: a removed idle pool ends at once, not after a request's timeout. Method: that timeout is longer than any
/// test.
#[test]
fn a_pool_that_is_idle_ends_with_the_reload_that_drops_it() {
    for architecture in matrix::architectures("a_pool_that_is_idle", &matrix::USUAL) {
        let site = |arguments| format!("architecture = '{architecture}'\n{}", site(2, arguments, ""));
        let server = Server::run(folder(), &site(""));
        assert_eq!(server.get("/app").status, 200, "{architecture}");
        rewrite(&server, &site(", 'new'"));
        server.ctl(&["reload"]);
        wait_until("the old pool has ended", || pools(&server).len() == 1);
        assert_eq!(told(&server.get("/app"), "args"), "new", "{architecture}");
    }
}

/// Goal: processes of a dead worker are reused when they have finished their requests.
#[test]
fn processes_outlive_the_worker_that_used_them() {
    let server = run(1, "processes = 1");
    wait_until("it is ready", || states(&server) == ["idle"]);
    let pid = pid_of(&server.get("/app"));
    let (file, path) = gate(&server, "wait");
    let _client = asking(&server, &path);
    wait_until("it is asked", || pools(&server)[0]["processes"][0]["requests"] == 2);
    let manager = everybody(&server)[0];
    let children = server.workers().into_iter().filter(|child| child.as_raw_nonzero().get() != manager);
    let worker = children.map(|pid| pid.as_raw_nonzero().get()).next().expect("a worker");
    kill_process(Pid::from_raw(worker).expect("not 0"), Signal::KILL).expect("a signal");
    wait_until("nobody knows", || states(&server) == ["unsure"]);
    fs::write(file, "").expect("a file");
    let answer: Response = server.get("/app");
    assert_eq!(pid_of(&answer), pid);
}

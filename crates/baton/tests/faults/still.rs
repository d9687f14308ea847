//! A stuck worker: it lives, and serves no client.

use std::net::SocketAddr;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::agent::Agent;
use crate::common::client::{Client, Response};
use crate::common::folder::Folder;
use crate::common::protocol::Protocol;
use crate::common::server::wait_until;
use crate::watched::Watched;

crate::architectures::under_two_architectures! { by name: a_stuck_worker_is_replaced }

/// Several processes, each with its own queue.
mod queues {
    one_of! {
        in_clear = ["auto", "n-copy"], others_serve_the_queue_of_a_stuck_worker;
        |architecture| (architecture, Protocol::Http)
    }
    one_of! {
        encrypted = [Protocol::Https, Protocol::H2], others_serve_the_queue_of_a_stuck_worker;
        |protocol| ("auto", protocol)
    }

    use super::others_serve_the_queue_of_a_stuck_worker;
}

/// Goal: a stuck worker is detected, named by `/healthz`, killed and replaced; idle workers are left alone. Method:
/// an idle worker is stopped by a signal.
fn a_stuck_worker_is_replaced(architecture: &str) {
    let server = start(architecture, Protocol::Http, "server.watchdog_ms=3000");
    assert_eq!(health(&server).status, 200);
    let before = server.server().workers();
    stop(before[0]);
    let mut told = Vec::new();
    wait_until("it is replaced", || {
        told.push(health(&server));
        let workers = server.server().workers();
        workers.len() == before.len() && !workers.contains(&before[0])
    });
    let named = format!("worker 0 (process {}) stands still: loop ", before[0].as_raw_nonzero());
    assert!(told.iter().any(|page| page.status == 503 && page.text().starts_with(&named)), "it is told");
    server.server().wait_until_said(&format!("error: {named}"));
    let after = server.server().workers();
    assert!(before[1..].iter().all(|idle| after.contains(idle)), "{before:?}, {after:?}");
    assert_eq!(server.metric("baton_workers_killed_total"), 1);
    wait_until("all is well again", || health(&server).status == 200);
    assert_eq!(server.get("/small.txt").text(), "small");
}

/// Goal: the others serve the queue of a stuck worker, and if it continues in time, it has lost nothing. Method: a
/// worker is stopped, clients connect, it is detected, and continued.
fn others_serve_the_queue_of_a_stuck_worker(architecture: &str, protocol: Protocol) {
    let server = start(architecture, protocol, "server.watchdog_ms=12000");
    let sockets = server.sockets();
    let mut clients: Vec<Agent> = (0..CLIENTS).map(|_| server.agent()).collect();
    clients.iter_mut().for_each(|client| assert_eq!(client.get("/small.txt").text(), "small"));
    let workers = server.server().workers();
    stop(workers[0]);
    std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(|| server.get("/small.txt"))).collect();
        wait_until("it is noticed", || health(&server).status == 503);
        for client in waiting {
            assert_eq!(client.join().expect("a response").text(), "small", "its queue is served");
        }
    });
    kill_process(workers[0], Signal::CONT).expect("a signal");
    wait_until("it moves again, and has its sockets for itself", || {
        health(&server).status == 200 && {
            clients.iter_mut().for_each(|client| assert_eq!(client.get("/small.txt").text(), "small"));
            server.sockets().iter().sum::<usize>() == sockets.iter().sum::<usize>() + CLIENTS
        }
    });
    assert_eq!(server.server().workers(), workers);
    assert_eq!(server.metric("baton_workers_killed_total"), 0);
}

fn start(architecture: &str, protocol: Protocol, watchdog: &str) -> Watched {
    let folder = Folder::new();
    folder.write("small.txt", "small");
    Watched::start_over(protocol, folder, architecture, &[watchdog])
}

fn stop(worker: Pid) {
    kill_process(worker, Signal::STOP).expect("a signal");
}

fn health(server: &Watched) -> Response {
    let admin: SocketAddr = *server.server().addresses().last().expect("an admin listener");
    Client::connect(admin).get("/healthz")
}

/// So many that each worker has some.
const CLIENTS: usize = 20;

//! How many connections a client may have.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use rustix::process::{Signal, kill_process};

use crate::common::client::Client;
use crate::common::server::{Server, wait_until};
use crate::common::stream::connect_from;
use crate::site::run;

const SITE: &str = "[[site]]\nlisten = '127.0.0.1:0'\nroot = '{root}'\n";

fn limited(server: &str, site: &str) -> Server {
    run(&format!("{server}\n[limits]\nconnections_per_address_max = 3\n{SITE}{site}"))
}

/// A connection from this address that was answered, if the server takes it.
fn connected(server: &Server, from: &str) -> Option<TcpStream> {
    let mut stream = connect_from(from.parse().expect("an address"), server.address());
    // The server may have closed it already.
    stream.write_all(b"GET /open/secret.txt HTTP/1.1\r\nHost: a\r\n\r\n").ok()?;
    let mut start = [0; 15];
    stream.read_exact(&mut start).ok()?;
    assert_eq!(&start, b"HTTP/1.1 200 OK");
    Some(stream)
}

fn full(server: &Server) -> Vec<TcpStream> {
    let held: Vec<_> = (0..3).map(|_| connected(server, "127.0.0.1").expect("one of three")).collect();
    assert!(connected(server, "127.0.0.1").is_none(), "a fourth one");
    held
}

#[test]
fn a_client_has_so_many_over_all_workers() {
    for architecture in ["auto", "pipeline", "threads", "symped"] {
        let server = limited(&format!("architecture = '{architecture}'\nprocesses = 2"), "");
        let mut held = full(&server);
        let other = connected(&server, "127.0.0.2");
        assert!(other.is_some(), "another client");
        assert!(connected(&server, "127.0.0.1").is_none(), "still");
        held.pop();
        wait_until("there is room again", || match connected(&server, "127.0.0.1") {
            Some(stream) => {
                held.push(stream);
                true
            }
            None => false,
        });
        assert!(connected(&server, "127.0.0.1").is_none(), "and no more");
    }
}

/// A worker that is killed takes back nothing, and its connections are over.
#[test]
fn a_dead_worker_counts_nothing() {
    let server = limited("processes = 1", "");
    let held = full(&server);
    let worker = server.workers()[0];
    kill_process(worker, Signal::KILL).expect("a signal");
    drop(held);
    let mut held = Vec::new();
    wait_until("another worker takes as many", || {
        held.extend(connected(&server, "127.0.0.1"));
        held.len() == 3
    });
    assert!(connected(&server, "127.0.0.1").is_none(), "and no more");
}

/// Goal: whom a worker counts, the one that takes its place counts as well. Method: the worker ends, its connections do not.
#[test]
fn connections_that_move_still_count() {
    let server = limited("processes = 1\n[admin]\nlisten = ['127.0.0.1:0']", "");
    let before = server.workers();
    let mut held = full(&server);
    server.ctl(&["recycle"]);
    wait_until("another worker has them", || server.workers().len() == 1 && server.workers() != before);
    assert!(connected(&server, "127.0.0.1").is_none(), "a fourth one");
    held.pop();
    wait_until("there is room again", || {
        held.extend(connected(&server, "127.0.0.1"));
        held.len() == 3
    });
    let admin = *server.addresses().last().expect("an address for monitoring");
    wait_until("both refusals are counted", || {
        let metrics = Client::connect(admin).get("/metrics").text().to_owned();
        let refused = metrics.lines().find_map(|line| line.strip_prefix("baton_connections_refused_total "));
        refused.expect("it is counted").parse::<u64>().expect("a number") >= 2
    });
}

#[test]
fn connections_of_proxies_are_those_of_many_clients() {
    let server = limited("", "real_ip = { from = ['127.0.0.1'] }\n");
    let held: Vec<_> = (0..5).map(|_| connected(&server, "127.0.0.1")).collect();
    assert!(held.iter().all(Option::is_some));
    let held: Vec<_> = (0..4).filter_map(|_| connected(&server, "127.0.0.2")).collect();
    assert_eq!(held.len(), 3, "of a client that is none");
}

/// Goal: under `mt` a client that holds connections leaves threads for others.
#[test]
fn one_client_does_not_hold_all_threads() {
    let server = run(&format!("architecture = 'mt'\nthreads = 8\n{SITE}"));
    let held: Vec<_> = (0..6).map(|_| connected(&server, "127.0.0.2").expect("three quarters")).collect();
    assert!(connected(&server, "127.0.0.2").is_none(), "the last quarter is for others");
    assert!(connected(&server, "127.0.0.1").is_some(), "another client");
    drop(held);
}

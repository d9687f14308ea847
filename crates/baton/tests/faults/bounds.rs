//! Descriptors and connections run out: those inside are served, those outside wait, and all of it passes.

use std::thread::{Scope, ScopedJoinHandle};

use crate::common::agent::{Agent, Body};
use crate::common::client::Response;
use crate::common::folder::Folder;
use crate::common::protocol::Protocol;
use crate::common::server::wait_until;
use crate::peer::connect_and_send;
use crate::site::{SMALL_BUFFERS, small_and_large};
use crate::watched::Watched;

over_each_protocol! { descriptors_run_out, connections_max_is_reached, idle_clients_make_room }

mod unheard {
    under_each_architecture! { an_error_log_on_a_full_disk_ends_no_worker }

    use super::an_error_log_on_a_full_disk_ends_no_worker;
}

// Its loops share the bound.
over_http1! { shared_symped = "shared-symped", Http, connections_max_is_reached }
over_http1! { mt = "mt", Http, connections_max_is_reached }

/// Those with a client at a time for each thread or process.
mod one_at_a_time {
    over_http1! { mt = "mt", Http, one_client_is_served_to_its_end }
    over_http1! { mp = "mp", Http, one_client_is_served_to_its_end }
    over_http1! { h2_mt = "mt", H2, one_client_is_served_to_its_end }

    use super::one_client_is_served_to_its_end;
}

/// A client that asks for the small file, on a connection of its own that it keeps. It may have to wait for its handshake.
fn ask<'scope>(
    scope: &'scope Scope<'scope, '_>,
    server: &'scope Watched,
) -> ScopedJoinHandle<'scope, (Agent, Response)> {
    scope.spawn(|| {
        let mut client = server.agent();
        let response = client.get("/small.txt");
        (client, response)
    })
}

/// Several that leave as soon as they are answered.
fn ask_and_leave<'scope>(
    scope: &'scope Scope<'scope, '_>,
    server: &'scope Watched,
) -> Vec<ScopedJoinHandle<'scope, Response>> {
    (0..WAITING).map(|_| scope.spawn(|| server.get("/small.txt"))).collect()
}

fn assert_served(waiting: Vec<ScopedJoinHandle<'_, Response>>) {
    for client in waiting {
        assert_eq!(client.join().expect("a response").text(), "small", "waiting clients are served");
    }
}

/// Goal: without a descriptor left, the server says so once, serves its clients, and accepts again when it can.
/// Method: a lower limit than the server knows of, and more clients than descriptors; then some leave.
fn descriptors_run_out(architecture: &str, protocol: Protocol) {
    let settings = ["server.processes=1", SAME_USER];
    let server = Watched::start_over(protocol, folder(), architecture, &settings);
    server.take_descriptors_away(DESCRIPTORS);
    let before = server.sockets();
    std::thread::scope(|scope| {
        let mut inside: Vec<Agent> = Vec::new();
        let first_outside = loop {
            assert!(inside.len() < DESCRIPTORS as usize, "more clients than descriptors");
            let asking = ask(scope, &server);
            wait_until("an answer, or a complaint", || asking.is_finished() || complains(&server));
            if !asking.is_finished() {
                break asking;
            }
            let (client, response) = asking.join().expect("a response");
            assert_eq!(response.status, 200);
            inside.push(client);
        };
        let waiting = ask_and_leave(scope, &server);

        let paused = server.metric("baton_accepts_paused_total");
        // For longer than the cache's names are valid: revalidation takes a descriptor, too.
        wait_until("many attempts", || {
            for client in &mut inside {
                assert_eq!(client.get("/small.txt").text(), "small", "those inside are served");
            }
            server.metric("baton_accepts_paused_total") >= paused + 25
        });
        assert!(waiting.iter().all(|client| !client.is_finished()), "no client is refused");

        // One leaves, and all others use its descriptor one after the other.
        inside.pop();
        assert_eq!(first_outside.join().expect("a response").1.status, 200);
        assert_served(waiting);
    });
    assert_eq!(server.server().said().matches(COMPLAINT).count(), 1, "it is said once");
    server.wait_until_nothing_is_left(&before);
}

/// Goal: an error log that cannot be written ends no worker. Method: one on a full disk, and something to say.
fn an_error_log_on_a_full_disk_ends_no_worker(architecture: &str) {
    let settings = ["server.processes=1", SAME_USER, "log.error=/dev/full"];
    let server = Watched::start(folder(), architecture, &settings);
    server.take_descriptors_away(DESCRIPTORS);
    let mut inside = server.connect();
    assert_eq!(inside.get("/small.txt").text(), "small");
    let outside: Vec<_> =
        (0..DESCRIPTORS).map(|_| connect_and_send(server.server().address(), KEPT)).collect();
    wait_until("descriptors run out", || server.metric("baton_accepts_paused_total") > 1);
    assert_eq!(inside.get("/small.txt").text(), "small", "the worker runs");
    drop(outside);
}

/// Goal: beyond `connections_max` clients wait in the queue and are served when there is room. Method: as many as are
/// let in, each in the middle of an answer, and some more.
fn connections_max_is_reached(architecture: &str, protocol: Protocol) {
    let settings = ["server.processes=1", "limits.connections_max=3", SMALL_BUFFERS];
    let server = Watched::start_over(protocol, small_and_large(), architecture, &settings);
    let before = server.sockets();
    std::thread::scope(|scope| {
        let mut inside: Vec<Agent> = (0..3)
            .map(|_| {
                let mut client = server.agent();
                client.begin("GET", "localhost", "/large.bin", "", Body::None);
                assert_eq!(client.head().status, 200);
                client
            })
            .collect();
        let waiting = ask_and_leave(scope, &server);
        wait_until("accepting has paused", || server.metric("baton_accepts_paused_total") > 0);
        for client in &mut inside {
            client.at_least(64 << 10);
        }
        assert!(waiting.iter().all(|client| !client.is_finished()), "there is no room");
        // Each loop reports its own counts.
        wait_until("all are counted", || server.metric("baton_connections_open") == 3);

        inside.pop();
        assert_served(waiting);
        for mut client in inside {
            assert!(client.body().is_ok(), "those inside are served to their end");
        }
    });
    server.wait_until_nothing_is_left(&before);
}

/// Goal: clients that wait for nothing make room for those that do. Method: as many idle clients as are let in.
fn idle_clients_make_room(architecture: &str, protocol: Protocol) {
    let settings = ["server.processes=1", "limits.connections_max=3"];
    let server = Watched::start_over(protocol, folder(), architecture, &settings);
    let before = server.sockets();
    let idle: Vec<Agent> = (0..3)
        .map(|_| {
            let mut client = server.agent();
            assert_eq!(client.get("/small.txt").status, 200);
            client
        })
        .collect();
    assert_eq!(server.get("/small.txt").text(), "small");
    wait_until("that is counted", || server.metric("baton_connections_evicted_total") > 0);
    drop(idle);
    server.wait_until_nothing_is_left(&before);
}

/// Goal: a client has its thread, or process, to itself until its connection ends, idle or not; then the next is served,
/// and that is no shortage. Method: one thread in one process.
fn one_client_is_served_to_its_end(architecture: &str, protocol: Protocol) {
    let settings = ["server.processes=1", "server.threads=1"];
    let server = Watched::start_over(protocol, folder(), architecture, &settings);
    let before = server.sockets();
    std::thread::scope(|scope| {
        let mut first = server.agent();
        assert_eq!(first.get("/small.txt").text(), "small");
        let waiting = ask_and_leave(scope, &server);
        assert_eq!(first.get("/small.txt").text(), "small", "the connection is kept");
        assert!(waiting.iter().all(|client| !client.is_finished()), "it is alone");
        drop(first);
        assert_served(waiting);
    });
    assert_eq!(server.metric("baton_accepts_paused_total"), 0);
    server.wait_until_nothing_is_left(&before);
}

fn complains(server: &Watched) -> bool {
    server.server().said().contains(COMPLAINT)
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("small.txt", "small");
    folder
}

/// A request after which the connection stays.
const KEPT: &str = "GET /small.txt HTTP/1.1\r\nHost: a\r\n\r\n";

const COMPLAINT: &str = "cannot accept";

/// The workers keep the user of this test, so that it may lower their limit.
const SAME_USER: &str = "server.user=root";

/// Few, but more than a worker needs for itself.
const DESCRIPTORS: u64 = 40;

/// Clients without a descriptor.
const WAITING: usize = 8;

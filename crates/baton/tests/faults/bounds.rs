//! Descriptors and connections run out: those inside are served, those outside wait, and all of it passes.

use std::net::TcpStream;

use crate::common::client::Client;
use crate::common::folder::Folder;
use crate::common::server::wait_until;
use crate::peer::{connect_and_send, is_silent, read_to_the_end};
use crate::watched::Watched;

under_each_architecture! { descriptors_run_out, nobody_hears_that_descriptors_run_out, connections_max_is_reached }

// Its loops share the bound.
under_each_architecture! { shared_symped = "shared-symped", connections_max_is_reached }
under_each_architecture! { mt = "mt", connections_max_is_reached }

/// Those with a client at a time for each thread or process.
mod one_at_a_time {
    under_each_architecture! { mt = "mt", one_client_is_served_to_its_end }
    under_each_architecture! { mp = "mp", one_client_is_served_to_its_end }

    use super::one_client_is_served_to_its_end;
}

/// Goal: without a descriptor left, the server says so once, serves its clients, and accepts again when it can.
/// Method: a lower limit than the server knows of, and more clients than descriptors; then some leave.
fn descriptors_run_out(architecture: &str) {
    let server = Watched::start(folder(), architecture, &["server.processes=1", SAME_USER]);
    server.take_descriptors_away(DESCRIPTORS);
    let before = server.sockets();
    let mut inside: Vec<Client> = Vec::new();
    let mut first_outside = loop {
        assert!(inside.len() < DESCRIPTORS as usize, "more clients than descriptors");
        let mut client = server.connect();
        client.send("GET /small.txt HTTP/1.1\r\nHost: a\r\n\r\n");
        wait_until("an answer, or a complaint", || !is_silent(client.stream()) || complains(&server));
        if is_silent(client.stream()) {
            break client;
        }
        assert_eq!(client.response().status, 200);
        inside.push(client);
    };
    let waiting: Vec<TcpStream> =
        (0..WAITING).map(|_| connect_and_send(server.server().address(), LAST)).collect();

    let paused = server.metric("baton_accepts_paused_total");
    // For longer than the cache's names are valid: revalidation takes a descriptor, too.
    wait_until("many attempts", || {
        for client in &mut inside {
            assert_eq!(client.get("/small.txt").text(), "small", "those inside are served");
        }
        server.metric("baton_accepts_paused_total") >= paused + 25
    });
    assert!(waiting.iter().all(is_silent), "no client is refused");

    // One leaves, and all others use its descriptor one after the other.
    inside.pop();
    assert_eq!(first_outside.response().status, 200);
    drop(first_outside);
    waiting.iter().for_each(assert_served);
    assert_eq!(server.server().said().matches(COMPLAINT).count(), 1, "it is said once");
    drop(inside);
    server.wait_until_nothing_is_left(&before);
}

/// Goal: an error log that cannot be written ends no worker. Method: one on a full disk, and something to say.
fn nobody_hears_that_descriptors_run_out(architecture: &str) {
    let settings = ["server.processes=1", SAME_USER, "log.error=/dev/full"];
    let server = Watched::start(folder(), architecture, &settings);
    server.take_descriptors_away(DESCRIPTORS);
    let mut inside = server.connect();
    assert_eq!(inside.get("/small.txt").text(), "small");
    let outside: Vec<TcpStream> =
        (0..DESCRIPTORS).map(|_| connect_and_send(server.server().address(), KEPT)).collect();
    wait_until("descriptors run out", || server.metric("baton_accepts_paused_total") > 1);
    assert_eq!(inside.get("/small.txt").text(), "small", "the worker runs");
    drop(outside);
}

/// Goal: beyond `connections_max` clients wait in the queue and are served when there is room. Method: as many as are
/// let in, and one more.
fn connections_max_is_reached(architecture: &str) {
    let settings = ["server.processes=1", "limits.connections_max=4"];
    let server = Watched::start(folder(), architecture, &settings);
    let before = server.sockets();
    let mut inside: Vec<Client> = (0..4)
        .map(|_| {
            let mut client = server.connect();
            assert_eq!(client.get("/small.txt").status, 200);
            client
        })
        .collect();
    let waiting = connect_and_send(server.server().address(), LAST);
    wait_until("accepting has paused", || server.metric("baton_accepts_paused_total") > 0);
    for client in &mut inside {
        assert_eq!(client.get("/small.txt").text(), "small", "those inside are served");
    }
    assert!(is_silent(&waiting), "there is no room");
    // Each loop reports its own counts.
    wait_until("all are counted", || server.metric("baton_connections_open") == 4);

    inside.pop();
    assert_served(&waiting);
    drop(inside);
    server.wait_until_nothing_is_left(&before);
}

fn assert_served(client: &TcpStream) {
    let (bytes, in_order) = read_to_the_end(client);
    assert!(bytes.ends_with(b"\r\n\r\nsmall") && in_order, "waiting clients are served");
}

/// Goal: a client has its thread, or process, to itself until its connection ends, idle or not; then the next is served,
/// and that is no shortage. Method: one thread in one process.
fn one_client_is_served_to_its_end(architecture: &str) {
    let server = Watched::start(folder(), architecture, &["server.processes=1", "server.threads=1"]);
    let before = server.sockets();
    let mut first = server.connect();
    assert_eq!(first.get("/small.txt").text(), "small");
    let mut waiting: Vec<TcpStream> =
        (0..WAITING).map(|_| connect_and_send(server.server().address(), LAST)).collect();
    assert_eq!(first.get("/small.txt").text(), "small", "the connection is kept");
    assert!(waiting.iter().all(is_silent), "it is alone");
    drop(first);
    waiting.drain(..).for_each(|client| assert_served(&client));
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

/// A request after which the connection is closed.
const LAST: &str = "GET /small.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// A request after which the connection stays.
const KEPT: &str = "GET /small.txt HTTP/1.1\r\nHost: a\r\n\r\n";

const COMPLAINT: &str = "cannot accept";

/// The workers keep the user of this test, so that it may lower their limit.
const SAME_USER: &str = "server.user=root";

/// Few, but more than a worker needs for itself.
const DESCRIPTORS: u64 = 40;

/// Clients without a descriptor.
const WAITING: usize = 8;

//! Very many connections that do nothing.

use std::io::Write as _;
use std::net::TcpStream;

use rustls::ClientConnection;

use crate::common::agent::Agent;
use crate::common::client::Client;
use crate::common::descriptors::raise_descriptors;
use crate::common::folder::Folder;
use crate::common::protocol::Protocol;
use crate::common::server::{Server, wait_until};
use crate::common::stream::connect_from;
use crate::common::{certificate, leave_out, matrix};
use crate::peer::{FAREWELLS, leave};
use crate::watched::Watched;

/// Goal: a user-level thread and its stack for each of very many clients, all released in the end. Method: every
/// client is answered once and stays; each is answered again; then all leave.
#[test]
fn many_idle_clients_have_a_thread_each() {
    idle_crowd("threads");
}

/// The same where an idle client is an entry of a table.
#[test]
fn many_idle_clients_wait_in_a_loop() {
    idle_crowd("auto");
}

fn idle_crowd(architecture: &str) {
    raise_descriptors(0);
    let crowd = matrix::size(500, 2_500);
    let server = Watched::start(small(), architecture, &["server.processes=1"]);
    let before = server.sockets();
    let mut clients: Vec<Client> = Vec::new();
    for _ in 0..crowd {
        let mut client = server.connect();
        assert_eq!(client.get("/small.txt").text(), "small");
        clients.push(client);
    }
    wait_until("all are open", || server.metric("baton_connections_open") == crowd);
    assert_eq!(server.get("/small.txt").text(), "small", "there is room for more");
    for client in &mut clients {
        assert_eq!(client.get("/small.txt").text(), "small", "none was forgotten");
    }
    drop(clients);
    server.wait_until_nothing_is_left(&before);
}

/// Goal: a client that stops in handshakes has its share of them: more are refused, clients at other addresses shake hands
/// meanwhile, clients that are inside are served, new ones as soon as there is room, and all is freed. Method: more than that
/// have sent nothing, a part of their first message, or all of it.
#[test]
fn a_crowd_stops_in_a_handshake() {
    let stopping = matrix::size(OF_ONE_CLIENT + 400, 10_000);
    if raise_descriptors(0) < 2 * stopping {
        return leave_out("a crowd", "too few descriptors (`ulimit -Hn`)");
    }
    let settings = ["server.processes=1", "send.defer_accept_s=0", "timeouts.head_ms=600000"];
    let server = Watched::start_over(Protocol::Https, small(), "auto", &settings);
    let before = server.sockets();
    let others = [Protocol::Https, Protocol::H2].map(|protocol| server.server().over(protocol));
    let mut inside: Vec<Agent> = others.iter().map(Server::agent).collect();
    let mut all_inside_are_served =
        || inside.iter_mut().for_each(|client| assert_eq!(client.get("/small.txt").text(), "small"));
    all_inside_are_served();

    let hello = client_hello();
    let stop = |number: u64| {
        let sent = match number % 3 {
            0 => &[][..],
            1 => &hello[..hello.len() / 2],
            _ => &hello,
        };
        let stream = connect_from([127, 0, 0, 2].into(), server.server().address());
        // It may have been refused by now.
        let _ = (&stream).write_all(sent);
        stream
    };
    let mut stopped: Vec<TcpStream> = (0..stopping).map(stop).collect();
    let refused = "baton_tls_handshakes_failed_total{reason=\"over-share\"}";
    wait_until("the others are refused", || server.metric(refused) == stopping - OF_ONE_CLIENT);
    wait_until("the bound holds", || server.metric("baton_connections_open") == OF_ONE_CLIENT + 2);
    all_inside_are_served();
    others.iter().for_each(|server| assert_eq!(server.get("/small.txt").text(), "small"));

    // Some that are within the bound: they came first.
    for (number, client) in stopped.drain(..100).enumerate() {
        leave(client, FAREWELLS[number % 2]);
    }
    wait_until("there is room", || server.metric("baton_connections_open") == OF_ONE_CLIENT + 2 - 100);
    others.iter().for_each(|server| assert_eq!(server.get("/small.txt").text(), "small"));
    for (number, client) in stopped.into_iter().enumerate() {
        leave(client, FAREWELLS[number % 2]);
    }
    all_inside_are_served();
    drop(inside);
    server.wait_until_nothing_is_left(&before);
}

/// The first message of a handshake.
fn client_hello() -> Vec<u8> {
    let settings = certificate::trusting(Protocol::Https);
    let mut client = ClientConnection::new(settings, certificate::name()).expect("a client");
    let mut hello = Vec::new();
    client.write_tls(&mut hello).expect("written");
    hello
}

fn small() -> Folder {
    let folder = Folder::new();
    folder.write("small.txt", "small");
    folder
}

/// Three quarters of what there are: see `crates/engine/src/transport/handshake.rs`.
const OF_ONE_CLIENT: u64 = 3072;

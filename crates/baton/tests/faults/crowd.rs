//! Very many connections that do nothing.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::common::client::Client;
use crate::common::folder::Folder;
use crate::common::server::wait_until;
use crate::watched::Watched;

/// Goal: a user-level thread and its stack for each of thousands of clients, all released in the end. Method: every
/// client is answered once and stays; each is answered again; then all leave.
#[test]
fn thousands_of_idle_clients_have_a_thread_each() {
    idle_crowd("threads");
}

/// The same where an idle client is an entry of a table.
#[test]
fn thousands_of_idle_clients_wait_in_a_loop() {
    idle_crowd("auto");
}

fn idle_crowd(architecture: &str) {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })
        .expect("descriptors for the clients");
    let folder = Folder::new();
    folder.write("small.txt", "small");
    let server = Watched::start(folder, architecture, &["server.processes=1"]);
    let before = server.sockets();
    let mut clients: Vec<Client> = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = server.connect();
        assert_eq!(client.get("/small.txt").text(), "small");
        clients.push(client);
    }
    wait_until("all are open", || server.metric("baton_connections_open") == CLIENTS);
    assert_eq!(server.get("/small.txt").text(), "small", "there is room for more");
    for client in &mut clients {
        assert_eq!(client.get("/small.txt").text(), "small", "none was forgotten");
    }
    drop(clients);
    server.wait_until_nothing_is_left(&before);
}

const CLIENTS: u64 = 2500;

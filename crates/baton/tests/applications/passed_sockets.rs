//! What an application may do to a client's socket that it was passed must not concern the server: flags and options are
//! shared by all copies, and copies stay for as long as their holders like. Under every architecture.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::time::Duration;

use baton_fcgi::application::{push_end, push_stdout};
use baton_fcgi::response::ProtocolStatus;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::OFlags;
use rustix::net::sockopt;

use crate::common::client::Client;
use crate::common::server::{Server, wait_until};
use crate::holders::{FIRST_REQUEST, Stage, answer, server_with};

crate::architectures::under_every_architecture!(
    with crate::holders::Stage::in_clear: a_socket_in_blocking_mode,
    a_socket_in_blocking_mode_later_on,
    a_socket_that_is_declined_and_kept,
    a_socket_that_lingers,
    a_copy_that_is_kept,
);
crate::architectures::under_architecture! {
    sealed_auto "auto" [with crate::holders::Stage::sealed:
        a_socket_in_blocking_mode a_socket_in_blocking_mode_later_on a_socket_that_is_declined_and_kept a_socket_that_lingers a_copy_that_is_kept]
}

/// Clients that read nothing: more than an architecture has sending threads.
const SLOW_CLIENTS: usize = 6;

/// More than a socket and a client's system take together.
const LARGE_BYTES: u64 = 32 << 20;

/// A part of it stays in the server's socket.
const MIDDLING_BYTES: u64 = 1 << 20;

fn set_blocking(client: &OwnedFd) {
    rustix::fs::fcntl_setfl(client, OFlags::empty()).expect("a flag");
}

/// Connections on which the application has answered, and which then request a file and read none of it.
fn slow_clients(server: &Server, request: &str) -> Vec<Client> {
    let file =
        |name, bytes| File::create(server.folder().root().join(name)).and_then(|file| file.set_len(bytes));
    file("large.bin", LARGE_BYTES).expect("a file");
    file("middling.bin", MIDDLING_BYTES).expect("a file");
    let slow = (0..SLOW_CLIENTS).map(|_| {
        let mut client = server.connect();
        sockopt::set_socket_recv_buffer_size(client.stream(), 100_000).expect("an option");
        assert_eq!(client.get("/app/x").status, 204);
        client.send(request);
        // When the head arrives, the server has begun to send the file.
        assert_eq!(client.head().status, 200);
        client
    });
    slow.collect()
}

const GET_LARGE: &str = "GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n";

/// Whether the connection was reset.
fn is_cut(client: &Client) -> bool {
    let mut sockets = [PollFd::new(client.stream(), PollFlags::empty())];
    rustix::event::poll(&mut sockets, Some(&Timespec::default())).expect("a look");
    sockets[0].revents().contains(PollFlags::ERR)
}

/// By the same workers: the master replaces one that stands still, which takes a minute.
fn others_are_served(server: &Server) {
    let workers = server.workers();
    for _ in 0..3 {
        assert_eq!(server.get("/page.txt").text(), "a file");
    }
    assert_eq!(server.workers(), workers, "a worker stood still");
}

/// Goal: a client that reads nothing on a socket in blocking mode delays no other client, and ends by `send_ms`.
/// Without precautions, `sendfile` waits for it, and the loop with it.
fn a_socket_in_blocking_mode(stage: Stage) {
    let server = server_with(stage, "send_ms = 500", |connection, client| {
        set_blocking(&client);
        answer(&connection, &client);
    });
    let slow = slow_clients(&server, GET_LARGE);
    others_are_served(&server);
    for client in slow {
        wait_until("a client that reads nothing is cut off", || is_cut(&client));
    }
}

/// The same, by an application that keeps a copy and changes the mode repeatedly.
fn a_socket_in_blocking_mode_later_on(stage: Stage) {
    let server = server_with(stage, "", |connection, client| {
        answer(&connection, &client);
        std::thread::spawn(move || {
            loop {
                set_blocking(&client);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
    });
    let mut slow = slow_clients(&server, GET_LARGE);
    others_are_served(&server);
    // One that continues to read gets the whole file.
    let length = usize::try_from(LARGE_BYTES).expect("a length");
    assert!(slow[0].take(length) == vec![0; length]);
    others_are_served(&server);
}

/// The same, by an application that declines the socket, and has a copy in spite of that.
fn a_socket_that_is_declined_and_kept(stage: Stage) {
    let server = server_with(stage, "", |mut connection, client| {
        let mut records = Vec::new();
        push_stdout(&mut records, FIRST_REQUEST, b"Status: 204 No Content\r\n\r\n");
        push_end(&mut records, FIRST_REQUEST, 0, ProtocolStatus::RequestComplete);
        set_blocking(&client);
        connection.write_all(&records).expect("written");
        std::mem::forget(client);
    });
    let _slow = slow_clients(&server, GET_LARGE);
    others_are_served(&server);
}

/// Goal: closing does not wait for a client, for any options that the application has set. Without precautions,
/// `close` waits for a minute. Method: the whole response is in the kernel, which cannot send it.
fn a_socket_that_lingers(stage: Stage) {
    let server = server_with(stage, "", |connection, client| {
        set_blocking(&client);
        sockopt::set_socket_linger(&client, Some(Duration::from_secs(60))).expect("an option");
        answer(&connection, &client);
    });
    let slow = slow_clients(&server, "GET /middling.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    others_are_served(&server);
    for mut client in slow {
        assert_eq!(client.rest().len() as u64, MIDDLING_BYTES, "the end comes in order");
    }
}

/// A copy that someone keeps, a child of the application for instance, does not keep the connection open.
fn a_copy_that_is_kept(stage: Stage) {
    let server = server_with(stage, "idle_ms = 300", |connection, client| {
        answer(&connection, &client);
        std::mem::forget(client);
    });
    let mut client = server.connect();
    assert_eq!(client.get("/app/x").status, 204);
    client.send("GET /page.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(client.response().text(), "a file");
    client.expect_end();

    let mut idle = server.connect();
    assert_eq!(idle.get("/app/x").status, 204);
    idle.expect_end();
}

//! Applications that get a client's socket and misbehave: raw ones, which read the request and ignore the rest of the
//! protocol.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};

use baton_fcgi::application::{push_answered, push_end, push_stdout};
use baton_fcgi::response::ProtocolStatus;
use baton_fcgi::{AnswerOutcome, Answered};

use crate::common::folder::Folder;
use crate::common::protocol::Protocol;
use crate::common::server::Server;
use crate::common::{kernel_tls, processes};

/// A server whose application handles each request by `end`, with its end of the connection and the client's socket.
fn server(stage: Stage, end: fn(UnixStream, OwnedFd)) -> Server {
    server_with(stage, "", end)
}

/// `timeouts`: settings of that section.
pub(crate) fn server_with(stage: Stage, timeouts: &str, end: fn(UnixStream, OwnedFd)) -> Server {
    server_with_keys(stage, timeouts, "", end)
}

/// `keys`: further settings of the application.
fn server_with_keys(stage: Stage, timeouts: &str, keys: &str, end: fn(UnixStream, OwnedFd)) -> Server {
    let Stage { architecture, protocol } = stage;
    let folder = Folder::new();
    folder.write("page.txt", "a file");
    let socket = folder.base().join("app.sock");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(&socket, open).expect("permissions");
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let connection = connection.expect("a connection");
            let received = baton_sys::passing::receive(&connection, &mut [0; 65_536]);
            let (_, mut descriptors) = received.expect("a request");
            end(connection, descriptors.pop().expect("the client's socket"));
        }
    });
    let site = SITE.replace("{architecture}", architecture).replace("{timeouts}", timeouts);
    let site = site.replace("{processes}", &processes(architecture, 1).to_string());
    Server::run(folder, &site.replace("{keys}", keys)).over(protocol)
}

/// A server under an architecture, of whose clients the application gets the sockets.
#[derive(Clone, Copy)]
pub(crate) struct Stage {
    architecture: &'static str,
    protocol: Protocol,
}

impl Stage {
    /// Runs a test in clear.
    pub(crate) fn in_clear(architecture: &'static str, test: fn(Self)) {
        test(Self { architecture, protocol: Protocol::Http });
    }

    /// Runs a test over TLS, if the kernel can seal what the application writes.
    pub(crate) fn sealed(architecture: &'static str, test: fn(Self)) {
        if let Some(_alone) = kernel_tls::alone() {
            test(Self { architecture, protocol: Protocol::Https });
        }
    }
}

const SITE: &str = r#"
architecture = "{architecture}"
processes = {processes}
[timeouts]
{timeouts}
[[site]]
{listen}
root = "{root}"
[[site.route]]
path = "/app"
fastcgi = { to = "unix:{base}/app.sock", transport = "passfd", {keys} }
"#;

/// Goal: the client gets an error, and nothing after it. Method: an application that closes its connection at once
/// and keeps the socket for ever; a client that the server has answered before, so that the byte count is not zero.
/// Only a shutdown can end the connection.
fn nothing_was_written(stage: Stage) {
    let server = server(stage, |_, client| std::mem::forget(client));
    let mut client = server.connect();
    for _ in 0..2 {
        assert_eq!(client.get("/page.txt").text(), "a file");
    }
    let answer = client.get("/app/x");
    assert_eq!((answer.status, answer.field("connection")), (502, Some("close")));
    client.expect_end();
}

/// Part of an answer is followed by nothing.
fn something_was_written(stage: Stage) {
    let server = server(stage, |_, client| {
        rustix::io::write(&client, b"HTTP/1.1 200 OK\r\nContent-").expect("written");
    });
    let mut client = server.connect();
    client.send("GET /app/x HTTP/1.1\r\nHost: a\r\n\r\n");
    let got = client.until_the_end();
    assert!(b"HTTP/1.1 200 OK\r\nContent-".starts_with(&got), "{}", String::from_utf8_lossy(&got));
}

/// Writes a complete answer to the client, and reports it.
pub(crate) fn answer(connection: &UnixStream, client: &OwnedFd) {
    answer_with_counts(connection, client, ANSWER.len() as u64, 0);
}

fn answer_with_counts(mut connection: &UnixStream, client: &OwnedFd, head_bytes: u64, body_bytes: u64) {
    rustix::io::write(client, ANSWER).expect("written");
    let (complete, may_go_on, outcome) = (true, true, AnswerOutcome::Complete);
    let answered = Answered { complete, may_go_on, outcome, status: 204, head_bytes, body_bytes };
    let mut records = Vec::new();
    push_answered(&mut records, FIRST_REQUEST, &answered);
    push_end(&mut records, FIRST_REQUEST, 0, ProtocolStatus::RequestComplete);
    connection.write_all(&records).expect("written");
}

const ANSWER: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";

/// A connection on which the application has answered itself ends like any other: after `idle_ms`.
fn an_idle_connection_ends(stage: Stage) {
    let server = server_with(stage, "idle_ms = 300", |connection, client| {
        answer(&connection, &client);
    });
    let mut client = server.connect();
    assert_eq!(client.get("/app/x").status, 204);
    client.expect_end();
}

/// With `passfd_keep_alive = false` an application that was passed a socket sees no second request on it, for any
/// answer by any transport.
fn a_connection_ends_with_its_one_answer(stage: Stage) {
    let keys = "passfd_keep_alive = false";
    let server = server_with_keys(stage, "", keys, |connection, client| answer(&connection, &client));
    let mut client = server.connect();
    assert_eq!(client.get("/page.txt").text(), "a file");
    client.send("GET /app/x HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.until_the_end(), ANSWER);

    let server = server_with_keys(stage, "", keys, |mut connection, client| {
        drop(client);
        let mut records = Vec::new();
        push_stdout(&mut records, FIRST_REQUEST, b"Content-Type: text/plain\r\n\r\ndeclined");
        push_end(&mut records, FIRST_REQUEST, 0, ProtocolStatus::RequestComplete);
        connection.write_all(&records).expect("written");
    });
    let mut client = server.connect();
    let declined = client.get("/app/x");
    assert_eq!((declined.text(), declined.field("connection")), ("declined", Some("close")));
    client.expect_end();
}

/// Goal: impossible counts do no harm. Method: an application that answers, and claims to have written too many
/// bytes; the connection is kept.
fn more_was_written_than_can_be(stage: Stage) {
    let server = server(stage, |connection, client| {
        answer_with_counts(&connection, &client, u64::MAX, u64::MAX);
    });
    let mut client = server.connect();
    for _ in 0..2 {
        assert_eq!(client.get("/app/x").status, 204);
        assert_eq!(client.get("/page.txt").text(), "a file");
    }
}

/// The id of the first request on a connection.
pub(crate) const FIRST_REQUEST: u16 = 1;

macro_rules! under {
    ($($module:ident $word:literal $run:ident [$($more:ident)?];)+) => {
        $(crate::architectures::under_architecture! {
            $module $word [with crate::holders::Stage::$run:
                nothing_was_written
                something_was_written
                an_idle_connection_ends
                a_connection_ends_with_its_one_answer
                $($more)?
            ]
        })+
    };
}

under! {
    auto "auto" in_clear [more_was_written_than_can_be];
    pipeline "pipeline" in_clear [more_was_written_than_can_be];
    threads "threads" in_clear [more_was_written_than_can_be];
    // The count tells how long the key of a sealed connection lasts: an impossible one ends it.
    sealed_auto "auto" sealed [];
}

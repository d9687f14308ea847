//! Orderly ends, and quick ones.

use std::net::TcpStream;
use std::process::Command;

use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::common::agent::Body;
use crate::common::client::Client;
use crate::common::matrix;
use crate::common::protocol::Protocol;
use crate::common::server::{Server, wait_until};
use crate::supervised::{
    ANY_PORT, ANY_PORTS, begin_download, configure, folder, refusal, remaining, send_signal, serving, start,
    start_in, status,
};

const BIG_BYTES: usize = 24 << 20;

/// A server with a download that has just begun.
fn downloading(rest: &str) -> (Server, Client) {
    let folder = folder();
    folder.write("big", vec![7; BIG_BYTES]);
    configure(&folder, ANY_PORT, "root", rest);
    let server = start_in(folder);
    let mut download = server.connect();
    begin_download(&mut download, BIG_BYTES);
    (server, download)
}

/// A server that gives up no client, also on a machine that is busy for longer than clients usually may be.
const PATIENT: &str = "drain_timeout_ms = 600000\n[timeouts]\nsend_ms = 600000\n";

/// Drains with a slow client, one in the middle of a request, and an idle one. The first gets everything, the second
/// is answered, the third is closed. New clients are refused, the exit code is 0.
#[test]
fn a_drain_finishes_requests_in_flight() {
    for architecture in matrix::architectures("a_drain_finishes_requests_in_flight", &matrix::USUAL) {
        // The server waits for clients that have not closed their ends, as those of this test.
        let settings = format!("architecture = \"{architecture}\"\n{PATIENT}linger_ms = 300");
        let (mut server, mut download) = downloading(&settings);
        let address = server.address();
        let mut idle = server.connect();
        assert_eq!(idle.get("/").text(), "first");
        let mut asking = server.connect();
        asking.send("GET / HTTP/1.1\r\n");
        server.ctl(&["drain"]);
        wait_until("new clients are refused", || TcpStream::connect(address).is_err());
        assert_eq!(status(&server)["state"], "draining");
        idle.expect_end();
        asking.send("Host: a\r\n\r\n");
        let answer = asking.response();
        assert_eq!((answer.text(), answer.field("connection")), ("first", Some("close")), "{architecture}");
        asking.expect_end();
        assert!(download.take(BIG_BYTES) == vec![7; BIG_BYTES]);
        download.expect_end();
        assert_eq!(server.ended().code(), Some(0), "{architecture}");
        assert!(!server.folder().base().join("control").exists());
    }
}

/// The same over each protocol: what is in flight is completed, and then the connection ends.
#[test]
fn a_drain_finishes_requests_of_every_protocol() {
    for architecture in ["auto", "pipeline"] {
        let folder = folder();
        folder.write("big", vec![7; BIG_BYTES]);
        configure(&folder, ANY_PORTS, "root", &format!("architecture = \"{architecture}\"\n{PATIENT}"));
        let mut server = start_in(folder);
        let mut downloads = Protocol::ALL.map(|protocol| {
            let mut client = server.over(protocol).agent();
            client.begin("GET", "localhost", "/big", "", Body::None);
            assert_eq!(client.head().status, 200);
            client
        });
        server.ctl(&["drain"]);
        wait_until("new clients are refused", || TcpStream::connect(server.address()).is_err());
        for client in &mut downloads {
            let body = client.body().expect("all of it");
            assert!(body == vec![7; BIG_BYTES], "{architecture}");
        }
        assert_eq!(server.ended().code(), Some(0), "{architecture}");
    }
}

/// Drains with a client that reads nothing: the limit ends it.
#[test]
fn a_drain_ends_at_its_limit() {
    for architecture in matrix::architectures("a_drain_ends_at_its_limit", &matrix::USUAL) {
        let settings = format!("architecture = \"{architecture}\"\ndrain_timeout_ms = 200");
        let (mut server, download) = downloading(&settings);
        server.signal(Signal::QUIT);
        assert_eq!(server.ended().code(), Some(0), "{architecture}");
        assert!(remaining(&download) < BIG_BYTES, "{architecture}");
    }
}

/// Stops with open connections and a download, without waiting for them.
#[test]
fn a_stop_does_not_wait_for_clients() {
    for signal in [Signal::TERM, Signal::INT] {
        let (mut server, download) = downloading("");
        let mut idle = server.connect();
        idle.get("/");
        server.signal(signal);
        assert_eq!(server.ended().code(), Some(0));
        assert!(remaining(&download) < BIG_BYTES);
        assert_eq!(remaining(&idle), 0);
    }
}

/// Goal: a signal to the whole process group, as from service managers and `timeout`, does not log that workers died.
/// Method: the signals come while the master is stopped, so that it finds both its own signal and the workers' ends.
#[test]
fn a_signal_to_the_group_is_no_failure() {
    let mut server = start("processes = 2");
    let workers = serving(&server);
    server.signal(Signal::STOP);
    for &worker in &workers {
        send_signal(worker, Signal::TERM);
    }
    server.signal(Signal::TERM);
    server.signal(Signal::CONT);
    assert_eq!(server.ended().code(), Some(0));
    assert!(!server.said().contains("was killed"), "{}", server.said());
}

/// Freezes a worker, so that it cannot stop by itself. The second request to stop kills it.
#[test]
fn the_second_request_to_stop_kills() {
    let mut server = start("processes = 1");
    let worker = serving(&server)[0];
    send_signal(worker, Signal::STOP);
    server.signal(Signal::TERM);
    server.wait_until_said("stop: signal 15");
    server.signal(Signal::TERM);
    assert_eq!(server.ended().code(), Some(0));
}

/// Cuts a drain short.
#[test]
fn a_drain_can_be_cut_short() {
    let (mut server, _download) = downloading("");
    server.ctl(&["drain"]);
    assert_eq!(status(&server)["state"], "draining");
    server.ctl(&["stop"]);
    assert_eq!(server.ended().code(), Some(0));
}

/// A server that is ending refuses to reload.
#[test]
fn an_ending_server_does_not_reload() {
    let (server, _download) = downloading("");
    server.ctl(&["drain"]);
    assert!(refusal(&server, "reload").contains("the server is ending"));
}

/// Starts `baton serve` at a terminal, and closes the terminal. The server ends; one that runs from a file takes the
/// same signal as a request to reload.
#[test]
fn a_server_started_by_hand_ends_with_its_terminal() {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();

    let folder = folder();
    let mut command = Command::new("sh");
    let script = "exec \"$0\" serve --listen 127.0.0.1:0 --control \"$1\" \"$2\" <\"$3\"";
    command.args(["-c", script, env!("CARGO_BIN_EXE_baton")]);
    command.arg(folder.base().join("control")).arg(folder.root()).arg(name);
    let mut server = Server::start(folder, command);
    server.signal(Signal::HUP);
    assert_eq!(server.ended().code(), Some(0));
}

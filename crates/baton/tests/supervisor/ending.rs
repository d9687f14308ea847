//! Orderly ends, and quick ones.

use std::net::TcpStream;

use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::client::{Client, get};
use crate::server::{ANY_PORT, Folder, Server, baton, send_signal};

const BIG_BYTES: usize = 24 << 20;

/// A server with a download under way, of which little has been taken.
fn downloading(rest: &str) -> (Server, Client) {
    let folder = Folder::new();
    folder.write("site/big", &vec![7; BIG_BYTES]);
    folder.configure(ANY_PORT, "site", rest);
    let server = Server::start_in(folder);
    let mut download = Client::connect(server.address());
    download.ask("/big").unwrap();
    assert_eq!(download.head().unwrap(), (200, BIG_BYTES));
    (server, download)
}

/// Drains while a client takes its time. It gets everything, new clients are refused, the exit code is 0.
#[test]
fn a_drain_finishes_what_is_under_way() {
    for architecture in ["auto", "symped", "threads"] {
        let (mut server, mut download) = downloading(&format!("architecture = \"{architecture}\""));
        let address = server.address();
        server.ctl_ok(&["drain"]);
        server.wait_until("new clients are refused", || TcpStream::connect(address).is_err());
        assert_eq!(server.status()["state"], "draining");
        let body = download.body(BIG_BYTES).expect("the whole file");
        assert!(body.iter().all(|&byte| byte == 7));
        assert_eq!(server.ended().code(), Some(0), "{architecture}");
        assert!(!server.control_socket().exists());
    }
}

/// Drains with a client that takes nothing: the limit ends it.
#[test]
fn a_drain_ends_at_its_limit() {
    let (mut server, mut download) = downloading("drain_timeout_ms = 200");
    server.signal(Signal::QUIT);
    assert_eq!(server.ended().code(), Some(0));
    assert!(download.body(BIG_BYTES).is_err());
}

/// Stops with connections open and a download under way, which are not waited for.
#[test]
fn a_stop_waits_for_nobody() {
    for signal in [Signal::TERM, Signal::INT] {
        let (mut server, mut download) = downloading("");
        let mut idle = Client::connect(server.address());
        idle.get("/").unwrap();
        server.signal(signal);
        assert_eq!(server.ended().code(), Some(0));
        assert!(download.body(BIG_BYTES).is_err());
        assert!(idle.get("/").is_err());
    }
}

/// Freezes a worker, so that it cannot obey. The second request to stop does not ask it any more.
#[test]
fn the_second_request_to_stop_is_not_a_request() {
    let mut server = Server::start("processes = 1");
    let worker = server.workers()[0];
    send_signal(worker, Signal::STOP);
    server.signal(Signal::TERM);
    server.wait_until("the first is received", || server.said().contains("stop: signal 15"));
    server.signal(Signal::TERM);
    assert_eq!(server.ended().code(), Some(0));
}

/// Cuts a drain short.
#[test]
fn a_drain_can_be_cut_short() {
    let (mut server, _download) = downloading("");
    server.ctl_ok(&["drain"]);
    assert_eq!(server.status()["state"], "draining");
    server.ctl_ok(&["stop"]);
    assert_eq!(server.ended().code(), Some(0));
}

/// A reload has no place in an end.
#[test]
fn an_ending_server_does_not_reload() {
    let (server, _download) = downloading("");
    assert_eq!(get(server.address(), "/").status, 200);
    server.ctl_ok(&["drain"]);
    let output = server.ctl(&["reload"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("the server is ending"));
}

/// Starts `baton serve` at a terminal, and lets the terminal go. A server that somebody started by hand does not stay
/// behind; one that is run from a file takes the same signal as a request to reload.
#[test]
fn a_server_started_by_hand_ends_with_its_terminal() {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();

    let folder = Folder::new();
    let mut command = baton();
    command.args(["serve", "--listen", "127.0.0.1:0", "--control"]);
    command.arg(folder.path("control.sock")).arg(folder.path("site"));
    command.stdin(rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap());
    let mut server = Server::start_with(folder, command);
    server.signal(Signal::HUP);
    assert_eq!(server.ended().code(), Some(0));
}

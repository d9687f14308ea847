//! From one configuration to another, unnoticed by clients.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

use rustix::process::Signal;

use crate::client::{Client, get};
use crate::server::{ANY_PORT, Folder, Server, send_signal};

/// More than the buffers of two sockets have room for, so that a transfer cannot have ended unseen.
const BIG_BYTES: usize = 24 << 20;

fn patterned(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (index / 7 + index / 4093) as u8).collect()
}

/// Swaps the root under a connection that is kept alive and one on which a download is under way. Both stay; the first
/// gets the new content with its next request, the second the whole old file.
#[test]
fn a_reload_keeps_connections_and_downloads() {
    let big = patterned(BIG_BYTES);
    for architecture in ["auto", "sped", "threads"] {
        let folder = Folder::new();
        folder.write("site/big", &big);
        folder.write("second/index.html", b"second");
        let rest = format!("architecture = \"{architecture}\"");
        folder.configure(ANY_PORT, "site", &rest);
        let server = Server::start_in(folder);

        let mut kept = Client::connect(server.address());
        assert_eq!(kept.get("/").unwrap().text(), "first");
        let mut download = Client::connect(server.address());
        download.ask("/big").unwrap();
        let (status, length) = download.head().unwrap();
        assert_eq!((status, length), (200, BIG_BYTES));
        let mut received = download.body(100_000).unwrap();

        server.folder.configure(ANY_PORT, "second", &rest);
        server.ctl_ok(&["reload"]);
        server.wait_until("the new root is served", || get(server.address(), "/").text() == "second");
        assert_eq!(kept.get("/").unwrap().text(), "second", "{architecture}: on the connection from before");
        received.extend(download.body(length - received.len()).unwrap());
        assert!(received == big, "{architecture}: the download differs");
        assert_eq!(
            download.get("/").unwrap().text(),
            "second",
            "{architecture}: the connection of the download"
        );
    }
}

/// Asks all the time, each time on a new connection, while the configuration changes many times. Nobody is refused.
#[test]
fn no_connection_is_refused_while_reloading() {
    let folder = Folder::new();
    folder.write("second/index.html", b"second");
    folder.configure(ANY_PORT, "site", "processes = 2");
    let server = Server::start_in(folder);
    std::thread::scope(|scope| {
        let reloads = scope.spawn(|| {
            for round in 0..10 {
                let root = if round % 2 == 0 { "second" } else { "site" };
                server.folder.configure(ANY_PORT, root, "processes = 2");
                server.ctl_ok(&["reload"]);
            }
        });
        let mut asked = 0;
        while !reloads.is_finished() || asked < 100 {
            let answer = get(server.address(), "/");
            assert!(["first", "second"].contains(&answer.text()));
            asked += 1;
        }
    });
}

/// Adds a listener, then removes it again.
#[test]
fn listeners_come_and_go() {
    let server = Server::start("");
    let path = server.folder.path("extra.sock");
    server.folder.configure(&format!("{ANY_PORT}, \"unix:extra.sock\""), "site", "");
    let before = server.address();
    server.ctl_ok(&["reload"]);
    let mut answer = String::new();
    let mut stream = UnixStream::connect(&path).expect("connect");
    std::io::Write::write_all(&mut stream, b"GET / HTTP/1.0\r\n\r\n").unwrap();
    std::io::Read::read_to_string(&mut stream, &mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("first"), "{answer}");
    assert_eq!(get(before, "/").text(), "first", "the old listener is still there");

    server.folder.configure(ANY_PORT, "site", "");
    server.ctl_ok(&["reload"]);
    assert!(!path.exists());
    assert_eq!(get(before, "/").text(), "first");
}

/// Breaks the configuration. Whoever asked for the reload is told where, and the server goes on as before.
#[test]
fn a_bad_configuration_is_refused_with_line_and_column() {
    let server = Server::start("");
    let workers = server.workers();
    server.folder.configure(ANY_PORT, "site", "drain_timeout = 5");
    let output = server.ctl(&["reload"]);
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("baton.toml:7:1") && told.contains("did you mean `drain_timeout_ms`?"), "{told}");
    assert_eq!(get(server.address(), "/").text(), "first");
    assert_eq!(server.workers(), workers);
    assert!(server.status()["last_reload"]["error"].as_str().unwrap().contains("drain_timeout_ms"));

    // The log tells the same to whoever sent a signal.
    let reports = |server: &Server| server.said().matches("did you mean `drain_timeout_ms`?").count();
    server.wait_until("the first report is in the log", || reports(&server) == 1);
    server.signal(Signal::HUP);
    server.wait_until("the second report is in the log", || reports(&server) == 2);

    server.folder.configure(ANY_PORT, "site", "drain_timeout_ms = 5");
    server.signal(Signal::HUP);
    server.wait_until("the good configuration is accepted", || {
        server.status()["last_reload"]["error"].is_null()
    });
}

/// Names a root that the workers may not open (as root, the master may). Nobody switches.
#[test]
fn what_a_worker_cannot_do_is_not_done_by_any() {
    let server = Server::start("processes = 2");
    server.folder.write("closed/index.html", b"secret");
    fs::set_permissions(server.folder.path("closed"), Permissions::from_mode(0o000)).unwrap();
    server.folder.configure(ANY_PORT, "closed", "processes = 2");
    let output = server.ctl(&["reload"]);
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("closed"), "{told}");
    for _ in 0..10 {
        assert_eq!(get(server.address(), "/").text(), "first");
    }
}

/// Changes what cannot change while the server runs: it says so, and changes the rest.
#[test]
fn settings_that_need_a_restart_are_named() {
    let server = Server::start("");
    server.folder.write("second/index.html", b"second");
    server.folder.configure(ANY_PORT, "second", "architecture = \"sped\"\n[cache]\nfiles_max = 17");
    let told = server.ctl_ok(&["reload"]);
    assert!(told.contains("server.architecture, cache.files_max"), "{told}");
    server.wait_until("the rest has changed", || get(server.address(), "/").text() == "second");
    assert_eq!(server.status()["architecture"], "auto");
}

/// Asks for several reloads at once. Each is answered: those that came too late for the first by a second one.
#[test]
fn everyone_who_asks_is_answered() {
    let server = Server::start("processes = 2");
    std::thread::scope(|scope| {
        let asked: Vec<_> = (0..6).map(|_| scope.spawn(|| server.ctl(&["reload"]))).collect();
        assert!(asked.into_iter().all(|answer| answer.join().unwrap().status.success()));
    });
}

/// Moves the root folder away and kills the worker: its successors cannot begin. A reload with another root does not have
/// to wait for one that can, nor for the end of the pause between two attempts.
#[test]
fn a_reload_helps_workers_that_cannot_begin() {
    let server = Server::start("processes = 1");
    let worker = server.workers()[0];
    fs::rename(server.folder.path("site"), server.folder.path("moved")).unwrap();
    send_signal(worker, Signal::KILL);
    server
        .wait_until("several successors have failed", || server.said().matches("No such file").count() >= 3);

    server.folder.write("second/index.html", b"second");
    server.folder.configure(ANY_PORT, "second", "processes = 1");
    server.ctl_ok(&["reload"]);
    assert_eq!(get(server.address(), "/").text(), "second");
}

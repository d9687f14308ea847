//! From one configuration to another, unnoticed by clients.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

use rustix::process::Signal;

use crate::common::folder::pattern;
use crate::common::matrix;
use crate::common::protocol::Protocol;
use crate::common::server::wait_until;
use crate::supervised::{
    ANY_PORT, ANY_PORTS, begin_download, configure, ctl, folder, refusal, send_signal, serving, start,
    start_in, status, write,
};

/// More than the buffers of two sockets hold, so that a transfer cannot have ended unnoticed.
const BIG_BYTES: usize = 24 << 20;

/// Swaps the root under a kept-alive connection and a download. Both stay; the first gets the new content with its
/// next request, the second the whole old file.
#[test]
fn a_reload_keeps_connections_and_downloads() {
    let big = pattern(BIG_BYTES, 1);
    for architecture in matrix::architectures("a_reload_keeps_connections_and_downloads", &matrix::USUAL) {
        let folder = folder();
        folder.write("big", big);
        write(&folder, "second/index.html", "second");
        let rest = format!("architecture = \"{architecture}\"");
        configure(&folder, ANY_PORT, "root", &rest);
        let server = start_in(folder);

        let mut kept = server.connect();
        assert_eq!(kept.get("/").text(), "first");
        let mut download = server.connect();
        begin_download(&mut download, BIG_BYTES);
        let mut received = download.take(100_000);

        configure(server.folder(), ANY_PORT, "second", &rest);
        server.ctl(&["reload"]);
        assert_eq!(kept.get("/").text(), "second", "{architecture}: the connection from before");
        received.extend(download.take(BIG_BYTES - received.len()));
        assert!(received == big, "{architecture}: the download differs");
        assert_eq!(download.get("/").text(), "second", "{architecture}: the connection of the download");
    }
}

/// Sends requests all the time, on new connections and on one that is kept, over each protocol, while the configuration
/// changes many times. No client is refused.
#[test]
fn no_request_is_lost_while_reloading() {
    let folder = folder();
    write(&folder, "second/index.html", "second");
    configure(&folder, ANY_PORTS, "root", "processes = 2");
    let server = start_in(folder);
    std::thread::scope(|scope| {
        let reloads = scope.spawn(|| {
            for round in 0..10 {
                let root = if round % 2 == 0 { "second" } else { "root" };
                configure(server.folder(), ANY_PORTS, root, "processes = 2");
                server.ctl(&["reload"]);
            }
        });
        let mut kept = Protocol::ALL.map(|protocol| server.over(protocol).agent());
        let mut asked = 0;
        while !reloads.is_finished() || asked < 100 {
            for (kept, protocol) in kept.iter_mut().zip(Protocol::ALL) {
                for answer in [kept.get("/"), server.over(protocol).get("/")] {
                    assert!(["first", "second"].contains(&answer.text()));
                    asked += 1;
                }
            }
        }
    });
}

/// Adds a listener, then removes it again.
#[test]
fn listeners_come_and_go() {
    let server = start("");
    let path = server.folder().base().join("extra.sock");
    configure(server.folder(), &format!("{ANY_PORT}, \"unix:extra.sock\""), "root", "");
    server.ctl(&["reload"]);
    let mut answer = String::new();
    let mut stream = UnixStream::connect(&path).expect("connect");
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("first"), "{answer}");
    assert_eq!(server.get("/").text(), "first", "the old listener is still there");

    configure(server.folder(), ANY_PORT, "root", "");
    server.ctl(&["reload"]);
    assert!(!path.exists());
    assert_eq!(server.get("/").text(), "first");
}

/// Breaks the configuration. The reload reports where, and the server goes on as before.
#[test]
fn a_bad_configuration_is_refused_with_line_and_column() {
    let server = start("");
    let workers = serving(&server);
    configure(server.folder(), ANY_PORT, "root", "drain_timeout = 5");
    let told = refusal(&server, "reload");
    assert!(told.contains("baton.toml:7:1") && told.contains("did you mean `drain_timeout_ms`?"), "{told}");
    assert_eq!(server.get("/").text(), "first");
    assert_eq!(serving(&server), workers);
    assert!(status(&server)["last_reload"]["error"].as_str().unwrap().contains("drain_timeout_ms"));

    // After a signal, the log has the same report.
    let reports = || server.said().matches("did you mean `drain_timeout_ms`?").count();
    wait_until("the first report is in the log", || reports() == 1);
    server.signal(Signal::HUP);
    wait_until("the second report is in the log", || reports() == 2);

    configure(server.folder(), ANY_PORT, "root", "drain_timeout_ms = 5");
    server.signal(Signal::HUP);
    wait_until("the good configuration is accepted", || status(&server)["last_reload"]["error"].is_null());
}

/// Names a root that the workers may not open (as root, the master may), and another address. No worker switches, and
/// the new address is closed again.
#[test]
fn a_reload_that_fails_in_a_worker_changes_none() {
    let server = start("processes = 2");
    write(server.folder(), "closed/index.html", "secret");
    fs::set_permissions(server.folder().base().join("closed"), Permissions::from_mode(0o000)).unwrap();
    // No other program uses this address of the host.
    let free = TcpListener::bind("127.77.0.1:0").and_then(|listener| listener.local_addr());
    let fresh = free.expect("a port");
    configure(server.folder(), &format!("{ANY_PORT}, \"{fresh}\""), "closed", "processes = 2");
    let told = refusal(&server, "reload");
    assert!(told.contains("closed"), "{told}");
    for _ in 0..10 {
        assert_eq!(server.get("/").text(), "first");
    }
    wait_until("the new address is closed again", || TcpStream::connect(fresh).is_err());
}

/// Changes settings that need a restart: the answer names them, and the rest takes effect.
#[test]
fn settings_that_need_a_restart_are_named() {
    let server = start("");
    write(server.folder(), "second/index.html", "second");
    configure(server.folder(), ANY_PORT, "second", "architecture = \"sped\"\n[cache]\nfiles_max = 17");
    let told = server.ctl(&["reload"]);
    assert!(told.contains("server.architecture, cache.files_max"), "{told}");
    assert_eq!(server.get("/").text(), "second", "the rest has changed");
    assert_eq!(status(&server)["architecture"], "auto");
}

/// Asks for several reloads at once. Each is answered: those that came too late for the first by a second one.
#[test]
fn everyone_who_asks_is_answered() {
    let server = start("processes = 2");
    std::thread::scope(|scope| {
        let asked: Vec<_> = (0..6).map(|_| scope.spawn(|| ctl(server.folder(), &["reload"]))).collect();
        assert!(asked.into_iter().all(|answer| answer.join().unwrap().status.success()));
    });
}

/// Moves the root folder away and kills the worker: its successors cannot start. A reload with another root waits
/// neither for a working one nor for the end of the pause between two attempts.
#[test]
fn a_reload_helps_workers_that_cannot_start() {
    let server = start("processes = 1");
    let worker = serving(&server)[0];
    fs::rename(server.folder().root(), server.folder().base().join("moved")).unwrap();
    send_signal(worker, Signal::KILL);
    wait_until("several successors have failed", || server.said().matches("No such file").count() >= 3);

    write(server.folder(), "second/index.html", "second");
    configure(server.folder(), ANY_PORT, "second", "processes = 1");
    server.ctl(&["reload"]);
    assert_eq!(server.get("/").text(), "second", "from the one worker, which began with it");
}

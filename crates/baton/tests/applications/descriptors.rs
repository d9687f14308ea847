//! A server with few descriptors continues with those it has, and refuses no client.
//!
//! The file cache once took all of them, for good: from then on there was a 503 for each file that it did not have, and
//! a 502 for each application.

use std::fs;
use std::process::Command;

use crate::common::folder::{Folder, pattern};
use crate::common::matrix::{DEFAULT, USUAL};
use crate::common::protocol::Protocol;
use crate::common::server::Server;
use crate::common::{certificate, matrix};
use crate::program;

#[test]
fn with_64_descriptors_everything_is_served() {
    serve_with_under(64, &USUAL);
}

#[test]
fn with_256_descriptors_everything_is_served() {
    serve_with_under(256, &DEFAULT);
}

#[test]
fn with_1024_descriptors_everything_is_served() {
    serve_with_under(1024, &DEFAULT);
}

#[test]
fn with_4096_descriptors_everything_is_served() {
    serve_with_under(4096, &DEFAULT);
}

/// Under these architectures and another, or all.
fn serve_with_under(descriptors: usize, architectures: &[&'static str]) {
    for architecture in matrix::architectures(&format!("{descriptors} descriptors"), architectures) {
        serve_with(descriptors, architecture, Protocol::Http);
    }
}

/// The other protocols, under the architectures that differ most.
#[test]
fn with_64_descriptors_every_protocol_is_spoken() {
    for architecture in ["auto", "pipeline"] {
        for protocol in [Protocol::Https, Protocol::H2c, Protocol::H2] {
            serve_with(64, architecture, protocol);
        }
    }
}

/// Requests more files than descriptors: small ones, which are kept in memory and open, then large ones, which are
/// only kept open. Then the first ones again, and the application. Then more clients than descriptors connect: the
/// surplus waits for others to leave. Each requests a file of its own, or the application. They come by way of a proxy: a
/// client of its own would have its share, and no more.
fn serve_with(descriptors: usize, architecture: &str, protocol: Protocol) {
    eprintln!("{descriptors} descriptors, {architecture}, {protocol:?}:");
    let folder = Folder::new();
    let files = (descriptors + descriptors / 10).min(FILES_MAX);
    let (small, large) = (pattern(SMALL_BYTES, 1), pattern(LARGE_BYTES, 2));
    for number in 0..files {
        let content = if is_large(number, files) { &large } else { &small };
        folder.write(&format!("{number}"), content);
    }
    let socket = folder.base().join("app.sock");
    program::start(&socket, folder.base(), 2);
    let server = start(folder, descriptors, architecture).over(protocol);
    let expected = |number: usize| if is_large(number, files) { &large } else { &small };

    let mut client = server.agent();
    for number in (0..files).chain(0..files / 4) {
        let response = client.get(&format!("/{number}"));
        assert_eq!(response.status, 200, "/{number}");
        assert!(response.body == *expected(number), "/{number}");
    }
    for transport in ["unix", "shm", "passfd"] {
        assert_eq!(client.ask("GET", &format!("/{transport}/bytes?1000"), "").status, 200, "{transport}");
    }
    drop(client);

    std::thread::scope(|scope| {
        for number in 0..(descriptors + 20).min(CLIENTS_MAX) {
            let server = &server;
            scope.spawn(move || {
                let path = path_of(number, files);
                assert_eq!(server.get(&path).status, 200, "{path}");
            });
        }
    });
    let said = server.said();
    assert!(!said.contains("cannot accept"), "it accepts no more clients than it can serve: {said}");
}

/// The large ones come last, when the small ones have used up the descriptors.
fn is_large(number: usize, files: usize) -> bool {
    number >= files - files / 16
}

/// Every fifth client asks the application.
fn path_of(number: usize, files: usize) -> String {
    match number % 5 {
        0 => "/unix/bytes?200000".to_owned(),
        _ => format!("/{}", number % files),
    }
}

fn start(folder: Folder, descriptors: usize, architecture: &str) -> Server {
    let route = |transport: &str| {
        format!(
            "[[site.route]]\npath = \"/{transport}\"\n[site.route.fastcgi]\nto = \"unix:app.sock\"\n\
             transport = \"{transport}\"\nconnections_max = 2\nqueue_max = 1000\nqueue_ms = 60000\n"
        )
    };
    let routes: String = ["unix", "shm", "passfd"].into_iter().map(route).collect();
    let configuration = format!(
        "[server]\narchitecture = \"{architecture}\"\nprocesses = 2\nthreads = 2\ncontrol_socket = \"control\"\n\
         [[site]]\nlisten = [\"127.0.0.1:0\", \"127.0.0.2:0 tls\"]\nroot = \"root\"\n\
         tls = {{ certificate = \"localhost.pem\", key = \"localhost.key\" }}\n\
         real_ip = {{ from = [\"127.0.0.1\"] }}\n{routes}"
    );
    certificate::install(folder.base());
    fs::write(folder.base().join("baton.toml"), configuration).expect("a configuration");
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n \"$2\"; exec \"$0\" run -c \"$1\"", env!("CARGO_BIN_EXE_baton")]);
    command.arg(folder.base().join("baton.toml")).arg(descriptors.to_string());
    Server::start(folder, command)
}

/// Enough to fill a cache of the usual size.
const FILES_MAX: usize = 1_300;
const CLIENTS_MAX: usize = 400;
/// Kept in memory, and open as well.
const SMALL_BYTES: usize = 6_000;
/// Not kept in memory.
const LARGE_BYTES: usize = 150_000;

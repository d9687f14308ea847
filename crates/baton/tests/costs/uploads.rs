//! Bytes of requests that are copied between server and application.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use baton_lab::copies::Watch;

use crate::common::folder::{Folder, pattern};
use crate::common::server::Server;
use crate::program::Program;

/// 100 MB, as `docs/copies.md` says.
const BODY_BYTES: usize = 100_000_000;

/// Goal: an upload that is streamed, and one that waits in a file, is not copied on the way to the application. Only what the
/// socket takes before the application has said that it looks in place comes as bytes, since the connection is a new one.
#[test]
fn an_upload_is_not_copied_to_the_application() {
    for bodies in ["streamed_bodies_max=2", "streamed_bodies_max=0"] {
        let copied = one_upload("auto", bodies);
        assert!(copied < BODY_BYTES as u64 / 100, "{bodies}: {copied}");
    }
}

/// Goal: without references every byte is copied.
#[test]
fn an_upload_is_copied_by_the_standard_protocol() {
    let copied = one_upload("unix", "streamed_bodies_max=2");
    assert!(copied > BODY_BYTES as u64, "{copied}");
}

/// Bytes that the application receives from the server for an upload, which is not the first one.
fn one_upload(transport: &str, bodies: &str) -> u64 {
    let folder = Folder::new();
    let socket = folder.base().join("application");
    let application = Program::start(&folder, &socket);
    let mounted = format!(
        "/app=unix:{},transport={transport},connections_max=4,body_bytes_max=\"1 GiB\",{bodies}",
        socket.display()
    );
    let server = Server::serve(folder, &["--workers", "1", "--fastcgi", &mounted]);
    let mut client = TcpStream::connect(server.address()).expect("a connection");
    upload(&mut client, 300_000);
    let workers: Vec<i32> = server.workers().iter().map(|worker| worker.as_raw_nonzero().get()).collect();
    let notes = server.folder().base().join("notes");
    // Meanwhile the server's connection, idle, ends.
    let watch = Watch::begin(&workers, &[application.pid().as_raw_nonzero().get()], &notes)
        .expect("strace (scripts/setup-tests installs it)");
    upload(&mut client, BODY_BYTES);
    watch.end().expect("a ledger").requests_to_application
}

/// Sends a body, and expects that the application has seen it.
fn upload(client: &mut TcpStream, bytes: usize) {
    let body = pattern(bytes, 5);
    write!(client, "POST /app?sum={bytes} HTTP/1.1\r\nHost: a\r\nContent-Length: {bytes}\r\n\r\n")
        .expect("sent");
    client.write_all(body).expect("sent");
    let mut received = Vec::new();
    let mut piece = [0; 1 << 12];
    while !received.ends_with(b"whole\n") {
        let count = client.read(&mut piece).expect("a response");
        assert!(count > 0, "{}", String::from_utf8_lossy(&received));
        received.extend_from_slice(&piece[..count]);
    }
    assert!(received.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&received));
}

//! Files that change while they are sent.

use std::fs::{self, File};
use std::io::Write;

use crate::common::agent::{Agent, Body, CutOff};
use crate::common::folder::pattern;
use crate::common::protocol::Protocol;
use crate::common::server::wait_until;
use crate::site::{LARGE, SMALL_BUFFERS, large, small_and_large};
use crate::watched::Watched;

over_each_protocol! {
    a_file_that_shrinks_ends_the_connection,
    a_file_that_is_replaced_is_finished_and_then_seen,
    a_file_that_is_deleted_is_finished,
    a_file_that_grows_sends_what_was_promised,
}

/// Goal: lost bytes of a file are never invented. Method: the file is truncated at a page boundary while its client
/// does not read. The client gets a part of the true bytes, then the end; the server continues and logs why.
fn a_file_that_shrinks_ends_the_connection(architecture: &str, protocol: Protocol) {
    let server = start(architecture, protocol);
    let before = server.sockets();
    let mut client = begin(&server);
    File::options()
        .write(true)
        .open(server.folder().path("large.bin"))
        .unwrap()
        .set_len(KEPT as u64)
        .unwrap();

    let CutOff(body) = client.body().expect_err("some bytes are gone");
    assert!(body == large()[..body.len()], "only true bytes");
    drop(client);

    let line = server.line_of("/large.bin");
    assert_eq!((&line["status"], &line["outcome"]), (&200.into(), &"file-changed".into()));
    // What else than HTTP/1 in clear was sent, the client takes in whole records or frames.
    let sent = line["body_bytes"].as_u64().expect("a number") as usize;
    assert!(
        sent == body.len() || protocol != Protocol::Http && sent > body.len(),
        "{sent} of {}",
        body.len()
    );
    server.wait_until_nothing_is_left(&before);
    wait_until("the new length is seen", || {
        server.agent().ask("HEAD", "/large.bin", "").field("content-length") == Some(&KEPT.to_string())
    });
    assert!(server.get("/large.bin").body == large()[..KEPT], "the file as it is now");
}

/// Goal: a deployment by rename reaches new clients soon and disturbs no transfer. Method: large and small file are
/// replaced while a client is in the midst of the large one.
fn a_file_that_is_replaced_is_finished_and_then_seen(architecture: &str, protocol: Protocol) {
    let server = start(architecture, protocol);
    let mut client = begin(&server);
    let etag = server.agent().ask("HEAD", "/large.bin", "").field("etag").expect("a tag").to_owned();
    assert_eq!(server.get("/small.txt").text(), "small");
    server.folder().replace("large.bin", pattern(LARGE, 2));
    server.folder().replace("small.txt", "fresh");

    let is_new = |path: &str, body: &[u8]| server.get(path).body == body;
    wait_until("the new small file", || is_new("/small.txt", b"fresh"));
    wait_until("the new large file", || is_new("/large.bin", pattern(LARGE, 2)));
    assert_ne!(server.agent().ask("HEAD", "/large.bin", "").field("etag"), Some(&*etag));
    assert!(client.body().as_deref() == Ok(large()), "all of the old file");
}

/// Goal: a deleted file is sent completely. Method: the file is deleted during its transfer.
fn a_file_that_is_deleted_is_finished(architecture: &str, protocol: Protocol) {
    let server = start(architecture, protocol);
    let mut client = begin(&server);
    fs::remove_file(server.folder().path("large.bin")).unwrap();
    wait_until("the file is missing", || server.get("/large.bin").status == 404);
    assert!(client.body().as_deref() == Ok(large()), "all of the file");
    assert_eq!(client.get("/small.txt").text(), "small");
}

/// Goal: a growing log is sent with its initial length. Method: bytes are appended during the transfer; the next
/// response on the connection begins directly after the declared ones.
fn a_file_that_grows_sends_what_was_promised(architecture: &str, protocol: Protocol) {
    let server = start(architecture, protocol);
    let mut client = begin(&server);
    let mut file = File::options().append(true).open(server.folder().path("large.bin")).unwrap();
    file.write_all(b"and more").unwrap();
    assert!(client.body().as_deref() == Ok(large()), "the declared bytes");
    assert_eq!(client.get("/small.txt").text(), "small", "and no byte more");
    assert_eq!(server.line_of("/large.bin")["outcome"], "complete");
    wait_until("the new length is seen", || server.get("/large.bin").body.ends_with(b"and more"));
}

fn start(architecture: &str, protocol: Protocol) -> Watched {
    // A single worker: each has its own caches, and finds a change itself.
    Watched::start_over(protocol, small_and_large(), architecture, &["server.processes=1", SMALL_BUFFERS])
}

/// A client in the middle of the large file: its head has been read, and the kernel holds only a part of the rest.
fn begin(server: &Watched) -> Agent {
    let mut client = server.agent();
    client.begin("GET", "localhost", "/large.bin", "", Body::None);
    assert_eq!(client.head().field("content-length"), Some(&*LARGE.to_string()));
    client
}

/// The rest of the truncated file: more or less than was sent already, but not all.
const KEPT: usize = 1 << 20;

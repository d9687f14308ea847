//! Bytes of responses that are copied between processes and the kernel: the ledger of `docs/copies.md`.

use std::io::{Read, Write};
use std::net::TcpStream;

use baton_lab::copies::{Ledger, Watch};

use crate::program::behind_a_server;

/// Large enough to come in many pieces, and for a named file to be sent from the page cache.
const BODY_BYTES: u64 = 1_000_000;

/// Goal: by the standard protocol every byte is copied three times, and the frames are all that is added.
#[test]
fn the_standard_protocol_copies_three_times() {
    let (ledger, received) = one_response("unix", "/app?1000000");
    let head = "Content-Type: text/plain\r\nContent-Length: 1000000\r\n\r\n".len() as u64;
    let framed = BODY_BYTES + head;
    // A header for each 65,528 bytes, an empty record, and the one that ends the request.
    let frames = 8 * framed.div_ceil(65_528) + 8 + 16;
    assert_eq!(ledger.application_to_kernel, framed + frames);
    assert_eq!(ledger.kernel_to_server, ledger.application_to_kernel);
    assert_eq!((ledger.to_client, ledger.by_reference), (received, 0));
}

/// Goal: through shared memory a byte is copied once, by the server to the client; what crosses the socket to the
/// server are the places where the bytes are.
#[test]
fn shared_memory_copies_once() {
    let (ledger, received) = one_response("shm", "/app?1000000");
    assert_eq!((ledger.to_client, ledger.by_reference), (received, 0));
    assert_eq!(ledger.kernel_to_server, ledger.application_to_kernel);
    // Their number depends on timing.
    assert!(ledger.application_to_kernel < 300, "{ledger:?}");
}

/// Goal: an application with the client's socket copies each byte once, itself. The server gets `ANSWERED` (an 8-byte
/// header, 21 bytes) and `END_REQUEST` (16 bytes); the first answer of a connection says that bodies may come by reference.
#[test]
fn the_clients_own_socket_copies_once() {
    let (ledger, received) = one_response("passfd", "/app?1000000");
    assert_eq!((ledger.to_client, ledger.by_reference), (received, 0));
    assert_eq!(ledger.kernel_to_server, ledger.application_to_kernel);
    assert_eq!(ledger.application_to_kernel, 8 + 21 + 9 + 16);
}

/// Goal: no byte of a named file of any size is copied.
#[test]
fn a_named_file_is_not_copied() {
    for transport in ["unix", "shm"] {
        let (ledger, received) = one_response(transport, "/app?named={base}/named/file.bin");
        assert_eq!(ledger.by_reference, BODY_BYTES, "{transport}");
        assert_eq!(ledger.to_client + ledger.by_reference, received, "{transport}");
        assert!(ledger.copied() < 1_000, "{transport}: {ledger:?}");
    }
}

/// Goal: on a passed socket, a named file goes by `send`, the only call that an application cannot make wait. The
/// application only names the file.
#[test]
fn a_named_file_is_sent_from_memory_on_a_socket_that_was_passed() {
    let (ledger, received) = one_response("passfd", "/app?named={base}/named/file.bin");
    assert_eq!((ledger.to_client, ledger.by_reference), (received, 0));
    assert_eq!(ledger.kernel_to_server, ledger.application_to_kernel);
    assert!(ledger.application_to_kernel < 300, "{ledger:?}");
}

/// The ledger of one response, and how many bytes the client got. The response is not the first one: how connections
/// come about is no part of it.
fn one_response(transport: &str, path: &str) -> (Ledger, u64) {
    let (server, application, path) = behind_a_server(transport, path, BODY_BYTES as usize, "measured");
    let mut client = TcpStream::connect(server.address()).expect("a connection");
    for _ in 0..3 {
        exchange(&mut client, &path);
    }
    let workers: Vec<i32> = server.workers().iter().map(|worker| worker.as_raw_nonzero().get()).collect();
    let notes = server.folder().base().join("notes");
    let watch = Watch::begin(&workers, &[application.pid().as_raw_nonzero().get()], &notes)
        .expect("strace (scripts/setup-tests installs it)");
    let received = exchange(&mut client, &path);
    (watch.end().expect("a ledger"), received)
}

/// Asks, reads the whole response, and says how long it was, head and all.
fn exchange(client: &mut TcpStream, path: &str) -> u64 {
    write!(client, "GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    let mut received = Vec::new();
    let mut piece = vec![0; 1 << 16];
    loop {
        let count = client.read(&mut piece).expect("a response");
        assert!(count > 0, "the response ended after {} bytes", received.len());
        received.extend_from_slice(&piece[..count]);
        let head = memchr::memmem::find(&received, b"\r\n\r\n").map(|at| at + 4);
        if head.is_some_and(|head| received.len() as u64 == head as u64 + BODY_BYTES) {
            assert!(received.starts_with(b"HTTP/1.1 200 "));
            return received.len() as u64;
        }
    }
}

//! Clients that ask without end for what takes the server long, beside a modest one at another address.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustls::{ClientConnection, StreamOwned};

use crate::common::protocol::Protocol;
use crate::common::server::{Server, wait_until};
use crate::common::{certificate, matrix};
use crate::greedy::{greedy, serve, serve_modest_client, start};
use crate::origin::Origin;

/// What a greedy client does again and again, on several connections at the same time. `Some`: the server took part in it.
type Abuse = fn(&Server, usize) -> Option<()>;

const ABUSES: [(&str, Abuse); 6] = [
    ("listings of a large folder", listings),
    ("files that are compressed anew", files),
    ("answers that are compressed", answers),
    ("cached objects that are compressed", objects),
    ("handshakes", handshakes),
    ("connections", connections),
];

/// Goal: whatever work a client at one address causes, one at another address is served at once. Method: the greedy client goes
/// on until the other has been served several times.
fn endless_work_keeps_no_other_waiting(architecture: &str) {
    let server = start(architecture, &Origin::start(serve), 100);
    for entry in 0..matrix::size(ENTRIES[0], ENTRIES[1]) {
        server.folder().write(&format!("many/{entry}"), "");
    }
    let text = "some words of a text. ".repeat(FILE_BYTES / 22);
    for file in 0..FILES {
        server.folder().write(&format!("{file}.txt"), format!("{file} {text}"));
    }
    for (what, abuse) in ABUSES {
        let (is_over, done) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for number in 0..CONNECTIONS {
                let (server, is_over, done) = (&server, &is_over, &done);
                scope.spawn(move || {
                    let mut turn = number;
                    while !is_over.load(Ordering::Relaxed) {
                        done.fetch_add(usize::from(abuse(server, turn).is_some()), Ordering::Relaxed);
                        turn += CONNECTIONS;
                    }
                });
            }
            let _end = AtEnd(&is_over);
            wait_until(&format!("{what} are under way"), || done.load(Ordering::Relaxed) > 0);
            (0..3).for_each(|_| serve_modest_client(&server, what));
        });
    }
}

crate::architectures::under_two_architectures! { by name: endless_work_keeps_no_other_waiting }

/// Ends the abuse even if the test fails.
struct AtEnd<'a>(&'a AtomicBool);

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A hundred listings over one connection of HTTP/2, of which the client takes none.
fn listings(server: &Server, _turn: usize) -> Option<()> {
    let mut request = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\0".to_vec();
    for stream in 0..100_u8 {
        request.extend_from_slice(b"\0\0\x37\x01\x05\0\0\0");
        request.push(2 * stream + 1);
        request.extend_from_slice(
            b"\0\x07:method\x03GET\0\x07:scheme\x04http\0\x0a:authority\x01a\0\x05:path\x06/many/",
        );
    }
    let mut client = clear(server);
    client.write_all(&request).ok()?;
    // Settings, an acknowledgement, and the head of a response.
    client.read_exact(&mut [0; 120]).ok()
}

fn files(server: &Server, turn: usize) -> Option<()> {
    fetch(server, &format!("/{}.txt", turn % FILES))
}

fn answers(server: &Server, _turn: usize) -> Option<()> {
    fetch(server, "/app/large")
}

fn objects(server: &Server, _turn: usize) -> Option<()> {
    fetch(server, "/cached/large")
}

fn handshakes(server: &Server, _turn: usize) -> Option<()> {
    let tcp = greedy(&server.over(Protocol::Https), "");
    let tls = ClientConnection::new(certificate::trusting(Protocol::Https), certificate::name()).ok()?;
    let mut client = StreamOwned::new(tls, tcp);
    client.conn.complete_io(&mut client.sock).ok().map(drop)
}

fn connections(server: &Server, _turn: usize) -> Option<()> {
    drop(clear(server));
    Some(())
}

/// Takes a whole response, compressed.
fn fetch(server: &Server, path: &str) -> Option<()> {
    let mut client = clear(server);
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: br\r\nConnection: close\r\n\r\n");
    client.write_all(request.as_bytes()).ok()?;
    let mut response = Vec::new();
    client.read_to_end(&mut response).ok()?;
    response.starts_with(b"HTTP/1.1 200").then_some(())
}

fn clear(server: &Server) -> TcpStream {
    greedy(&server.over(Protocol::Http), "")
}

/// At the same time: fewer than a share, so that none is refused.
const CONNECTIONS: usize = 16;

/// At full size, more than a listing shows.
const ENTRIES: [usize; 2] = [2_000, 20_000];

/// Together more than what the server keeps in memory.
const FILES: usize = 64;
const FILE_BYTES: usize = 1 << 20;

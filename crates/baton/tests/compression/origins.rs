//! An origin whose answers the server may compress.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Condvar, LazyLock, Mutex, PoisonError};

use crate::common::folder::pattern;
use crate::common::server::PATIENCE;
use crate::origin::{Origin, Peer};
use crate::site::{PAGE_BYTES, text};

static ORIGIN: LazyLock<Origin> = LazyLock::new(|| Origin::start(serve));

/// What tests have told the origin, by name.
static TOLD: LazyLock<(Mutex<HashSet<String>>, Condvar)> = LazyLock::new(Default::default);

pub(crate) fn address() -> SocketAddr {
    ORIGIN.address()
}

/// How many requests the origin has got for this path.
pub(crate) fn asked(path: &str) -> usize {
    ORIGIN.seen(path).len()
}

/// Tells the origin, or the test, that something has happened.
pub(crate) fn tell(what: &str) {
    TOLD.0.lock().unwrap_or_else(PoisonError::into_inner).insert(what.to_owned());
    TOLD.1.notify_all();
}

/// Waits until that was told.
pub(crate) fn wait_until_told(what: &str) {
    let told = TOLD.0.lock().unwrap_or_else(PoisonError::into_inner);
    let (_told, timeout) =
        TOLD.1.wait_timeout_while(told, PATIENCE, |told| !told.contains(what)).expect("no panic");
    assert!(!timeout.timed_out(), "nothing has told {what}");
}

/// Bytes of the stream of `/zeros`.
pub(crate) const ZEROS: usize = 64 << 20;

/// The first part of a stream with a pause: more than encoders hold back, and not a multiple of anything.
pub(crate) const BEFORE_PAUSE: usize = 70_001;

fn serve(peer: &mut Peer) {
    while let Some(seen) = peer.request() {
        let path = seen.path().to_owned();
        let (path, query) = path.split_once('?').unwrap_or((&path, ""));
        let name = path.rsplit('/').next().unwrap_or_default();
        match name {
            "page" => peer.answer(
                "Content-Type: text/html\r\nETag: \"p\"\r\nVary: Cookie\r\nAccept-Ranges: bytes\r\n\
                 Cache-Control: max-age=600\r\nContent-Digest: sha-256=:x:\r\n",
                text(PAGE_BYTES),
            ),
            "weak" => peer.answer(
                "Content-Type: text/html\r\nETag: W/\"w\"\r\nVary: accept-encoding, Cookie\r\n",
                text(5_000),
            ),
            "kept" => peer.answer("Content-Type: text/html\r\nCache-Control: max-age=600\r\n", text(100_000)),
            "small" => peer.answer("Content-Type: text/html\r\n", text(500)),
            "typeless" => peer.answer("", text(5_000)),
            "picture" => peer.answer("Content-Type: image/png\r\n", text(5_000)),
            "coded" => peer.answer("Content-Type: text/css\r\nContent-Encoding: br\r\n", text(5_000)),
            "final" => {
                peer.answer(
                    "Content-Type: text/css\r\nCache-Control: private, No-Transform\r\n",
                    text(5_000),
                );
            }
            "part" => peer.send(
                "HTTP/1.1 206 Partial Content\r\nContent-Type: text/css\r\nContent-Range: bytes 0-2047/9000\r\n\
                 Content-Length: 2048\r\n\r\n"
                    .to_owned()
                    + &"x".repeat(2048),
            ),
            "same" => peer.send("HTTP/1.1 304 Not Modified\r\nETag: \"p\"\r\n\r\n"),
            "none" => peer.send("HTTP/1.1 204 No Content\r\nContent-Type: text/html\r\n\r\n"),
            "head" => peer.send("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5000\r\n\r\n"),
            "chunks" => {
                peer.send("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n");
                text(300_000).chunks(7_777).for_each(|part| chunk(peer, part));
                peer.send("0\r\n\r\n");
            }
            "chunks-of-text" => {
                peer.send("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n");
                text(200_000).chunks(7_777).for_each(|part| chunk(peer, part));
                peer.send("0\r\n\r\n");
            }
            "long-pause" => {
                let all = text(300_000);
                peer.send("HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n");
                peer.send(&all[..BEFORE_PAUSE]);
                wait_until_told(query);
                peer.send(&all[BEFORE_PAUSE..]);
            }
            "pause" | "events" => {
                let media_type = if name == "pause" { "text/html" } else { "text/event-stream" };
                peer.send(format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nTransfer-Encoding: chunked\r\n\r\n"
                ));
                let all = text(2 * BEFORE_PAUSE);
                chunk(peer, &all[..BEFORE_PAUSE]);
                wait_until_told(query);
                chunk(peer, &all[BEFORE_PAUSE..]);
                peer.send("0\r\n\r\n");
            }
            "short" => {
                peer.send("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 300000\r\n\r\n");
                peer.send(text(150_000));
                return;
            }
            "broken" => {
                peer.send("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n");
                chunk(peer, &text(150_000));
                return;
            }
            "zeros" => {
                peer.send(format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {ZEROS}\r\n\r\n"
                ));
                let zeros = vec![b'0'; 1 << 20];
                (0..ZEROS >> 20).for_each(|_| peer.send(&zeros));
            }
            "endless" => {
                peer.send("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n");
                // A client that takes none of it soon stops the origin.
                let mut parts = noise().chunks_exact(50_000).cycle();
                while peer.try_send(&[b"c350\r\n", parts.next().expect("no end"), b"\r\n"].concat()) {}
                tell(query);
                return;
            }
            other => panic!("{other}"),
        }
    }
}

/// Text that hardly compresses: it repeats itself beyond what encoders look back.
fn noise() -> &'static [u8] {
    static NOISE: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let letter = |byte: &u8| LETTERS[usize::from(*byte) % LETTERS.len()];
        pattern(NOISE_BYTES, 4).iter().map(letter).collect()
    });
    &NOISE
}

const NOISE_BYTES: usize = 8 << 20;
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn chunk(peer: &mut Peer, bytes: &[u8]) {
    peer.send([format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat());
}

//! Bodies in the server's pool or in a file of the server's.

#[path = "rig/bodies.rs"]
mod bodies;
mod rig;

use std::io::{BufRead, Read, Seek, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;

use baton_pool::{CHUNK_BYTES, ChunkPool};
use bodies::{as_bytes, end, in_file, in_pool};
use rig::{Reply, Server, application, text};

/// An application that sends the body back, and before it how much of it came in each piece.
fn mirror() -> (tempfile::TempDir, PathBuf) {
    application(|request| {
        let mut body = Vec::new();
        while let Ok(part) = request.fill_buf()
            && !part.is_empty()
        {
            body.extend_from_slice(part);
            let len = part.len();
            request.consume(len);
        }
        request.write_all(&body).unwrap();
    })
}

fn offer(pool: &ChunkPool) -> String {
    format!("unknown fds=1 pool={} patience=0\n", pool.len())
}

/// Goal: a server that does not ask is told nothing: it may not know the record.
#[test]
fn only_a_server_that_asks_is_told() {
    let (_dir, path) = mirror();
    let mut server = Server::connect(&path);
    for (offer, told) in [("unknown fds=0\n", false), ("unknown fds=0 bodies=1\n", true)] {
        server.lend(offer, &[], &[], &end());
        let reply = server.reply();
        assert_eq!((reply.takes_bodies, reply.end), (told, Some(0)));
    }
}

/// Goal: pieces in records, in the pool and in a file make one body, in their order. The pool stays for later requests.
#[test]
fn pieces_of_all_kinds_make_one_body() {
    let (_dir, path) = mirror();
    let mut server = Server::connect(&path);
    let pool = ChunkPool::create(2).unwrap();
    let mut chunk = pool.take().unwrap();
    chunk.copy_from_slice(&text(CHUNK_BYTES));
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&text(100_000)).unwrap();
    file.rewind().unwrap();
    let in_memory = in_pool(&chunk, CHUNK_BYTES);
    let body = [as_bytes(b"first"), in_memory, in_file(10, 99_990), as_bytes(b"last"), end()].concat();
    let offer = format!("unknown fds=2 pool={} file=1\n", pool.len());
    server.lend(&offer, &[], &[pool.as_fd(), file.as_fd()], &body);
    let expected = [&b"first"[..], &text(CHUNK_BYTES), &text(100_000)[10..], b"last"].concat();
    assert!(server.reply().stdout == expected);

    chunk[..3].copy_from_slice(b"new");
    server.lend("unknown fds=0\n", &[], &[], &[in_pool(&chunk, 3), end()].concat());
    assert_eq!(server.reply().stdout, b"new");
}

/// Goal: what the application has finished with is returned before the body ends, so that a server with little to lend
/// goes on.
#[test]
fn pieces_are_returned_while_the_body_goes_on() {
    let (_dir, path) = mirror();
    let mut server = Server::connect(&path);
    let pool = ChunkPool::create(4).unwrap();
    let chunks: Vec<_> = std::iter::from_fn(|| pool.take()).collect();
    let body: Vec<u8> = chunks.iter().flat_map(|chunk| in_pool(chunk, CHUNK_BYTES)).collect();
    server.lend(&offer(&pool), &[], &[pool.as_fd()], &body);
    let mut reply = Reply::default();
    server.collect(&mut reply, |reply| reply.freed > 0);
    assert!(reply.freed as usize >= 2 * CHUNK_BYTES && reply.freed as usize <= 4 * CHUNK_BYTES, "{reply:?}");
    server.socket.write_all(&end()).unwrap();
    server.collect(&mut reply, |reply| reply.end.is_some());
    assert_eq!(reply.stdout.len(), 4 * CHUNK_BYTES);
}

/// Goal: places outside what was lent are an error of the server's, and the process lives. Method: each on a connection
/// of its own, which the application closes.
#[test]
fn places_that_were_not_lent_are_refused() {
    let (_dir, path) = application(|request| {
        let mut body = Vec::new();
        let read = request.read_to_end(&mut body);
        write!(request, "{}", read.is_ok()).unwrap();
    });
    let pool = ChunkPool::create(1).unwrap();
    let chunk = pool.take().unwrap();
    let file = tempfile::tempfile().unwrap();
    file.set_len(100).unwrap();
    let pooled = offer(&pool);
    let too_large = format!("unknown fds=1 pool={}\n", pool.len() + 1);
    let pool = pool.as_fd();
    for (offer, passed, body) in [
        (&pooled[..], &[pool][..], in_pool(&chunk, CHUNK_BYTES + 1)),
        (&pooled, &[pool], in_pool(&chunk, 0)),
        ("unknown fds=0\n", &[], in_pool(&chunk, 1)),
        (&too_large, &[pool], in_pool(&chunk, 1)),
        ("unknown fds=1 file=1\n", &[file.as_fd()], in_file(1, 100)),
        ("unknown fds=1 file=1\n", &[file.as_fd()], in_file(u64::MAX, 2)),
        ("unknown fds=1 file=1\n", &[file.as_fd()], in_file(0, 0)),
        ("unknown fds=0\n", &[], in_file(0, 1)),
        // It may shrink, and access beyond its end would kill the process.
        ("unknown fds=1 pool=100\n", &[file.as_fd()], in_pool(&chunk, 1)),
        // The descriptor has not come.
        ("unknown fds=1 pool=65536\n", &[], in_pool(&chunk, 1)),
    ] {
        let mut server = Server::connect(&path);
        server.lend(offer, &[], passed, &[body, end()].concat());
        assert_eq!(server.reply().stdout, b"false", "{offer}");
        // Until the application has closed the connection.
        server.collect(&mut Reply::default(), |_| false);
    }
    let mut server = Server::connect(&path);
    server.ask(&[], b"x");
    assert_eq!(server.reply().stdout, b"true");
}

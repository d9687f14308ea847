//! Bodies that the server lends: each function reads them, and `fcgi_in_place.h` gives pointers into the server's memory.

use std::io::Write as _;
use std::os::fd::AsFd as _;

use baton_pool::{CHUNK_BYTES, ChunkPool};

use crate::bodies::{as_bytes, end, in_file, in_pool};
use crate::program::{Library, Program};
use crate::rig::{Reply, Server, text};

/// What a program answers to a query, behind the head.
fn answer(server: &mut Server) -> String {
    let reply = server.reply();
    assert_eq!(reply.end, Some(0));
    let stdout = String::from_utf8(reply.stdout).expect("text");
    stdout.split_once("\r\n\r\n").expect("a head").1.to_owned()
}

/// Goal: pieces in records, in the pool and in a file make one body, whichever functions read it. Method: two requests with each on a
/// connection, of which the pool comes with the first.
#[test]
fn pieces_of_all_kinds_make_one_body() {
    for query in ["g", "v"] {
        let program = Program::of("streams", &[], Library::Ours);
        let mut server = program.connect();
        let pool = ChunkPool::create(2).unwrap();
        let mut chunk = pool.take().unwrap();
        chunk.copy_from_slice(&text(CHUNK_BYTES));
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&text(100_000)).unwrap();
        let in_memory = in_pool(&chunk, CHUNK_BYTES);
        let body = [as_bytes(b"first"), in_memory, in_file(10, 99_990), as_bytes(b"last"), end()].concat();
        let expected = [&b"first"[..], &text(CHUNK_BYTES), &text(100_000)[10..], b"last"].concat();
        for with_pool in [true, false] {
            let offer =
                if with_pool { format!("fds=2 pool={} file=1", pool.len()) } else { "fds=1 file=1".into() };
            let passed = [pool.as_fd(), file.as_fd()];
            let passed = &passed[usize::from(!with_pool)..];
            server.lend(&format!("unknown {offer}\n"), &[("QUERY_STRING", query)], passed, &body);
            let got = answer(&mut server);
            let (got, end) = got.rsplit_once("\nend ").expect("its last line");
            assert!(got.as_bytes() == expected, "{query}: {} bytes", got.len());
            assert_eq!(end, "-1, error 0", "{query}");
        }
    }
}

/// Goal: the program looks into the server's memory, where no function writes for it, and into its own for what came as bytes.
/// Method: it tries to put another byte back at the end of each window.
#[test]
fn nothing_is_written_to_what_is_lent() {
    let program = Program::of("streams", &[], Library::Ours);
    let mut server = program.connect();
    let pool = ChunkPool::create(1).unwrap();
    let chunk = pool.take().unwrap();
    let offer = format!("unknown fds=1 pool={}\n", pool.len());
    for (offer, passed, body, refused) in [
        (&offer[..], &[pool.as_fd()][..], in_pool(&chunk, CHUNK_BYTES), true),
        ("unknown fds=0\n", &[], as_bytes(&text(20_000)), false),
    ] {
        server.lend(offer, &[("QUERY_STRING", "v1")], passed, &[body, end()].concat());
        let got = answer(&mut server);
        let (tried, said) =
            got.rsplit_once("\nrefused ").expect("its last line").1.split_once(" of ").unwrap();
        assert_ne!(said, "0");
        assert_eq!(tried, if refused { said } else { "0" });
    }
    assert!(chunk.iter().all(|byte| *byte == 0));
}

/// Goal: a place that was not lent ends the request, and neither the program nor its next request.
#[test]
fn places_that_were_not_lent_are_refused() {
    let program = Program::of("streams", &[], Library::Ours);
    let pool = ChunkPool::create(1).unwrap();
    let chunk = pool.take().unwrap();
    let offer = format!("unknown fds=1 pool={}\n", pool.len());
    for query in ["g", "v"] {
        let mut server = program.connect();
        let body = [in_pool(&chunk, CHUNK_BYTES + 1), end()].concat();
        server.lend(&offer, &[("QUERY_STRING", query)], &[pool.as_fd()], &body);
        let got = answer(&mut server);
        assert_eq!(got, "\nend -1, error -3", "{query}");
        // Until the program has closed the connection.
        server.collect(&mut Reply::default(), |_| false);
    }
    let mut server = program.connect();
    server.ask(&[("QUERY_STRING", "v")], b"whole");
    assert_eq!(answer(&mut server), "whole\nend -1, error 0");
}

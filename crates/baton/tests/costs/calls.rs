//! System calls per request.

use std::collections::BTreeMap;

use crate::common::client::Client;
use crate::common::folder::{Folder, pattern};
use crate::common::server::{Server, wait_until};
use crate::document::compare;
use crate::trace::Trace;
use crate::usual::{by_request, usual};

/// Goal: the table of the document is true of the default architecture. Method: a worker is traced while a client
/// repeats each situation; the sequence of calls from one request to the next is compared.
#[test]
fn auto_makes_the_calls_of_the_document() {
    compare_with_document("auto");
}

/// The same without helpers and without tuning: a hit costs the same calls.
#[test]
fn sped_makes_the_calls_of_the_document() {
    compare_with_document("sped");
}

/// Goal: a server with an application's file cache never uses `sendfile`, for files of any size, in memory or not;
/// the same server without one does. Method: often enough for every path to be tried.
#[test]
fn threads_cache_goes_without_sendfile() {
    for (architecture, expected) in [("threads-cache", false), ("threads", true)] {
        let folder = Folder::new();
        folder.write("medium.bin", pattern(100_000, 1)).write("large.bin", pattern(1_000_000, 2));
        folder.write("larger.bin", pattern(6_000_000, 3));
        let limit = "cache.memory_bytes_max=4000000";
        let server =
            Server::serve(folder, &["--architecture", architecture, "--workers", "1", "--set", limit]);
        let trace = Trace::attach(server.workers()[0], &server.folder().base().join("trace"));
        let mut client = server.connect();
        for (path, len, seed) in
            [("/medium.bin", 100_000, 1), ("/large.bin", 1_000_000, 2), ("/larger.bin", 6_000_000, 3)]
        {
            for _ in 0..40 {
                assert!(client.get(path).body == pattern(len, seed), "{path}");
            }
        }
        let used = trace.calls().iter().any(|call| call.name == "sendfile");
        assert_eq!(used, expected, "{architecture}");
    }
}

/// A situation on a kept connection: the client's repeated bytes, and their number of responses.
struct Kept {
    name: &'static str,
    request: &'static str,
    at_once: usize,
}

const KEPT: [Kept; 11] = [
    Kept { name: "1 KB, kept alive", request: "GET /small.txt HTTP/1.1\r\nHost: a\r\n\r\n", at_once: 1 },
    Kept {
        name: "1 KB, sixteen requests pipelined",
        request: "GET /small.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        at_once: 16,
    },
    Kept { name: "HEAD", request: "HEAD /small.txt HTTP/1.1\r\nHost: a\r\n\r\n", at_once: 1 },
    Kept {
        name: "conditional: 304",
        request: "GET /small.txt HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\n\r\n",
        at_once: 1,
    },
    Kept { name: "missing: 404", request: "GET /none HTTP/1.1\r\nHost: a\r\n\r\n", at_once: 1 },
    Kept { name: "100 KB, from memory", request: "GET /medium.bin HTTP/1.1\r\nHost: a\r\n\r\n", at_once: 1 },
    Kept {
        name: "100 KB of text, compressed, from memory",
        request: "GET /medium.txt HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n",
        at_once: 1,
    },
    Kept {
        name: "range of at most 4 KB, from memory",
        request: "GET /medium.bin HTTP/1.1\r\nHost: a\r\nRange: bytes=5-4100\r\n\r\n",
        at_once: 1,
    },
    Kept {
        name: "longer range, from memory",
        request: "GET /medium.bin HTTP/1.1\r\nHost: a\r\nRange: bytes=5-4101\r\n\r\n",
        at_once: 1,
    },
    Kept {
        name: "1 MB, from the page cache",
        request: "GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n",
        at_once: 1,
    },
    // The beginning of this file is never requested: residency of its middle must be enough.
    Kept {
        name: "range, from the page cache",
        request: "GET /ranged.bin HTTP/1.1\r\nHost: a\r\nRange: bytes=500000-500999\r\n\r\n",
        at_once: 1,
    },
];

const OTHER_WAY: Kept = Kept {
    name: "range of a file in memory, from the page cache",
    request: "GET /medium.bin HTTP/1.1\r\nHost: a\r\nRange: bytes=50000-89999\r\n\r\n",
    at_once: 1,
};

fn compare_with_document(architecture: &str) {
    let mut counted = BTreeMap::new();
    let mut count = |name: &str, sequences| {
        counted.insert(name.to_owned(), usual(sequences));
    };

    let server = start(architecture, "cache.revalidate_ms=1000");
    let mut client = server.connect();
    for kept in &KEPT {
        exchange(&mut client, kept);
    }
    let trace = Trace::attach(server.workers()[0], &server.folder().base().join("trace"));
    for kept in &KEPT {
        count(kept.name, repeated(&mut client, kept, &trace));
    }
    count("1 KB, closed", closed(&server, &trace));
    count("a connection that is kept, and its end", kept_and_ended(&server, &trace));

    // Here every request revalidates, like the first one of a second elsewhere.
    let server = start(architecture, "cache.revalidate_ms=0");
    let mut client = server.connect();
    exchange(&mut client, &KEPT[0]);
    let trace = Trace::attach(server.workers()[0], &server.folder().base().join("trace"));
    count("1 KB, the first request for it in a second", repeated(&mut client, &KEPT[0], &trace));

    // A file in memory, sent by the other path.
    let server = start(architecture, "send.way=sendfile");
    let mut client = server.connect();
    exchange(&mut client, &OTHER_WAY);
    let trace = Trace::attach(server.workers()[0], &server.folder().base().join("trace"));
    count(OTHER_WAY.name, repeated(&mut client, &OTHER_WAY, &trace));

    compare("System calls", architecture, &counted);
}

/// A server with a single worker, and files of three sizes.
fn start(architecture: &str, setting: &str) -> Server {
    let folder = Folder::new();
    folder.write("small.txt", [b's'; 1000]);
    folder.write("medium.bin", pattern(100_000, 1)).write("large.bin", pattern(1_000_000, 2));
    folder.write("medium.txt", "All work and no play. ".repeat(4_600));
    folder.write("ranged.bin", pattern(1_000_000, 3));
    let mut flags = vec!["--architecture", architecture, "--workers", "1"];
    // Otherwise the path of a file is measured, and may change while the calls are counted.
    for setting in ["send.way=memory", "cache.memory_hot_file_bytes_max=0", setting] {
        flags.extend(["--set", setting]);
    }
    Server::serve(folder, &flags)
}

/// The same exchange repeatedly on one connection.
fn repeated(client: &mut Client, kept: &Kept, trace: &Trace) -> Vec<Vec<String>> {
    let begin = trace.calls().len();
    for _ in 0..ROUNDS {
        exchange(client, kept);
    }
    by_request(&trace.calls()[begin..])
}

fn exchange(client: &mut Client, kept: &Kept) {
    let method = kept.request.split(' ').next().expect("a method");
    client.send(kept.request.repeat(kept.at_once));
    for _ in 0..kept.at_once {
        client.response_to(method);
    }
}

/// A connection for each request.
fn closed(server: &Server, trace: &Trace) -> Vec<Vec<String>> {
    let begin = trace.calls().len();
    for round in 0..ROUNDS {
        let mut client = server.connect();
        client.ask("GET", "/small.txt", "Connection: close\r\n");
        client.expect_end();
        // Only then has the worker finished with the connection; the next one must find it asleep.
        wait_until("the worker looks for the next client", || vain_accepts(trace, begin) > round);
    }
    by_request(&trace.calls()[begin..])
}

/// A connection that is kept after its first request, and then closed by the client.
fn kept_and_ended(server: &Server, trace: &Trace) -> Vec<Vec<String>> {
    let begin = trace.calls().len();
    for round in 0..ROUNDS {
        let mut client = server.connect();
        client.get("/small.txt");
        // The worker must sleep again, so that request and end are two events.
        wait_until("the worker looks for the next client", || vain_accepts(trace, begin) > round);
        wait_until("the worker has looked at the new connection", || {
            trace.calls().last().is_some_and(|call| call.name == "epoll_wait")
        });
        let closes = || trace.calls()[begin..].iter().filter(|call| call.name == "close").count();
        let before = closes();
        drop(client);
        wait_until("the worker closes the connection", || closes() > before);
    }
    by_request(&trace.calls()[begin..])
}

fn vain_accepts(trace: &Trace, begin: usize) -> usize {
    trace.calls()[begin..].iter().filter(|call| call.accepts_nobody()).count()
}

/// How often each situation is caused.
const ROUNDS: usize = 25;

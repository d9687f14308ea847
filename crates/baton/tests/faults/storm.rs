//! One log line for each request, with any outcome: none is missing, none counted twice.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::Value;

use crate::common::agent::{Agent, Body};
use crate::common::client::Client;
use crate::common::protocol::Protocol;
use crate::common::server::wait_until;
use crate::peer::{Farewell, leave};
use crate::site::{LARGE, SMALL_BUFFERS, small_and_large};
use crate::watched::Watched;

over_each_protocol! { every_request_has_one_line }

/// Status and outcome in the log of a request.
type End = (u64, &'static str);

/// Goal: the log is complete. Method: clients send good, bad and abandoned requests in all mixtures at the same time,
/// each with a name of its own; the log then has exactly one line for each name, with its outcome; and the counters
/// agree.
fn every_request_has_one_line(architecture: &str, protocol: Protocol) {
    let server = Watched::start_over(protocol, small_and_large(), architecture, &[SMALL_BUFFERS]);
    let address = server.server().address();

    let mut expected: BTreeMap<String, End> = BTreeMap::new();
    std::thread::scope(|scope| {
        let clients: Vec<_> =
            (0..CLIENTS).map(|client| scope.spawn(move || rage(address, protocol, client))).collect();
        for client in clients {
            expected.extend(client.join().expect("a client"));
        }
    });
    wait_until("a line for each", || server.lines().len() >= expected.len());
    wait_until("no connection is open", || server.metric("baton_connections_open") == 0);

    let lines = server.lines();
    let mut logged: BTreeMap<String, End> = BTreeMap::new();
    for line in &lines {
        let (name, end) = (name_of(line), end_of(line));
        assert_eq!(logged.insert(name, end), None, "a second line: {line}");
    }
    assert_eq!(logged, expected);
    for outcome in ["complete", "client-gone", "refused", "timed-out", "file-changed", "failed", "stopped"] {
        let count = logged.values().filter(|(_, logged)| *logged == outcome).count();
        wait_until(&format!("{count} {outcome}"), || server.ended(outcome) == count as u64);
    }
}

/// All that one client does; the names of its requests and how they must end.
fn rage(address: SocketAddr, protocol: Protocol, client: usize) -> Vec<(String, End)> {
    let mut expected = Vec::new();
    for round in 0..ROUNDS {
        let mut name = |kind: &str, end: End| {
            let name = format!("{kind}-{client}-{round}");
            expected.push((name.clone(), end));
            name
        };
        let agent = || Agent::connect(address, protocol);
        let mut kept = agent();
        assert_eq!(kept.get(&format!("/small.txt?{}", name("good", (200, "complete")))).status, 200);
        assert_eq!(kept.get(&format!("/{}", name("missing", (404, "complete")))).status, 404);
        let known = format!("/small.txt?{}", name("known", (304, "complete")));
        assert_eq!(kept.ask("GET", &known, "If-None-Match: *\r\n").status, 304);
        let part = format!("/large.bin?{}", name("part", (206, "complete")));
        assert_eq!(kept.ask("GET", &part, "Range: bytes=5-9\r\n").status, 206);
        let brew = format!("/small.txt?{}", name("brew", (501, "complete")));
        assert_eq!(kept.ask("BREW", &brew, "").status, 501);

        if !protocol.is_http2() {
            by_bytes(|| Client::connect_over(address, protocol), &mut name);
        }

        let mut abandoned = agent();
        let path = format!("/large.bin?{}", name("abandoned", (200, "client-gone")));
        abandoned.begin("GET", "localhost", &path, "", Body::None);
        abandoned.head();
        abandoned.at_least(100);
        // The option belongs to the socket, of which the client has the last descriptor.
        leave(abandoned.tcp().try_clone().expect("a descriptor"), Farewell::Reset);
        drop(abandoned);

        let large = format!("/large.bin?{}", name("large", (200, "complete")));
        assert_eq!(agent().get(&large).body.len(), LARGE);
    }
    expected
}

/// What is done with the bytes of HTTP/1: requests in one piece, a bad one, and parts.
fn by_bytes(connect: impl Fn() -> Client, name: &mut impl FnMut(&str, End) -> String) {
    let send = |bytes: String| {
        let mut client = connect();
        client.send(bytes);
        client
    };
    let batch: String = (0..10)
        .map(|n| get(&format!("/small.txt?{}", name(&format!("batch{n}"), (200, "complete")))))
        .collect();
    let mut batch = send(batch);
    for _ in 0..10 {
        assert_eq!(batch.response().status, 200);
    }

    let bad = format!("GET /small.txt?{} HTTP/1.1\r\n\r\n", name("bad", (400, "refused")));
    let good_then_bad = get(&format!("/small.txt?{}", name("before", (200, "complete")))) + &bad;
    let bytes = send(good_then_bad).until_the_end();
    assert!(String::from_utf8_lossy(&bytes).contains("HTTP/1.1 400 "));

    // Cut off in the head and in a body that the answer does not wait for, after a request that was not.
    let in_the_head = ("X: y", (400, "client-gone"));
    let in_the_body = ("Content-Length: 9\r\n\r\nfirst", (200, "complete"));
    for (cut_off, end) in [in_the_head, in_the_body] {
        let whole =
            get(&format!("/small.txt?{}", name(&format!("whole{}", cut_off.len()), (200, "complete"))));
        let part = name(&format!("part{}", cut_off.len()), end);
        let part = format!("GET /small.txt?{part} HTTP/1.1\r\nHost: a\r\n{cut_off}");
        let mut client = send(whole + &part);
        client.take(100);
        drop(client);
    }
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
}

/// The name in a line such as `GET /small.txt?good-1-1 HTTP/1.1`.
fn name_of(line: &Value) -> String {
    let target = line["request"].as_str().and_then(|text| text.split(' ').nth(1)).unwrap_or_default();
    target.rsplit(['/', '?']).next().unwrap_or_default().to_owned()
}

fn end_of(line: &Value) -> End {
    let outcome = line["outcome"].as_str().expect("an outcome");
    let known = ["complete", "client-gone", "refused"].into_iter().find(|known| *known == outcome);
    (line["status"].as_u64().expect("a status"), known.unwrap_or("something else"))
}

const CLIENTS: usize = 4;
const ROUNDS: usize = 5;

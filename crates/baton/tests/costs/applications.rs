//! System calls per response of an application, of the server and of the application itself.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::common::client::Client;
use crate::common::folder::{Folder, pattern};
use crate::common::server::{Server, wait_until};
use crate::document::compare;
use crate::program::behind_a_server;
use crate::trace::{Call, Trace};
use crate::usual::usual;

/// Goal: the table of the document is true of server and application, by every transport. Method: both are traced
/// while a client sends requests on one connection, and waits for each response.
#[test]
fn responses_of_applications_take_the_calls_of_the_document() {
    let mut counted = BTreeMap::new();
    for transport in ["unix", "shm", "passfd"] {
        let (server, application) = calls(transport, "/app?32768", 0, "measured");
        counted.insert(format!("32 KB, {transport}"), server);
        counted.insert(format!("32 KB, {transport}: the application"), application);
    }
    for (situation, bytes, way) in [
        ("1 MB, a named file", 1 << 20, "measured"),
        ("60 KB, a named file, from memory", 60 << 10, "memory"),
        ("60 KB, a named file in memory, from the page cache", 60 << 10, "sendfile"),
    ] {
        let (server, _) = calls("unix", "/app?named={base}/named/file.bin", bytes, way);
        counted.insert(situation.to_owned(), server);
    }
    compare("Applications", "applications", &counted);
}

/// Goal: named files in memory take the cheaper path, so both paths are measured, in both forms of naming. Method:
/// enough requests to time each path as often as the choice needs.
#[test]
fn what_named_files_cost_is_measured() {
    for form in ["named", "between-text"] {
        let path = format!("/app?{form}={{base}}/named/file.bin");
        let (server, _application, path) = behind_a_server("unix", &path, 60 << 10, "measured");
        let mut client = server.connect();
        // One response in 32 is timed for each path, and 15 of a path are enough.
        for _ in 0..32 * 17 {
            assert_eq!(client.get(&path).body.len(), 60 << 10);
        }
        wait_until_timed(&server);
    }
}

/// Goal: single ranges are measured, too, if they are long enough.
#[test]
fn what_ranges_cost_is_measured() {
    let folder = Folder::new();
    folder.write("medium.bin", pattern(100_000, 1));
    let server = Server::serve(folder, &["--workers", "1", "--set", "send.way=measured"]);
    let mut client = server.connect();
    for _ in 0..32 * 17 {
        for (range, bytes) in [("5-9", 5), ("20000-79999", 60_000)] {
            let answer = client.ask("GET", "/medium.bin", &format!("Range: bytes={range}\r\n"));
            assert_eq!((answer.status, answer.body.len()), (206, bytes));
        }
    }
    wait_until_timed(&server);
}

/// Waits until the worker reports the costs of both paths in the requested class. It reports once a second.
fn wait_until_timed(server: &Server) {
    wait_until("both paths have been timed", || {
        let status: Value = server.status();
        let [costs] = &found(&status, "ways_of_sending")[..] else { panic!("{status:#}") };
        let classes = costs.as_array().expect("classes");
        assert!(classes.len() <= 1, "only one is large enough: {costs:#}");
        costs[0]["memory_ns"].is_u64() && costs[0]["sendfile_ns"].is_u64()
    });
}

/// The values that have a name, anywhere within another.
fn found<'a>(within: &'a Value, name: &str) -> Vec<&'a Value> {
    match within {
        Value::Array(values) => values.iter().flat_map(|value| found(value, name)).collect(),
        Value::Object(fields) => {
            let own = fields.get(name).into_iter();
            own.chain(fields.values().flat_map(|value| found(value, name))).collect()
        }
        _ => Vec::new(),
    }
}

/// The usual calls of server and application from one request to the next, with a named file of so many bytes and its
/// path of sending.
fn calls(transport: &str, path: &str, file_bytes: usize, way: &str) -> (Vec<String>, Vec<String>) {
    let (server, application, path) = behind_a_server(transport, path, file_bytes, way);
    let mut client = server.connect();
    for _ in 0..3 {
        client.get(&path);
    }
    let base = server.folder().base();
    let of_server = Trace::attach(server.workers()[0], &base.join("server.trace"));
    let of_application = Trace::attach(application.pid(), &base.join("application.trace"));
    ask_again_and_again(&mut client, &path);
    let server = split(&of_server.calls(), Call::receives_a_request);
    let application = split(&of_application.calls(), receives_a_begin);
    (usual(server), usual(application))
}

fn ask_again_and_again(client: &mut Client, path: &str) {
    for _ in 0..ROUNDS {
        client.get(path);
        // An application that answers itself reports to the server afterwards; an earlier request would cost an
        // additional wake-up.
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether an application receives what begins with `FCGI_BEGIN_REQUEST`: version 1, type 1.
fn receives_a_begin(call: &Call) -> bool {
    call.name == "recvmsg" && call.detail.contains("iov_base=\"\\1\\1")
}

/// The calls from one request to the next. Waits ended by a timer are no cost of the request: consecutive waits count
/// as one.
fn split(calls: &[Call], begins: impl Fn(&Call) -> bool) -> Vec<Vec<String>> {
    let starts: Vec<usize> = (0..calls.len()).filter(|&at| begins(&calls[at])).collect();
    let names = |pair: &[usize]| {
        let mut names: Vec<String> = calls[pair[0]..pair[1]].iter().map(|call| call.name.clone()).collect();
        while names.ends_with(&["epoll_wait".to_owned(), "epoll_wait".to_owned()]) {
            names.pop();
        }
        names
    };
    starts.windows(2).map(names).collect()
}

/// How often each situation is caused.
const ROUNDS: usize = 25;

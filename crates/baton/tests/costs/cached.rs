//! The costs of a hit of the shared cache: system calls and copied bytes.

use std::collections::BTreeMap;

use rustix::process::{Signal, kill_process};

use crate::common::server::wait_until;
use crate::document::compare;
use crate::moved::Moved;
use crate::proxy::Proxy;
use crate::usual::{by_request, usual};

/// Goal: the table of the document is true of hits under the default architecture, and the origin hears of none. Method: a
/// client fills the cache, then the worker is traced while the client repeats each request.
#[test]
fn hits_under_auto_make_the_calls_of_the_document() {
    compare_with_document("auto");
}

/// The same without helpers.
#[test]
fn hits_under_sped_make_the_calls_of_the_document() {
    compare_with_document("sped");
}

/// Goal: a hit from memory copies its body once, to the client. Method: what all calls of the worker have moved is summed up
/// for one response.
#[test]
fn a_hit_from_memory_is_copied_once() {
    let proxy = in_memory("auto");
    for bytes in [1 << 10, 16 << 10, LONG_BYTES] {
        let moved = Moved::by_a_response(&proxy, bytes);
        let expected = Moved { sent: moved.received, received: moved.received, ..Moved::default() };
        assert_eq!(moved, expected, "{bytes}");
    }
}

/// Goal: a hit from the folder leaves by reference; only its head is copied.
#[test]
fn a_hit_from_the_folder_is_not_copied() {
    let moved = Moved::by_a_response(&in_folder("auto"), LONG_BYTES);
    let (sent, received) = (moved.received - LONG_BYTES, moved.received);
    assert_eq!(moved, Moved { sent, received, from_files: LONG_BYTES, ..Moved::default() });
}

fn compare_with_document(architecture: &str) {
    let mut counted = BTreeMap::new();
    let mut count = |name: &str, proxy: &Proxy, bytes, fields, status| {
        counted.insert(name.to_owned(), calls(proxy, bytes, fields, status));
    };
    let proxy = in_memory(architecture);
    count("1 KB, from memory", &proxy, 1 << 10, "", 200);
    count("16 KB, from memory", &proxy, 16 << 10, "", 200);
    count("1 MB, from memory", &proxy, LONG_BYTES, "", 200);
    count("conditional: 304", &proxy, 1 << 10, "If-None-Match: \"a\"\r\n", 304);
    let proxy = in_folder(architecture);
    count("1 MB, from the folder", &proxy, LONG_BYTES, "", 200);
    count("range, from the folder", &proxy, LONG_BYTES, "Range: bytes=500000-500999\r\n", 206);
    compare("The shared cache", architecture, &counted);
}

/// The usual calls from one request with these fields to the next, while the origin gets none.
fn calls(proxy: &Proxy, bytes: usize, fields: &str, status: u16) -> Vec<String> {
    let mut client = proxy.served(bytes);
    let mut ask = || assert_eq!(client.ask("GET", &format!("/{bytes}"), fields).status, status);
    ask();
    let trace = proxy.trace();
    let asked_before = proxy.origin.seen("").len();
    (0..ROUNDS).for_each(|_| ask());
    assert_eq!(proxy.origin.seen("").len(), asked_before, "requests to the origin");
    usual(by_request(&trace.calls()))
}

/// A server with a cache in memory.
fn in_memory(architecture: &str) -> Proxy {
    cached(architecture, "")
}

/// A server with a cache in a folder, which has a long body that is not in memory: a worker that takes the place of another
/// one finds it in the folder.
fn in_folder(architecture: &str) -> Proxy {
    let proxy = cached(architecture, "folder = '{base}/cache'\ndisk_reserve_bytes = 0");
    let disk = || {
        let status = proxy.server.status_text().replace([' ', '\n'], "");
        status.split_once(r#""disk":{"bytes":"#).map(|(_, disk)| disk.to_owned()).unwrap_or_default()
    };
    // What comes before is not written.
    wait_until("the folder is in use", || disk().contains(r#""recovered":true"#));
    proxy.exchange(&mut proxy.server.connect(), LONG_BYTES);
    let is_written = || {
        let disk = disk();
        let bytes = disk.split(',').next().and_then(|bytes| bytes.parse::<usize>().ok());
        bytes >= Some(LONG_BYTES) && disk.contains(r#""queue_bytes":0,"recovered":true"#)
    };
    wait_until("all is written", is_written);
    let first = proxy.server.workers()[0];
    kill_process(first, Signal::KILL).expect("the worker is there");
    wait_until("another worker has the folder", || {
        let workers = proxy.server.workers();
        !workers.is_empty() && !workers.contains(&first) && is_written()
    });
    proxy
}

fn cached(architecture: &str, settings: &str) -> Proxy {
    let server = format!("architecture = '{architecture}'\nthreads = 1\n[shared_cache]\n{settings}");
    Proxy::start(&server, "proxy = '{origin}'\ncache = true")
}

/// Four blocks of the cache.
const LONG_BYTES: usize = 1_000_000;

/// How often each situation is caused.
const ROUNDS: usize = 25;

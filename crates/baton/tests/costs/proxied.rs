//! System calls per response of an origin.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::document::compare;
use crate::moved::Moved;
use crate::proxy::Proxy;
use crate::trace::Call;
use crate::usual::usual;

/// Goal: the table of the document is true of proxied requests. Method: the worker is traced while a client sends requests
/// on one connection, and waits for each response.
#[test]
fn responses_of_origins_take_the_calls_of_the_document() {
    let mut counted = BTreeMap::new();
    for (situation, bytes) in [("1 KB, kept connections", 1 << 10), ("16 KB, kept connections", 16 << 10)] {
        counted.insert(situation.to_owned(), calls(bytes));
    }
    compare("Origins", "origins", &counted);
}

/// Goal: by reading and writing, every byte of a body is copied twice by the server; through a pipe, only those are that have
/// come with the head. Method: what all calls of the worker have moved is summed up for one response.
#[test]
fn a_long_body_of_an_origin_is_copied_twice_or_goes_through_a_pipe() {
    let through_memory = Moved::by_a_response(&proxy("splice_bytes_min = 0"), LONG_BYTES);
    assert_eq!((through_memory.into_pipe, through_memory.out_of_pipe), (0, 0));
    assert!(through_memory.read > LONG_BYTES && through_memory.sent > LONG_BYTES, "{through_memory:?}");

    let through_pipe = Moved::by_a_response(&proxy(""), LONG_BYTES);
    assert_eq!(through_pipe.into_pipe, through_pipe.out_of_pipe);
    assert!(through_pipe.read <= FIRST_READ_BYTES, "{through_pipe:?}");
    assert_eq!(through_pipe.read + through_pipe.into_pipe, through_memory.read);
    assert_eq!(through_pipe.sent + through_pipe.out_of_pipe, through_memory.sent);
}

/// A server that passes everything on.
fn proxy(settings: &str) -> Proxy {
    Proxy::start("", &format!("proxy = {{ to = '{{origin}}', {settings} }}"))
}

/// The usual calls of the server from one request to the next.
fn calls(bytes: usize) -> Vec<String> {
    let proxy = proxy("");
    let mut client = proxy.served(bytes);
    let trace = proxy.trace();
    for _ in 0..ROUNDS {
        proxy.exchange(&mut client, bytes);
        // The connection to the origin is at rest before the next request.
        std::thread::sleep(Duration::from_millis(10));
    }
    let calls = trace.calls();
    let starts: Vec<usize> = (0..calls.len()).filter(|&at| calls[at].receives_a_request()).collect();
    let names = |pair: &[usize]| {
        let mut names: Vec<_> = calls[pair[0]..pair[1]].iter().map(|call: &Call| call.name.clone()).collect();
        // Waits that a timer has ended are no cost of the request.
        names.dedup_by(|one, other| one == other && one == "epoll_wait");
        names
    };
    usual(starts.windows(2).map(names).collect())
}

/// Several times what a pipe holds.
const LONG_BYTES: usize = 1_000_000;

/// What the server reads at a time.
const FIRST_READ_BYTES: usize = 64 << 10;

/// How often each situation is caused.
const ROUNDS: usize = 25;

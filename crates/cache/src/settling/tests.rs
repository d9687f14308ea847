//! What becomes of clients that wait for one head.

use std::io::Read;

use crate::test_bench::{Bench, wait_s};

const CACHED: &str =
    "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"a\"\r\nContent-Length: 2\r\n\r\nhi";

const VALIDATED: &str = "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nCache-Control: max-age=60\r\n\r\n";

#[test]
fn clients_that_wait_for_one_head_share_the_response() {
    let mut bench = Bench::new("shared");
    let (first, second) = (bench.begin("/"), bench.begin("/"));
    let mut origin = bench.accept().expect("a fetch");
    bench.answer(&mut origin, CACHED);
    assert_eq!(bench.response(first), (vec!["uri-miss"], 200, b"hi".to_vec()));
    assert_eq!(bench.response(second), (vec!["uri-miss"], 200, b"hi".to_vec()));
    let third = bench.begin("/");
    assert_eq!(bench.response(third), (vec!["hit"], 200, b"hi".to_vec()));
    assert!(bench.accept().is_none() && bench.cache.is_at_rest(), "one fetch for three clients");
}

#[test]
fn a_response_for_one_client_goes_to_no_other() {
    let mut bench = Bench::new("alone");
    let (first, second) = (bench.begin("/"), bench.begin("/"));
    let mut origin = bench.accept().expect("a fetch");
    let private = |body: &str| {
        format!(
            "HTTP/1.1 200 OK\r\nCache-Control: private\r\nConnection: close\r\nContent-Length: 3\r\n\r\n{body}"
        )
    };
    bench.answer(&mut origin, &private("one"));
    assert_eq!(bench.response(first).2, b"one");
    // The second asks for itself as soon as it hears of the head.
    assert!(bench.take(second).is_some());
    let mut origin = bench.accept().expect("a request of its own");
    bench.answer(&mut origin, &private("two"));
    assert_eq!(bench.response(second).2, b"two");
    assert!(bench.cache.is_at_rest());
}

/// Goal: what a 304 says that may not be stored is for the client that has asked, and no other gets the response.
#[test]
fn a_confirmation_for_one_client_goes_to_no_other() {
    let mut bench = Bench::new("confirmed");
    let first = bench.begin("/");
    let mut origin = bench.accept().expect("a fetch");
    bench.answer(&mut origin, CACHED);
    bench.response(first);
    wait_s(100);
    let (second, third) = (bench.begin("/"), bench.begin("/"));
    let confirmed = "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nCache-Control: private\r\n\r\n";
    bench.answer(&mut origin, confirmed);
    assert_eq!(bench.response(second), (vec!["stale"], 200, b"hi".to_vec()));
    assert!(bench.take(third).is_some());
    let asked = bench.answer(&mut origin, CACHED);
    assert!(!asked.contains("If-None-Match"), "{asked}");
    assert_eq!(bench.response(third).2, b"hi");
    assert!(bench.cache.is_at_rest());
}

#[test]
fn a_client_that_leaves_takes_no_fetch_from_another() {
    let mut bench = Bench::new("left");
    let (first, second) = (bench.begin("/"), bench.begin("/"));
    let mut origin = bench.accept().expect("a fetch");
    bench.abandon(first);
    bench.answer(&mut origin, CACHED);
    assert_eq!(bench.response(second), (vec!["uri-miss"], 200, b"hi".to_vec()));
}

#[test]
fn a_fetch_that_no_client_waits_for_is_given_up() {
    let mut bench = Bench::new("deserted");
    let only = bench.begin("/");
    let mut origin = bench.accept().expect("a fetch");
    bench.abandon(only);
    assert!(bench.cache.is_at_rest());
    let mut asked = Vec::new();
    origin.read_to_end(&mut asked).expect("its connection has ended");
    assert!(asked.starts_with(b"GET / "));
}

#[test]
fn all_who_wait_hear_that_the_origin_has_failed() {
    let mut bench = Bench::new("failed");
    let (first, second) = (bench.begin("/"), bench.begin("/"));
    let mut origin = bench.accept().expect("a fetch");
    bench.answer(&mut origin, "no response at all\r\n\r\n");
    assert_eq!(bench.response(first), (vec!["uri-miss"], 0, Vec::new()));
    assert_eq!(bench.response(second), (vec!["uri-miss"], 0, Vec::new()));
    assert!(bench.cache.is_at_rest());
}

#[test]
fn a_stale_response_is_validated_and_used_again() {
    let mut bench = Bench::new("validated");
    let first = bench.begin("/");
    let mut origin = bench.accept().expect("a fetch");
    bench.answer(&mut origin, CACHED);
    bench.response(first);
    wait_s(100);
    let second = bench.begin("/");
    let asked = bench.answer(&mut origin, VALIDATED);
    assert!(asked.contains("If-None-Match: \"a\"\r\n"), "{asked}");
    assert_eq!(bench.response(second), (vec!["stale"], 200, b"hi".to_vec()));
    let third = bench.begin("/");
    assert_eq!(bench.response(third), (vec!["hit"], 200, b"hi".to_vec()));
}

//! Bodies of origins that go through a pipe, and those that do not.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use baton_upstream::{Application, FailureReason, Request};

use crate::common::driver::{Driver, Ending};
use crate::http1;

/// Bytes that show when a part is missing or in the wrong place.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8).collect()
}

/// An origin that announces one length, and sends another for each request.
fn origin(announced: usize, sent: usize) -> SocketAddr {
    let body = pattern(sent);
    http1::origin(move |_, stream| {
        while http1::head(stream).is_some() {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {announced}\r\n\r\n");
            let all = [head.as_bytes(), &body].concat();
            if stream.write_all(&all).is_err() || sent < announced {
                return;
            }
        }
    })
}

fn application(address: SocketAddr) -> Arc<Application> {
    http1::application(address, |settings| settings.splice_bytes_min = 100_000)
}

/// A client that takes bytes from a pipe.
fn piped(application: &Arc<Application>) -> Request {
    Request { takes_pipes: true, ..http1::get(application) }
}

#[test]
fn the_rest_of_a_long_body_goes_through_a_pipe_where_client_and_length_allow_it() {
    let application = application(origin(LONG, LONG));
    let mut driver = Driver::new();
    for id in 1..4 {
        let got = driver.ask(id, piped(&application));
        assert!(got.body == pattern(LONG), "request {id}");
        assert!(got.piped_bytes > (LONG / 2) as u64, "{}", got.piped_bytes);
    }
    let got = driver.ask(4, http1::get(&application));
    assert!(got.body == pattern(LONG) && got.piped_bytes == 0, "{}", got.piped_bytes);
    assert_eq!(driver.report("connections_opened"), 1, "it is kept in either case");

    let short = self::application(origin(SHORT, SHORT));
    let got = driver.ask(5, piped(&short));
    assert!(got.body == pattern(SHORT) && got.piped_bytes == 0, "{}", got.piped_bytes);
}

#[test]
fn a_client_that_waits_gets_everything_in_order() {
    let application = application(origin(LONG, LONG));
    let mut driver = Driver::new();
    for id in [1, 2] {
        driver.begin(id, piped(&application));
        driver.set_slow(id, true);
    }
    // As much as is held for a client has come, and the origin waits.
    driver.run_for(std::time::Duration::from_millis(100));
    for id in [1, 2] {
        driver.set_slow(id, false);
        assert!(driver.finish(id).body == pattern(LONG), "request {id}");
    }
}

/// Method: the clock stands still.
#[test]
fn a_client_that_stalls_for_a_moment_keeps_its_pipe() {
    let application = application(origin(LONG, LONG));
    let mut driver = Driver::new();
    driver.stop_clock(true);
    driver.begin(1, piped(&application));
    driver.set_slow(1, true);
    driver.run_for(std::time::Duration::from_millis(50));
    driver.set_slow(1, false);
    let got = driver.finish(1);
    assert!(got.body == pattern(LONG) && got.file_bytes == 0 && got.piped_bytes > (LONG / 2) as u64);
}

/// Goal: a client that leaves its pipe full does not hold the origin, unless there is no file for the rest. Method: the body
/// is longer than what the sockets hold.
#[test]
fn the_rest_for_a_slow_client_goes_to_a_file() {
    let application = application(origin(VERY_LONG, VERY_LONG));
    let mut driver = Driver::new();
    driver.begin(1, piped(&application));
    driver.set_slow(1, true);
    driver.run_until(|driver| driver.report("idle") == 1);
    driver.set_slow(1, false);
    let got = driver.finish(1);
    assert!(got.body == pattern(VERY_LONG) && got.piped_bytes > 0 && got.file_bytes > (VERY_LONG / 2) as u64);

    let without_files = http1::application(origin(VERY_LONG, VERY_LONG), |settings| {
        (settings.splice_bytes_min, settings.spool_file_bytes_max) = (100_000, 0);
    });
    driver.begin(2, piped(&without_files));
    driver.set_slow(2, true);
    driver.run_for(std::time::Duration::from_millis(1_200));
    assert!(!driver.got(2).is_over());
    driver.set_slow(2, false);
    let got = driver.finish(2);
    assert!(got.body == pattern(VERY_LONG) && got.file_bytes == 0 && got.piped_bytes > (LONG / 2) as u64);
}

#[test]
fn a_body_that_is_cut_is_not_complete() {
    let application = application(origin(LONG, LONG - 1));
    let mut driver = Driver::new();
    let got = driver.ask(1, piped(&application));
    assert_eq!(got.why(), FailureReason::Ended);
    assert!(got.body == pattern(LONG - 1));
}

#[test]
fn bytes_behind_the_body_are_not_the_next_response() {
    let application = application(origin(LONG, LONG + 1));
    let mut driver = Driver::new();
    for id in [1, 2] {
        let got = driver.ask(id, piped(&application));
        assert_eq!(got.ending, Some(Ending::Complete));
        assert!(got.body == pattern(LONG), "request {id}");
    }
    assert_eq!(driver.report("connections_opened"), 2);
}

/// What a client has left in a pipe is not in the next response.
#[test]
fn a_pipe_is_not_used_again_before_it_is_empty() {
    let application = application(origin(LONG, LONG));
    let mut driver = Driver::new();
    for id in 1..20 {
        driver.begin(id, piped(&application));
        driver.set_slow(id, true);
        driver.run_for(std::time::Duration::from_millis(5));
        driver.abandon(id);
    }
    assert!(driver.ask(20, piped(&application)).body == pattern(LONG));
}

const LONG: usize = 3_000_000;
const VERY_LONG: usize = 30_000_000;
const SHORT: usize = 50_000;

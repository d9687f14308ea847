//! The other transport: php-fpm writes into a region that it shares with the server.

use super::support::pattern::{self, assert_pattern};
use super::support::server::MODERN;
use super::support::{Fpm, Request, Server};

/// Answers smaller and larger than the region, which is written round and round, one after the other.
#[test]
fn answers_go_through_shared_memory() {
    let fpm = Fpm::with_one_worker("");
    let script = fpm.script("bytes.php", pattern::SCRIPT);
    let mut server = Server::connect(&fpm.socket());
    for bytes in [1, 10_000, 200_000, 3_000_000, 65_536, 5] {
        for step in [3000, 100_000] {
            let request = Request::get(&script).query(format!("bytes={bytes}&step={step}"));
            let (outcome, slices) = server.answer_shared(&request, 128 << 10);
            assert!(outcome.end.is_some() && outcome.answered.is_none());
            assert_pattern(outcome.body(), bytes);
            assert!(slices > 0, "nothing came through the region");
        }
    }
    // Any transport may follow on the same connection.
    let request = Request::get(&script).query("bytes=1000&step=10");
    assert_pattern(server.plain(&request).body(), 1000);
    let (outcome, response) = server.answer(&request, MODERN);
    outcome.complete();
    assert_pattern(&response.body, 1000);
}

/// The worker outlives the connection; the region does not.
#[test]
fn a_region_ends_with_its_connection() {
    let fpm = Fpm::with_one_worker("");
    let script = fpm.script(
        "regions.php",
        "<?php echo substr_count(file_get_contents('/proc/self/maps'), 'memfd:region');",
    );
    for keep_connection in [true, false] {
        let request = Request { keep_connection, ..Request::get(&script) };
        let (outcome, _) = Server::connect(&fpm.socket()).answer_shared(&request, 64 << 10);
        assert_eq!(outcome.body(), b"1");
    }
    assert_eq!(Server::connect(&fpm.socket()).plain(&Request::get(&script)).body(), b"0");
}

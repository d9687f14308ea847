//! The conformance suite of HTTP caches, case by case.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::common::folder::Folder;
use crate::common::leave_out;
use crate::common::server::Server;
use crate::suite::{Case, Suite};

/// Goal: the cache does what RFC 9110, 9111, 9213 and 5861 want in all cases of the suite, but those in
/// `exceptions.txt`. Method: what the suite says about each case is what is expected of it. One that gets better is a
/// failure, too: its line goes.
#[test]
fn http_cache_tests() {
    let folder = Folder::new();
    let Some(mut suite) = Suite::start(&folder) else {
        return leave_out(
            "http-cache-tests",
            "it is not installed: scripts/setup-tests does so, with Node.js and npm",
        );
    };
    let configuration = CONFIGURATION.replace("{origin}", &suite.origin().to_string());
    let server = Server::run(folder, &configuration);
    let expected = expected();

    let mut cases = suite.run(server.address(), &[]);
    assert!(cases.len() >= CASES, "{} cases of {CASES}", cases.len());
    // Cases wait three seconds for what lives for two. On a busy machine some come too late, so those that surprise run
    // again, alone.
    let surprising: Vec<_> = surprises(&cases, &expected).map(|case| case.id.clone()).collect();
    if !surprising.is_empty() {
        let again = suite.run(server.address(), &surprising);
        cases.retain(|case| !surprising.contains(&case.id));
        cases.extend(again);
    }
    let report = surprises(&cases, &expected).fold(String::new(), |mut report, case| {
        let Case { id, kind, word, reason } = case;
        let _ = writeln!(report, "{id} ({kind}) is {word}, not {}: {reason}", expected_of(&expected, id));
        report
    });
    assert!(report.is_empty(), "{report}");
    for id in expected.keys() {
        assert!(cases.iter().any(|case| case.id == *id), "{id} is no case");
    }
}

fn surprises<'a>(cases: &'a [Case], expected: &'a BTreeMap<&str, &str>) -> impl Iterator<Item = &'a Case> {
    cases.iter().filter(|case| case.word != expected_of(expected, &case.id))
}

fn expected_of<'a>(expected: &BTreeMap<&str, &'a str>, id: &str) -> &'a str {
    expected.get(id).copied().unwrap_or("yes")
}

/// The cases that are anything but `yes`, with their word.
fn expected() -> BTreeMap<&'static str, &'static str> {
    let lines =
        include_str!("exceptions.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(' ').expect("an ID and a word")).collect()
}

/// How many cases there are: none may go missing.
const CASES: usize = 344;

/// One process, so that all connections share one cache.
const CONFIGURATION: &str = r#"
processes = 1
[[site]]
listen = ["127.0.0.1:0"]
[[site.route]]
path = "/"
proxy = "http://{origin}"
cache = { unkeyed_fields = ["Test-ID", "Test-Name", "Req-Num", "Foo", "Bar", "Baz"] }
"#;

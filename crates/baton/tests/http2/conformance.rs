//! The conformance suite h2spec, case by case.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::architectures::under_two_architectures;
use crate::common::{leave_out, tools};
use crate::site;

under_two_architectures! { by name: h2spec }

/// Goal: the server does what RFC 9113 wants in all cases that h2spec knows, but those that are moot. Method: the suite's
/// own report, for a file and for an application; the failures are the exceptions, no more and no less.
fn h2spec(architecture: &str) {
    let Some(program) = tools::find("h2spec") else {
        return leave_out("h2spec", "it is not installed: scripts/setup-tests builds it, with Go");
    };
    let server = site::start(architecture, 4, "");
    let address = server.server().address();
    // Long enough that a stream is still open when a case breaks it. A file answers requests with bodies at once, before
    // the cases of section 8 break a rule.
    let sections = ["generic", "http2/3", "http2/4", "http2/5", "http2/6", "http2/7", "hpack"];
    let check = |path: &str, sections: &[&str], count: usize| {
        let report = server.folder().base().join(format!("{count}.xml"));
        let output = Command::new(&program)
            .args(["--host", &address.ip().to_string(), "--port", &address.port().to_string()])
            // Cases in which the server may do nothing wait so long, in seconds.
            .args(["--path", path, "--timeout", "5", "--junit-report"])
            .arg(&report)
            .args(sections)
            .output()
            .expect("h2spec runs");
        let text = fs::read_to_string(&report)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        let cases = Cases::of(&text);
        assert!(cases.count >= count, "{} cases of {count}", cases.count);
        let moot: BTreeSet<String> = MOOT.iter().map(|case| (*case).to_owned()).collect();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(cases.failed, moot, "{path}: {}", said.split("Failures:").last().unwrap_or_default());
    };
    // Side by side, since most of the time both wait.
    std::thread::scope(|scope| {
        scope.spawn(|| check("/app/bytes?300000", &[], 145));
        check("/large.bin", &sections, 120);
    });
}

/// What the report says.
struct Cases {
    count: usize,
    /// Section and title.
    failed: BTreeSet<String>,
}

impl Cases {
    /// Reads the report: a line for each case, and for a failed one more lines within.
    fn of(report: &str) -> Self {
        let mut cases = Self { count: 0, failed: BTreeSet::new() };
        for case in report.split("<testcase ").skip(1) {
            cases.count += 1;
            let case = case.split("</testcase>").next().unwrap_or_default();
            if case.contains("<failure") || case.contains("<error") {
                let value = |name: &str| case.split_once(&format!("{name}=\""))?.1.split('"').next();
                let (section, title) = (value("package").unwrap_or("?"), value("classname").unwrap_or("?"));
                cases.failed.insert(format!("{section}: {title}"));
            }
        }
        cases
    }
}

/// Cases that the server fails because they are moot.
const MOOT: [&str; 3] = [
    // The port speaks HTTP/1, too: what is no preface is a bad request of HTTP/1, and answered as one.
    "http2/3.5: Sends invalid connection preface",
    // RFC 9113 section 5.3.2 has deprecated the tree of priorities: what is said about it is ignored.
    "http2/5.3.1: Sends HEADERS frame that depend on itself",
    "http2/5.3.1: Sends PRIORITY frame that depend on itself",
];

//! What is left of processes, and what an answer of the application says about its own.

use std::fs;
use std::path::PathBuf;

use crate::common::client::Response;

/// The application of these tests.
pub(crate) fn application() -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/applications_supervised/application.pl");
    path.to_str().expect("a path in UTF-8").to_owned()
}

/// Whether a process is there and not just waiting to be reaped.
pub(crate) fn lives(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")))
}

/// The value of a name in what the application says.
#[track_caller]
pub(crate) fn told<'a>(response: &'a Response, name: &str) -> &'a str {
    assert_eq!(response.status, 200, "{response:?}");
    let text = response.text();
    let values = text.split_whitespace().filter_map(|word| word.split_once('='));
    let mut found = values.filter(|(known, _)| *known == name);
    found.next().unwrap_or_else(|| panic!("no {name} in {text}")).1
}

/// Which process of the application answered.
#[track_caller]
pub(crate) fn pid_of(response: &Response) -> i32 {
    told(response, "pid").parse().expect("a number")
}

//! Whether processes live, and the application's reports on its process.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::common::client::Response;
use crate::common::server::Server;

/// The application of these tests.
pub(crate) fn application() -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/applications_supervised/application.pl");
    path.to_str().expect("a path in UTF-8").to_owned()
}

/// Whether a process runs and is no zombie.
pub(crate) fn lives(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")))
}

/// The value of a name in the application's report.
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

/// The server's status of the applications that it has started.
pub(crate) fn pools(server: &Server) -> Vec<Value> {
    let status: Value = server.status();
    status["applications"].as_array().cloned().expect("applications")
}

/// Manager and processes of all pools.
pub(crate) fn everybody(server: &Server) -> Vec<i32> {
    let numbers = |pool: &Value| {
        let processes = pool["processes"].as_array().into_iter().flatten().map(|one| one["pid"].clone());
        [pool["manager"].clone()].into_iter().chain(processes).collect::<Vec<_>>()
    };
    let pools = pools(server);
    let pids = pools.iter().flat_map(numbers).filter_map(|pid| pid.as_i64());
    pids.map(|pid| i32::try_from(pid).expect("a process")).collect()
}

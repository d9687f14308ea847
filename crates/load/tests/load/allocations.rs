//! The loops of the generator allocate nothing: its cost is that of its system calls.

use std::time::Duration;

use crate::scripted::{ok, serve};
use allocation_counter::measure;

use baton_load::sessions::{self, SessionLoad, SessionSettings};
use baton_load::{Load, LoadRequest, LoadSettings, Script, ScriptStep};

/// Allocations of a load of so many requests.
fn allocations(requests: u64) -> u64 {
    let server = serve(|_, _, _| ok(&"x".repeat(20_000)));
    let settings = LoadSettings {
        connections: 4,
        requests_max: Some(requests),
        sleep: true,
        ..LoadSettings::new(server.address, Duration::from_secs(60))
    };
    let list = [LoadRequest::page("/", None)];
    let mut load = Load::connect(&settings, list).unwrap();
    let mut made = 0;
    let counted = measure(|| made = load.run().unwrap().requests);
    assert_eq!(made, requests);
    counted.count_total
}

#[test]
fn requests_cost_no_allocation() {
    let (few, many) = (allocations(200), allocations(1_200));
    // A head that comes in two pieces is kept once for each connection.
    assert!(many <= few + 4, "{few} allocations for 200 requests, {many} for 1,200");
}

/// Allocations and whole sessions of a load that lasts so long.
fn of_sessions(duration: Duration) -> (u64, u64) {
    let server = serve(|_, _, _| ok("hello"));
    let load = SessionLoad {
        requests_per_second: 400.0,
        timeout_s: 10.0,
        thinking_counts: false,
        connections: 1_000,
        clients: 2,
        threads: 1,
    };
    let (address, warm_up) = (server.address, Duration::ZERO);
    let settings = SessionSettings { address, load, first: 0, warm_up, duration, sleep: true };
    let mut script = Script::new(vec![LoadRequest::page("/", None)]);
    script.push([0, 5].map(|pause_ms| ScriptStep { request: 0, pause_ms }));
    let mut complete = 0;
    let counted = measure(|| complete = sessions::run(&settings, &script).unwrap().sessions.complete);
    (counted.count_total, complete)
}

#[test]
fn sessions_cost_no_allocation() {
    let (few, _) = of_sessions(Duration::from_millis(50));
    let (many, complete) = of_sessions(Duration::from_secs(2));
    // A head may come in two pieces.
    assert!(many <= few + complete / 10, "{few} allocations at first, {many} for {complete} sessions");
}

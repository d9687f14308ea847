//! Workers die; the server does not.

use std::fs;

use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::common::leave_out;
use crate::common::server::wait_until;
use crate::supervised::{is_alive, pid, send_signal, serving, start, status};

/// Kills one of two workers, under the architectures that share a listener and that do not. Requests are answered
/// meanwhile, a successor starts on the same CPU, and counters are kept.
#[test]
fn a_killed_worker_comes_back_while_others_go_on() {
    for architecture in ["auto", "symped"] {
        let server = start(&format!("processes = 2\narchitecture = \"{architecture}\""));
        let before = status(&server);
        let killed = pid(&before["workers"][0]["pid"]);
        for _ in 0..10 {
            assert_eq!(server.get("/").text(), "first");
        }
        wait_until("all requests are counted", || requests(&status(&server)) == 10);

        send_signal(killed, Signal::KILL);
        for _ in 0..20 {
            assert_eq!(server.get("/").text(), "first", "{architecture}");
        }
        wait_until("two workers serve again", || {
            let workers = serving(&server);
            workers.len() == 2 && !workers.contains(&killed)
        });
        let after = status(&server);
        assert_eq!(after["workers"][0]["restarts"], 1);
        assert_eq!(after["workers"][0]["cpu"], before["workers"][0]["cpu"]);
        assert_eq!(
            after["workers"][1]["pid"], before["workers"][1]["pid"],
            "the other worker is still the same"
        );
        wait_until("all requests are counted", || requests(&status(&server)) == 30);
        let reason =
            format!("worker 0 (process {}) was killed by signal 9 (SIGKILL)", killed.as_raw_nonzero());
        server.wait_until_said(&reason);
    }
}

fn requests(status: &Value) -> u64 {
    let workers = status["workers"].as_array().expect("workers");
    workers.iter().map(|worker| worker["requests"].as_u64().expect("a number")).sum()
}

/// Kills the master: its workers must not go on without it, holding the ports.
#[test]
fn workers_do_not_outlive_their_master() {
    let mut server = start("processes = 2");
    let workers = serving(&server);
    server.signal(Signal::KILL);
    server.ended();
    wait_until("the workers are gone", || !workers.iter().any(|&pid| is_alive(pid)));
}

/// Looks at the user ids that the kernel shows. Started as root, the master stays root and the workers do not.
#[test]
fn workers_are_not_root() {
    let server = start("processes = 1");
    let (master, worker) = (user_ids(server.pid()), user_ids(serving(&server)[0]));
    if rustix::process::geteuid().is_root() {
        assert!(!worker.contains(&"0".to_owned()), "{worker:?}");
        assert_eq!(master[1], "0");
    } else {
        assert_eq!(master, worker);
        leave_out("giving up root is not tried", "only root can");
    }
}

/// Real, effective, saved, and for files.
fn user_ids(pid: Pid) -> Vec<String> {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).expect("its status");
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:")).expect("its user");
    ids.split_whitespace().map(str::to_owned).collect()
}

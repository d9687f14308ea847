//! Workers die; the server does not.

use rustix::process::Signal;

use crate::client::get;
use crate::server::{Server, is_alive, send_signal};

/// Kills one of two workers, under the architectures that share a listener and that do not. Requests go on being
/// answered, the place is filled again, on the same CPU, and what was counted stays counted.
#[test]
fn a_killed_worker_comes_back_while_others_go_on() {
    for architecture in ["auto", "symped"] {
        let server = Server::start(&format!("processes = 2\narchitecture = \"{architecture}\""));
        let before = server.status();
        let killed = before["workers"][0]["pid"].as_i64().expect("a pid") as i32;
        for _ in 0..10 {
            assert_eq!(get(server.address(), "/").text(), "first");
        }
        let requests = |server: &Server| -> u64 {
            server.status()["workers"]
                .as_array()
                .unwrap()
                .iter()
                .map(|worker| worker["requests"].as_u64().unwrap())
                .sum()
        };
        server.wait_until("all requests are counted", || requests(&server) == 10);

        send_signal(killed, Signal::KILL);
        for _ in 0..20 {
            assert_eq!(get(server.address(), "/").text(), "first", "{architecture}");
        }
        server.wait_until("two workers serve again", || {
            let workers = server.workers();
            workers.len() == 2 && !workers.contains(&killed)
        });
        let after = server.status();
        assert_eq!(after["workers"][0]["restarts"], 1);
        assert_eq!(after["workers"][0]["cpu"], before["workers"][0]["cpu"]);
        assert_eq!(
            after["workers"][1]["pid"], before["workers"][1]["pid"],
            "the other worker is still the same"
        );
        server.wait_until("all requests are counted", || requests(&server) == 30);
        assert!(
            server.said().contains(&format!("worker 0 (process {killed}) was killed by signal 9 (SIGKILL)"))
        );
    }
}

/// Kills the master: its workers must not go on without it, holding the ports.
#[test]
fn workers_do_not_outlive_their_master() {
    let mut server = Server::start("processes = 2");
    let workers = server.workers();
    server.signal(Signal::KILL);
    server.ended();
    server.wait_until("the workers are gone", || !workers.iter().any(|&pid| is_alive(pid)));
}

/// Looks at the user ids that the kernel shows. Started as root, the master stays root and the workers do not.
#[test]
fn workers_are_not_root() {
    let server = Server::start("processes = 1");
    let uid = |pid: i32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("status");
        let uids = status.lines().find_map(|line| line.strip_prefix("Uid:")).expect("uids").to_owned();
        uids.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let (master, worker) = (uid(server.pid()), uid(server.workers()[0]));
    if rustix::process::geteuid().is_root() {
        assert!(!worker.contains(&"0".to_owned()), "{worker:?}");
        assert_eq!(master[1], "0");
    } else {
        assert_eq!(master, worker);
    }
}

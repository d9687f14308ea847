//! How requests for a busy application share its processes and the CPU.

use std::fs;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use rustix::process::Pid;

use crate::common::folder::Folder;
use crate::common::server::{Server, wait_until};
use crate::program;

const SITE: &str = r#"
architecture = "sped"
processes = 1
[[site]]
listen = ["127.0.0.1:0"]
root = "{root}"
[[site.route]]
path = "/app"
fastcgi = { to = "unix:{base}/app.sock", connections_max = 1, {keys} }
"#;

/// More clients than processes.
const CLIENTS: usize = 8;

/// Whether a process lets others finish with the CPU: whether its policy is `SCHED_BATCH`, the 41st value of
/// proc_pid_stat(5).
fn defers(worker: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{worker}/stat")).expect("a process");
    let behind_name = stat.rsplit(')').next().expect("a line");
    behind_name.split_whitespace().nth(38).expect("a policy") == "3"
}

/// Runs `watch` while all clients ask, each again as soon as it is answered. It is told the server's process, and who
/// counts the answers.
fn crowded(keys: &str, watch: impl FnOnce(Pid, &AtomicUsize)) {
    let folder = Folder::new();
    program::start(&folder.base().join("app.sock"), folder.base(), 1);
    let server = Server::run(folder, &SITE.replace("{keys}", keys));
    let worker = server.workers()[0];
    let (answers, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = server.connect();
                while !is_over.load(Relaxed) {
                    assert_eq!(client.get("/app/bytes?100").status, 200);
                    answers.fetch_add(1, Relaxed);
                }
            });
        }
        watch(worker, &answers);
        is_over.store(true, Relaxed);
    });
    wait_until("nobody is deferred to", || !defers(worker));
}

/// Goal: whether an application answers more if it is not interrupted is tried while requests wait for it, and ends with
/// them. Method: look at how the kernel schedules the loop, which changes with every epoch of such a trial.
#[test]
fn a_loop_tries_not_to_interrupt_a_crowded_application() {
    crowded("take_turns = true", |worker, _| wait_until("it lets it finish", || defers(worker)));
}

/// Goal: nothing of the kind with `take_turns = false`. Method: so many answers that a trial would have begun long since.
#[test]
fn a_loop_tries_nothing_where_it_is_told_not_to() {
    crowded("take_turns = false", |worker, answers| {
        wait_until("many are answered", || {
            assert!(!defers(worker));
            answers.load(Relaxed) > 2_000
        });
    });
}

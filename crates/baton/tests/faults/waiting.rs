//! Blocking `sendfile`: where it is allowed, a client that reads nothing holds only the thread that sends to it.

use std::fs;

use rustix::process::{Pid, Signal};

use crate::common::leave_out;
use crate::common::server::{Server, wait_until};
use crate::peer::{connect_and_send, request};
use crate::site::{SMALL_BUFFERS, large, small_and_large};
use crate::watched::Watched;

under_each_architecture! { symped = "symped", blocking, by_size }
under_each_architecture! { shared_symped = "shared-symped", blocking, by_size }
under_each_architecture! { pipeline = "pipeline", blocking, by_size, a_stop_ends_a_call_that_waits }
under_each_architecture! { mt = "mt", blocking, by_size }
under_each_architecture! { mp = "mp", blocking, by_size }
under_each_architecture! { threads = "threads", blocking, by_size, a_stop_ends_a_call_that_waits }

fn blocking(architecture: &str) {
    others_are_served_beside_a_call_that_waits(architecture, "send.sendfile=\"blocking\"");
    a_client_that_takes_nothing_is_given_up(architecture, "send.sendfile=\"blocking\"");
}

fn by_size(architecture: &str) {
    others_are_served_beside_a_call_that_waits(architecture, "send.sendfile=\"by-size\"");
    a_client_that_takes_nothing_is_given_up(architecture, "send.sendfile=\"by-size\"");
}

/// Goal: files arrive unchanged by blocking calls, and a thread that waits for a client delays no other client, for
/// small or large files. Method: the client reads nothing for longer than the others' patience.
fn others_are_served_beside_a_call_that_waits(architecture: &str, mode: &str) {
    let settings = [mode, "send.way=\"sendfile\"", SMALL_BUFFERS];
    let server = Watched::start(small_and_large(), architecture, &settings);
    let before = server.sockets();
    let stuck = connect_and_send(server.server().address(), request("/large.bin"));
    wait_until("a thread waits for the client", || waits_in_sendfile(&server.server().workers()));
    for _ in 0..3 {
        assert_eq!(server.get("/small.txt").text(), "small");
        assert!(server.get("/large.bin").body == large(), "it arrives as it is");
    }
    drop(stuck);
    server.wait_until_nothing_is_left(&before);
}

/// The thread is free again after the send timeout.
fn a_client_that_takes_nothing_is_given_up(architecture: &str, mode: &str) {
    let settings = [mode, "send.way=\"sendfile\"", "timeouts.send_ms=500", SMALL_BUFFERS];
    let server = Watched::start(small_and_large(), architecture, &settings);
    let before = server.sockets();
    let stuck = connect_and_send(server.server().address(), request("/large.bin"));
    wait_until("the client is dropped", || server.ended("timed-out") == 1);
    drop(stuck);
    server.wait_until_nothing_is_left(&before);
}

/// Where the waiting thread is not the one that gets orders, it is notified, and the worker ends.
fn a_stop_ends_a_call_that_waits(architecture: &str) {
    let settings = "[send]\nsendfile = \"blocking\"\nway = \"sendfile\"\n\n\
                    [[site]]\nlisten = [\"127.0.0.1:0\"]\nroot = \"{root}\"";
    let mut server =
        Server::run(small_and_large(), &format!("architecture = \"{architecture}\"\n{settings}"));
    let _stuck = connect_and_send(server.address(), request("/large.bin"));
    wait_until("a thread waits for the client", || waits_in_sendfile(&server.workers()));
    server.signal(Signal::TERM);
    assert!(server.ended().success());
    assert!(!server.said().contains("killed"), "{}", server.said());
}

/// Whether a thread of these processes is in the system call `sendfile`.
fn waits_in_sendfile(workers: &[Pid]) -> bool {
    let tasks = workers.iter().map(|worker| format!("/proc/{}/task", worker.as_raw_nonzero()));
    let tasks = tasks.flat_map(|tasks| fs::read_dir(tasks).into_iter().flatten().flatten());
    tasks.into_iter().any(|task| match fs::read_to_string(task.path().join("syscall")) {
        Ok(call) => call.split(' ').next() == Some(SENDFILE),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            leave_out("whether a thread waits", "only root may see what threads of others do");
            true
        }
        Err(_) => false,
    })
}

/// The number of the call.
const SENDFILE: &str = if cfg!(target_arch = "x86_64") { "40" } else { "71" };

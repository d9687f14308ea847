//! Workers and CPUs: which worker is bound to which CPU, and which connections it gets.

use std::fs;
use std::path::PathBuf;

use baton_sys::process::{allowed_cpus, pin_to_cpu};
use rustix::process::{Pid, Signal};

use crate::common::client::Client;
use crate::common::leave_out;
use crate::common::server::{Server, wait_until};
use crate::supervised::{send_signal, serving, start};

/// What the kernel says of each thread of a process about the CPUs on which it may run.
fn cpus_of_threads(process: Pid) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{}/task", process.as_raw_nonzero())).expect("its threads");
    let statuses = tasks.map(|task| fs::read_to_string(task.unwrap().path().join("status")).unwrap());
    let field = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        line.expect("the CPUs").trim().to_owned()
    };
    statuses.map(field).collect()
}

/// The CPU of each worker, all of whose threads are bound to it.
fn cpu_of_each(workers: &[Pid]) -> Vec<String> {
    let cpu = |&worker: &Pid| {
        let mut cpus = cpus_of_threads(worker);
        cpus.dedup();
        assert_eq!(cpus.len(), 1, "threads of one worker differ: {cpus:?}");
        cpus.remove(0)
    };
    let mut cpus: Vec<_> = workers.iter().map(cpu).collect();
    cpus.sort();
    cpus
}

/// Where workers have a listener each, worker n is bound to the n-th CPU, with all its threads, and so is its successor.
#[test]
fn workers_with_listeners_of_their_own_have_a_cpu_each() {
    let allowed = allowed_cpus().unwrap();
    let mut wanted: Vec<_> = (0..2).map(|worker| allowed[worker % allowed.len()].to_string()).collect();
    wanted.sort();
    for architecture in ["auto", "n-copy", "pipeline"] {
        let server = start(&format!("architecture = \"{architecture}\"\nprocesses = 2"));
        let workers = serving(&server);
        server.get("/");
        assert_eq!(cpu_of_each(&workers), wanted, "{architecture}");
        send_signal(workers[0], Signal::KILL);
        wait_until("a new worker serves", || {
            let now = serving(&server);
            now.len() == 2 && !now.contains(&workers[0])
        });
        assert_eq!(cpu_of_each(&serving(&server)), wanted, "{architecture}, with a new worker");
    }
}

/// Workers that share a listener, a single worker, and workers without `cpu_affinity` run where the kernel lets them.
#[test]
fn other_workers_are_not_bound() {
    let everywhere = cpus_of_threads(rustix::process::getpid()).remove(0);
    for settings in [
        "architecture = \"symped\"\nprocesses = 2",
        "architecture = \"n-copy\"\nprocesses = 1",
        "architecture = \"n-copy\"\nprocesses = 2\ncpu_affinity = false",
    ] {
        let server = start(settings);
        let cpus = cpu_of_each(&serving(&server));
        assert!(cpus.iter().all(|cpus| *cpus == everywhere), "{settings}: {cpus:?}");
    }
}

/// Whether a process has the other end of a connection.
fn has(process: Pid, client: &Client) -> bool {
    // Both ends: another server's client may have the same port.
    let (local, peer) = (client.stream().local_addr().unwrap(), client.stream().peer_addr().unwrap());
    let ends = [peer, local].map(|address| format!(":{:04X}", address.port()));
    let connections = fs::read_to_string("/proc/net/tcp").unwrap();
    let inode = connections.lines().find_map(|line| {
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        let is_ours = fields.get(1)?.ends_with(&ends[0]) && fields.get(2)?.ends_with(&ends[1]);
        is_ours.then(|| fields[9].to_owned())
    });
    let socket = PathBuf::from(format!("socket:[{}]", inode.expect("the connection")));
    let descriptors = fs::read_dir(format!("/proc/{}/fd", process.as_raw_nonzero())).expect("descriptors");
    descriptors
        .flatten()
        .any(|descriptor| fs::read_link(descriptor.path()).is_ok_and(|target| target == socket))
}

fn worker_on(cpu: usize, server: &Server) -> Pid {
    let is_there = |worker: &Pid| cpus_of_threads(*worker)[0] == cpu.to_string();
    serving(server).into_iter().find(is_there).expect("a worker on this CPU")
}

/// Goal: with `listener_per_cpu` a connection is served where it arrives. Method: over the loopback it arrives on the CPU on
/// which the client runs; a hash would send half of them elsewhere.
#[test]
fn connections_are_served_on_the_cpu_where_they_arrive() {
    let allowed = allowed_cpus().unwrap();
    if allowed.len() < 2 {
        return leave_out("steering connections", "there is one CPU");
    }
    for architecture in ["auto", "n-copy", "pipeline"] {
        let settings = format!("architecture = \"{architecture}\"\nprocesses = 2");
        let server = start(&format!("{settings}\n\n[send]\nlistener_per_cpu = true"));
        for &cpu in &allowed[..2] {
            let worker = worker_on(cpu, &server);
            std::thread::scope(|scope| {
                let clients = scope.spawn(|| {
                    pin_to_cpu(cpu).unwrap();
                    for _ in 0..12 {
                        let mut client = server.connect();
                        assert_eq!(client.get("/").text(), "first");
                        assert!(has(worker, &client), "{architecture}: arrived on CPU {cpu}");
                    }
                });
                clients.join().unwrap();
            });
        }
    }
}

/// Where connections cannot be steered, the log says why, and everything else works.
#[test]
fn what_keeps_connections_from_being_steered_is_said() {
    let cpus = allowed_cpus().unwrap().len();
    for (settings, why) in [
        ("architecture = \"symped\"\nprocesses = 2".to_owned(), "accept from one socket"),
        ("architecture = \"n-copy\"\nprocesses = 1".to_owned(), "there is one worker"),
        (
            "architecture = \"n-copy\"\nprocesses = 2\ncpu_affinity = false".to_owned(),
            "`server.cpu_affinity` is off",
        ),
        (format!("architecture = \"auto\"\nprocesses = {}", cpus + 1), "more workers than CPUs"),
    ] {
        let server = start(&format!("{settings}\n\n[send]\nlistener_per_cpu = true"));
        assert_eq!(server.get("/").text(), "first");
        let said = server.said();
        assert!(said.contains("`send.listener_per_cpu` has no effect") && said.contains(why), "{said}");
    }
}

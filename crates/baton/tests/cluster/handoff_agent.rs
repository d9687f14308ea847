//! The process that moves connections, as servers find, start and lose it. What it does with connections is tested between
//! hosts.

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::folder::Folder;
use crate::common::leave_out;
use crate::common::port::free_address;
use crate::common::server::{BATON, Server, wait_until};
use crate::front::{configuration, node_of_cluster};

/// A front-end and a node that share a key; the handoff agent's socket of the front-end.
fn host_and_node() -> Option<(Server, Server, String)> {
    if !rustix::process::geteuid().is_root() {
        leave_out("servers and their handoff agents", "only root may move connections");
        return None;
    }
    let keys = Folder::new();
    let key = keys.base().join("cluster.pem");
    make_key(&key);
    let agent = free_address();
    let node = node_of_cluster(&format!("key = '{}'\nlisten = '{agent}'", key.display()));
    let cluster = format!(
        "key = '{}'\nmover_socket = '{}'\nnodes = [{{ to = 'http://{}', name = 'n0', mover = '{agent}' }}]",
        key.display(),
        keys.base().join("mover.sock").display(),
        node.address()
    );
    let front = Server::run(keys, &configuration("user = 'root'", &cluster));
    Some((front, node, cluster))
}

fn make_key(path: &Path) {
    let key = Command::new(BATON).args(["cluster", "key"]).output().expect("a key");
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    std::io::Write::write_all(&mut file.expect("a file"), &key.stdout).expect("a key");
}

fn agent(server: &Server) -> Value {
    let status: Value = server.status();
    status["mover"].clone()
}

/// Waits until the handoff agent reaches the node. Returns the handoff agent's process.
fn wait_until_reached(server: &Server) -> i64 {
    wait_until("the node's handoff agent is reached", || agent(server)["nodes"][0]["reachable"] == true);
    agent(server)["pid"].as_i64().expect("its process")
}

/// Goal: a handoff agent that dies is replaced, and requests are answered meanwhile.
#[test]
fn a_agent_that_is_killed_is_replaced() {
    let Some((front, _node, _)) = host_and_node() else { return };
    let first = wait_until_reached(&front);
    kill_process(Pid::from_raw(first as i32).expect("a process"), Signal::KILL).expect("it runs");
    assert_eq!(front.get("/1.txt").text(), "file 1");
    wait_until("another one runs", || !agent(&front)["pid"].is_null() && agent(&front)["pid"] != first);
    wait_until_reached(&front);
}

/// Goal: a server that takes the place of another one goes on with its handoff agent, which has the connections.
#[test]
fn the_next_server_finds_the_agent() {
    let Some((front, _node, cluster)) = host_and_node() else { return };
    let first = wait_until_reached(&front);
    front.signal(Signal::KILL);
    let next = Server::run(Folder::new(), &configuration("user = 'root'", &cluster));
    assert_eq!(wait_until_reached(&next), first);
    drop(front);
}

/// Goal: the process ends by itself when no server needs it, and takes its socket along. Method: two of them; a master is
/// connected to the one that was started first, so that the time of both is over when the other ends.
#[test]
fn a_agent_that_no_server_needs_ends() {
    let folder = Folder::new();
    let start = |name: &str| {
        let socket = folder.base().join(name);
        let mut agent = Command::new(BATON);
        let agent = agent.arg("mover").arg("--socket").arg(&socket).spawn().expect("baton mover");
        wait_until("it listens", || socket.exists());
        (agent, socket)
    };
    let (mut needed, of_needed) = start("needed");
    let master = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .expect("a socket");
    let address = SocketAddrUnix::new(&of_needed).expect("an address");
    wait_until("it is connected", || connect(&master, &address).is_ok());
    let (mut unneeded, of_unneeded) = start("unneeded");
    wait_until("the one ends", || {
        unneeded.try_wait().expect("its status").is_some_and(|status| status.success())
    });
    assert!(!of_unneeded.exists());
    assert_eq!(needed.try_wait().expect("its status"), None);
    drop(master);
    wait_until("the other ends", || {
        needed.try_wait().expect("its status").is_some_and(|status| status.success())
    });
    assert!(!of_needed.exists());
}

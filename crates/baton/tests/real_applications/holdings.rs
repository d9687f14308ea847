//! An application process's own report of `/proc/self/fd` and `/proc/self/maps` during an answer: they show the
//! client's socket, or the memory shared with the server.

use std::fs;
use std::net::SocketAddr;

use crate::common::agent::Agent;

/// How an answer travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerTransport {
    /// The application holds the client's socket.
    PassFd,
    /// It shares memory with the server.
    Shm,
    /// Neither.
    Plain,
}

/// The transport of the answer to a request for `path`, at which the application reports.
pub(crate) fn way(agent: &mut Agent, host: &str, path: &str) -> AnswerTransport {
    // With the first request, the server learns the application's transports.
    agent.ask_host(host, "GET", path, "");
    let answer = agent.ask_host(host, "GET", path, "");
    let text = String::from_utf8_lossy(&answer.body);
    assert!(answer.status == 200 && text.contains("socket:["), "{answer:?}");
    if text.contains(&format!("socket:[{}]", server_end(agent))) {
        AnswerTransport::PassFd
    } else if text.contains("baton-region") {
        AnswerTransport::Shm
    } else {
        AnswerTransport::Plain
    }
}

/// The number of the socket at the server's end of a client's connection.
fn server_end(agent: &Agent) -> u64 {
    let here = agent.tcp().local_addr().expect("an address");
    let there = agent.tcp().peer_addr().expect("an address");
    let ends = (hexadecimal(there), hexadecimal(here));
    let table = fs::read_to_string("/proc/net/tcp").expect("the table of connections");
    let row = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut found = row.filter(|row| row.get(1) == Some(&&*ends.0) && row.get(2) == Some(&&*ends.1));
    let row = found.next().expect("the connection");
    row[9].parse().expect("a number")
}

/// An address as `/proc/net/tcp` writes it.
fn hexadecimal(address: SocketAddr) -> String {
    let SocketAddr::V4(address) = address else { panic!("{address} is none of IPv4") };
    format!("{:08X}:{:04X}", u32::from_ne_bytes(address.ip().octets()), address.port())
}

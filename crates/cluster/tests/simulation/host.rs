//! A host: its kernel's sockets and table of flows, its agent and its server.

use std::collections::{BTreeMap, VecDeque};

use baton_cluster::Tuple;
use baton_cluster::agent::HandoffAgent;

use crate::server::Server;

/// A handle of a socket, which only one owner has.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) conn: u64,
}

/// A socket in the kernel.
#[derive(Debug)]
pub(crate) struct Socket {
    /// Requests received.
    pub(crate) received: u64,
    /// Responses sent.
    pub(crate) sent: u64,
    /// Received and not read.
    pub(crate) inbox: VecDeque<u64>,
    pub(crate) owner: Owner,
    /// The client has said that it sends no more.
    pub(crate) is_finished: bool,
}

/// Who has a socket's descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Server,
    /// In the queue to the agent.
    ToAgent,
    HandoffAgent,
    /// The agent has restored it, and it is not to be used yet.
    Inert,
    /// In the queue to the server.
    ToServer,
}

/// What the kernel does with packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Held,
    Forward(usize),
    /// The same, but a SYN begins another connection.
    Over(usize),
}

pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) agent: Option<HandoffAgent<Handle>>,
    /// Agents that have run here: messages for an earlier one are lost.
    pub(crate) life: u64,
    /// When the agent's next event is due, to queue it once.
    pub(crate) wake_ms: Option<u64>,
    pub(crate) sockets: BTreeMap<u64, Socket>,
    pub(crate) table: BTreeMap<Tuple, Entry>,
    pub(crate) server: Server,
    /// It has lost a process.
    pub(crate) is_hurt: bool,
    /// How far its clock is ahead.
    pub(crate) ahead_ms: u64,
}

impl Host {
    pub(crate) fn new(name: String) -> Self {
        Self {
            name,
            agent: None,
            life: 0,
            wake_ms: None,
            sockets: BTreeMap::new(),
            table: BTreeMap::new(),
            server: Server::new(),
            is_hurt: false,
            ahead_ms: 0,
        }
    }
}

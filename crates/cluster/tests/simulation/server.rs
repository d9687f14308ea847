//! A server: what its workers know of clients.

use std::collections::BTreeMap;

use baton_cluster::local::{Drain, Loads};
use baton_passport::{Address, Passport};

use crate::host::Handle;

pub(crate) struct Server {
    pub(crate) is_up: bool,
    /// Servers that have run here.
    pub(crate) life: u64,
    pub(crate) clients: BTreeMap<u64, Client>,
    /// Per node: hand-offs since `Hello`, and what the agent has said.
    pub(crate) nodes: BTreeMap<String, NodeView>,
    /// What operators have said of nodes.
    pub(crate) drains: Vec<Drain>,
    /// Whether connections are to go back to front-ends.
    pub(crate) gives_back: bool,
}

/// What a front-end's server knows of a node.
#[derive(Debug, Default)]
pub(crate) struct NodeView {
    pub(crate) is_reachable: bool,
    pub(crate) sent: u64,
    pub(crate) loads: Loads,
}

impl NodeView {
    /// Requests at the node. `None`: more have ended than begun.
    pub(crate) fn load(&self) -> Option<u64> {
        (self.sent + self.loads.begun_kept).checked_sub(self.loads.ended)
    }
}

/// A client, as a worker has it.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) handle: Handle,
    pub(crate) flow: Option<u64>,
    /// The request under way, and whether it was answered already. A request that came with a passport is here, too.
    pub(crate) request: Option<u64>,
    pub(crate) requests: u64,
}

impl Server {
    pub(crate) fn new() -> Self {
        Self {
            is_up: false,
            life: 0,
            clients: BTreeMap::new(),
            nodes: BTreeMap::new(),
            drains: Vec::new(),
            gives_back: false,
        }
    }
}

/// The passport of a client with a request.
pub(crate) fn passport(client: std::net::SocketAddr, requests: u64, request: u64) -> Box<Passport> {
    Box::new(Passport {
        listener: Address::Tcp("10.0.0.1:80".parse().unwrap()),
        peer: Some(client),
        requests,
        written: 0,
        was_passed: false,
        flow: None,
        stay: false,
        unread: request.to_string().into_bytes(),
        left_ms: None,
        begins_with_tls: false,
        parts: Vec::new(),
    })
}

/// The request in a passport.
pub(crate) fn request_of(passport: &Passport) -> u64 {
    std::str::from_utf8(&passport.unread).unwrap().parse().unwrap()
}

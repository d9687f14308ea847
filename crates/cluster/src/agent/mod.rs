//! The handoff agent's machine: what happens to connections that move between hosts, as decisions.
//!
//! Input: `handle_*`, with the time in milliseconds of a clock that never goes back. Output:
//! [`next_action`](HandoffAgent::next_action), to be done in this order. [`deadline_ms`](HandoffAgent::deadline_ms) says when
//! [`handle_time`](HandoffAgent::handle_time) has something to do.
//!
//! ```text
//!   front-end                                     node
//!   Handoff ─► Freeze ── Ship ──────────────────► Restore
//!              (packets dropped)  ◄────── Ready ── inert socket
//!              Forward ── Take ─────────────────► Give to the server
//! ```
//!
//! It has two halves, which know nothing of each other: [`front_end`] and [`node`]. A host may be both.
//!
//! *One owner.* A socket exists on one host only, or is inert. The front-end decides where: a node's socket is inert until
//! `Take`, and a front-end that has said `Take` never makes a socket of its own again, unless the node returns one.
//!
//! *No packet without a socket.* Packets are dropped at the front-end from the moment of freezing until a socket is ready
//! for them, on one host or another; TCP repeats them.
//!
//! *Counts return to zero.* Each request that a server has handed over ends: at the node, with the node, or when the
//! connection is given back.

mod action;
mod drains;
mod front_end;
mod inbound;
mod kept;
pub mod limits;
mod link;
mod node;
mod queue;
mod secret;
mod waiting;

use std::fmt;

use action::Out;
pub use action::{Action, ForServer, HandoffFailure, NodeId, Note, Peer};
use front_end::FrontEnd;
pub use front_end::Handoff;
use node::NodeSide;
use secret::Secret;

use baton_passport::Passport;

use self::limits::SERVER_LOST_MS;
use crate::flow::{FlowId, Tuple};
use crate::local::{AgentStatus, Drain, Node, Report, ToMaster};
use crate::peer::{FromFrontEnd, FromNode, MessageRefused};

/// The machine. `S` is a client's socket, which it never looks at.
pub struct HandoffAgent<S> {
    front_end: FrontEnd<S>,
    node: NodeSide<S>,
    server: ServerState,
    secret: Secret,
    out: Out<S>,
}

#[derive(Debug)]
enum ServerState {
    Serves,
    Gone { since_ms: u64 },
}

impl<S> HandoffAgent<S> {
    /// An agent without a server. `secret` comes from the system's source of randomness.
    pub fn new(secret: [u8; 16], now_ms: u64) -> Self {
        let mut secret = Secret::new(secret);
        Self {
            front_end: FrontEnd::new(),
            node: NodeSide::new(),
            server: ServerState::Gone { since_ms: now_ms },
            out: Out::new(secret.next()),
            secret,
        }
    }

    /// What is to be done next.
    pub fn next_action(&mut self) -> Option<Action<S>> {
        self.out.actions.pop_front()
    }

    /// A server has said `Hello`.
    pub fn handle_server(&mut self, nodes: &[Node], now_ms: u64) {
        self.server = ServerState::Serves;
        self.handle_nodes(nodes, now_ms);
        self.front_end.handle_server(now_ms, &mut self.out);
        self.out.drains.is_news = !self.drains().is_empty();
        self.tell_drains();
    }

    /// The server names other nodes.
    pub fn handle_nodes(&mut self, nodes: &[Node], now_ms: u64) {
        self.front_end.handle_nodes(nodes, &mut self.secret, now_ms, &mut self.out);
    }

    /// An operator says at this host that a node is drained, or is not any more. `clock_ms`: milliseconds since 1970.
    pub fn handle_drain(&mut self, node: &str, is_drained: bool, clock_ms: u64) {
        if let Some(drain) = self.out.drains.say(node, is_drained, clock_ms) {
            self.spread(&drain);
        }
        self.tell_drains();
    }

    /// What operators have said of nodes, as far as it is known here.
    pub fn drains(&self) -> Vec<Drain> {
        self.out.drains.list()
    }

    /// A peer says what an operator has said.
    fn hear_drain(&mut self, drain: Option<Drain>) {
        if let Some(drain) = drain.filter(|drain| self.out.drains.take(drain)) {
            self.spread(&drain);
        }
    }

    fn spread(&mut self, drain: &Drain) {
        self.front_end.spread(drain, &mut self.out);
        self.node.spread(drain, &mut self.out);
    }

    /// Tells the server what is news.
    fn tell_drains(&mut self) {
        if std::mem::take(&mut self.out.drains.is_news) {
            let (drains, here) = (self.drains(), self.node.is_drained(&self.out.drains));
            self.out.push(Action::Tell(ToMaster::Drains { drains, here }));
        }
    }

    /// The last of the servers has ended, with all its processes and their sockets.
    pub fn handle_server_gone(&mut self, now_ms: u64) {
        self.server = ServerState::Gone { since_ms: now_ms };
        self.node.handle_server_gone(now_ms);
    }

    /// A server gives a connection to a node.
    pub fn handle_handoff(&mut self, handoff: Handoff<S>, now_ms: u64) {
        self.front_end.handle_handoff(handoff, now_ms, &mut self.out);
    }

    /// A server gives a connection back to its front-end.
    pub fn handle_return(&mut self, flow: FlowId, socket: S, passport: Box<Passport>, now_ms: u64) {
        self.node.handle_return(flow, socket, passport, now_ms, &mut self.out);
    }

    /// A worker of a server has ended before its time. Other workers live on.
    pub fn handle_worker_ended(&mut self, worker: u32, now_ms: u64) {
        self.node.handle_worker_ended(worker, now_ms);
    }

    /// A server says what has become of requests.
    pub fn handle_report(&mut self, report: &Report, now_ms: u64) {
        self.node.handle_report(report, now_ms);
    }

    /// [`Action::Freeze`] is done: the TCP state.
    pub fn handle_frozen(&mut self, flow: FlowId, tcp: Vec<u8>, now_ms: u64) {
        match self.node.kept.contains_key(&flow) {
            true => self.node.handle_frozen(flow, tcp, &mut self.out),
            false => self.front_end.handle_frozen(flow, tcp, now_ms, &mut self.out),
        }
    }

    /// [`Action::Freeze`] has failed. The client's packets pass, as before.
    pub fn handle_not_frozen(&mut self, flow: FlowId, socket: S, why: String, now_ms: u64) {
        match self.node.kept.contains_key(&flow) {
            true => self.node.handle_not_frozen(flow, socket, why, now_ms, &mut self.out),
            false => self.front_end.handle_not_frozen(flow, socket, why, now_ms, &mut self.out),
        }
    }

    /// [`Action::Restore`] is done, or has failed.
    pub fn handle_restored(&mut self, flow: FlowId, restored: Result<S, String>, now_ms: u64) {
        match self.node.kept.contains_key(&flow) {
            true => self.node.handle_restored(flow, restored, now_ms, &mut self.out),
            false => self.front_end.handle_restored(flow, restored, now_ms, &mut self.out),
        }
    }

    /// [`Action::Give`] has failed: there is no server, or it does not keep up.
    pub fn handle_not_given(&mut self, connection: ForServer<S>, now_ms: u64) {
        match self.node.kept.contains_key(&connection.flow) {
            true => self.node.handle_not_given(connection, now_ms, &mut self.out),
            false => self.front_end.handle_not_given(connection, now_ms, &mut self.out),
        }
    }

    /// The kernel has seen no packet of a flow for a long time, or has deleted its entry because the client began another
    /// connection.
    pub fn handle_idle(&mut self, tuple: Tuple, now_ms: u64) {
        if let Some(&flow) = self.front_end.by_tuple.get(&tuple) {
            self.front_end.release(flow, now_ms, &mut self.out);
        }
    }

    /// [`Action::Connect`] is done: the node has shown that it is a member.
    pub fn handle_connected(&mut self, node: NodeId) {
        self.front_end.handle_connected(node, &mut self.out);
    }

    /// A front-end has connected, and shown that it is a member. `false`: there are too many.
    pub fn handle_accepted(&mut self, connection: u64, now_ms: u64) -> bool {
        self.node.inbound.accept(connection, now_ms)
    }

    /// A connection has ended, or could not be made; or it had to be closed. Not after [`Action::Disconnect`].
    pub fn handle_closed(&mut self, peer: Peer, why: String, now_ms: u64) {
        match peer {
            Peer::Node(node) => self.front_end.handle_closed(node, why, now_ms, &mut self.out),
            Peer::FrontEnd(connection) => self.node.inbound.handle_closed(connection),
        }
    }

    /// The body of a message has arrived. A peer that says what it may not is disconnected.
    pub fn handle_body(&mut self, peer: Peer, body: &[u8], now_ms: u64) {
        if let Err(refused) = self.read(peer, body, now_ms) {
            self.handle_refused(peer, refused, now_ms);
        }
        self.tell_drains();
    }

    /// A peer has sent what is no message: it is disconnected.
    pub fn handle_refused(&mut self, peer: Peer, refused: MessageRefused, now_ms: u64) {
        self.out.push(Action::Disconnect { peer });
        if matches!(peer, Peer::FrontEnd(_)) {
            self.out.log(Note::FrontEndRefused { why: refused.to_string() });
        }
        self.handle_closed(peer, refused.to_string(), now_ms);
    }

    fn read(&mut self, peer: Peer, body: &[u8], now_ms: u64) -> Result<(), MessageRefused> {
        match peer {
            Peer::Node(node) => {
                let message = FromNode::from_body(body)?;
                let drain = if let FromNode::Drain(drain) = &message { Some(drain.clone()) } else { None };
                self.front_end.handle_message(node, message, &mut self.secret, now_ms, &mut self.out)?;
                self.hear_drain(drain);
            }
            Peer::FrontEnd(connection) => {
                let message = FromFrontEnd::from_body(body)?;
                let drain =
                    if let FromFrontEnd::Drain { drain, .. } = &message { Some(drain.clone()) } else { None };
                let has_server = matches!(self.server, ServerState::Serves);
                self.node.handle_message(connection, message, has_server, now_ms, &mut self.out)?;
                self.hear_drain(drain);
            }
        }
        Ok(())
    }

    /// Time has passed.
    pub fn handle_time(&mut self, now_ms: u64) {
        self.front_end.handle_time(&mut self.secret, now_ms, &mut self.out);
        self.node.handle_time(now_ms, &mut self.out);
        self.tell_drains();
    }

    /// When time alone changes something.
    pub fn deadline_ms(&self) -> Option<u64> {
        [self.front_end.deadline_ms(), self.node.deadline_ms()].into_iter().flatten().min()
    }

    /// When the agent is of no use any more, if nothing changes: it has neither a server nor connections.
    pub fn ends_ms(&self) -> Option<u64> {
        match self.server {
            ServerState::Gone { since_ms } if self.is_empty() => Some(since_ms + SERVER_LOST_MS),
            _ => None,
        }
    }

    /// Whether no connection is here, on its way or at a node.
    pub fn is_empty(&self) -> bool {
        self.front_end.is_empty() && self.node.is_empty()
    }

    /// What the server is told about the agent. The process adds its own number and its CPU time.
    pub fn status(&self) -> AgentStatus {
        AgentStatus {
            pid: 0,
            cpu_us: 0,
            flows: self.front_end.flows.len() as u64,
            kept: self.node.kept.len() as u64,
            front_ends: self.node.inbound.connected() as u64,
            nodes: self.front_end.status(),
            spreads_drains: true,
        }
    }
}

impl<S> fmt::Debug for HandoffAgent<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandoffAgent")
            .field("flows", &self.front_end.flows.len())
            .field("kept", &self.node.kept.len())
            .field("links", &self.node.inbound.links())
            .finish_non_exhaustive()
    }
}

//! What the machine wants done.

use std::collections::VecDeque;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use baton_passport::Passport;

use super::drains::Drains;
use crate::flow::{FlowId, Tuple};
use crate::local::ToMaster;
use crate::peer::RefuseReason;

/// A node, by the agent's own number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(pub(super) u32);

/// A connection with another agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// To a node.
    Node(NodeId),
    /// From a front-end, by a number of the process.
    FrontEnd(u64),
}

/// What is to be done, in this order. `S` is a client's socket.
#[derive(Debug)]
pub enum Action<S> {
    /// Connect to a node's agent, at last with [`handle_connected`](super::HandoffAgent::handle_connected) or
    /// [`handle_closed`](super::HandoffAgent::handle_closed).
    Connect {
        /// The node.
        node: NodeId,
        /// Where.
        address: SocketAddr,
    },
    /// Close the connection, or stop connecting; nothing more is expected of it.
    Disconnect {
        /// Which.
        peer: Peer,
    },
    /// Send a whole message.
    Send {
        /// Where to. If the connection has ended, to no one.
        peer: Peer,
        /// The message with its length.
        bytes: Vec<u8>,
    },
    /// Drop the client's packets from now on, read the socket's TCP state, close it without a word to the client. Answered by
    /// [`handle_frozen`](super::HandoffAgent::handle_frozen) or
    /// [`handle_not_frozen`](super::HandoffAgent::handle_not_frozen), after which the packets pass again.
    Freeze {
        /// The flow.
        flow: FlowId,
        /// Its packets.
        tuple: Tuple,
        /// Its socket.
        socket: S,
    },
    /// Make a socket from a TCP state. Answered by [`handle_restored`](super::HandoffAgent::handle_restored).
    Restore {
        /// The flow.
        flow: FlowId,
        /// What the state's addresses have to be.
        tuple: Tuple,
        /// The state.
        tcp: Vec<u8>,
    },
    /// Drop the client's packets from now on.
    Hold {
        /// Which.
        tuple: Tuple,
    },
    /// Forward the client's packets from now on.
    Forward {
        /// Which.
        tuple: Tuple,
        /// The node's address.
        next_hop: IpAddr,
    },
    /// The connection is over. Last packets are forwarded as before, but a SYN of the client begins another connection here.
    End {
        /// Which.
        tuple: Tuple,
    },
    /// Let the client's packets go to this host's own sockets.
    Remove {
        /// Which.
        tuple: Tuple,
    },
    /// Give a connection to the server. If that is impossible now:
    /// [`handle_not_given`](super::HandoffAgent::handle_not_given).
    Give(ForServer<S>),
    /// Close a socket without a word to the client.
    Discard {
        /// Which.
        socket: S,
    },
    /// Close a socket with a reset.
    Reset {
        /// Which.
        socket: S,
    },
    /// Tell the master.
    Tell(ToMaster),
    /// For the log.
    Log(Note),
}

/// A connection that the server is to get.
#[derive(Debug)]
pub struct ForServer<S> {
    /// The flow.
    pub flow: FlowId,
    /// The client's socket.
    pub socket: S,
    /// What the server has to know.
    pub passport: Box<Passport>,
    /// How long it waits for a server, once none has taken it.
    pub(super) until_ms: Option<u64>,
}

impl<S> ForServer<S> {
    pub(super) fn new(flow: FlowId, socket: S, passport: Box<Passport>) -> Self {
        Self { flow, socket, passport, until_ms: None }
    }
}

/// What operators may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A hand-off did not succeed: the front-end's server has the connection again.
    HandoffFailed {
        /// The node's name.
        node: String,
        /// The connection.
        tuple: Tuple,
        /// Why.
        why: HandoffFailure,
    },
    /// A node can be handed connections.
    NodeReachable {
        /// The node's name.
        node: String,
    },
    /// A node cannot be handed connections any more.
    NodeUnreachable {
        /// The node's name.
        node: String,
        /// Why.
        why: String,
    },
    /// A node is lost, with its connections.
    NodeLost {
        /// The node's name.
        node: String,
        /// How many connections are reset.
        flows: usize,
    },
    /// A connection is lost: it could not be restored on the host that it left.
    NotRestored {
        /// The connection.
        tuple: Tuple,
        /// Why.
        why: String,
    },
    /// Connections are reset because no server has taken them.
    NoServer {
        /// How many.
        connections: usize,
    },
    /// A front-end has been refused, or its connection closed.
    FrontEndRefused {
        /// Why.
        why: String,
    },
}

/// Why a hand-off failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandoffFailure {
    /// No node of that name is known.
    Unknown,
    /// The node cannot be reached.
    Unreachable,
    /// Too many hand-offs are under way, or too many connections given away.
    TooMany,
    /// The client's port was used before, and the move of that connection has not ended yet.
    Moving,
    /// The socket's state could not be read.
    NotFrozen(String),
    /// The state is larger than a message may be.
    TooLarge,
    /// The node has refused it.
    Refused(RefuseReason),
    /// The node did not confirm in time.
    Late,
    /// The connection to the node ended before the confirmation.
    Disconnected,
}

impl fmt::Display for HandoffFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("no node has that name"),
            Self::Unreachable => f.write_str("the node's handoff agent cannot be reached"),
            Self::TooMany => {
                f.write_str("too many hand-offs are under way, or too many connections handed over")
            }
            Self::Moving => f.write_str("an older connection of the client's port is being moved"),
            Self::NotFrozen(why) => f.write_str(why),
            Self::TooLarge => f.write_str("the client has sent more than travels with a connection"),
            Self::Refused(why) => write!(f, "the node refuses it: {}", why.word()),
            Self::Late => f.write_str("the node did not confirm in time"),
            Self::Disconnected => f.write_str("the connection to the node's handoff agent ended"),
        }
    }
}

/// Actions to come, and what both halves of the machine share.
#[derive(Debug)]
pub(super) struct Out<S> {
    pub(super) actions: VecDeque<Action<S>>,
    /// What operators have said of nodes.
    pub(super) drains: Drains,
    next_flow: FlowId,
}

impl<S> Out<S> {
    /// Numbers begin at a random place: a server may still speak of flows of an earlier agent.
    pub(super) fn new(random: u64) -> Self {
        Self { actions: VecDeque::new(), drains: Drains::default(), next_flow: random >> 1 }
    }

    pub(super) fn flow(&mut self) -> FlowId {
        self.next_flow += 1;
        self.next_flow
    }

    pub(super) fn push(&mut self, action: Action<S>) {
        self.actions.push_back(action);
    }

    pub(super) fn log(&mut self, note: Note) {
        self.push(Action::Log(note));
    }
}

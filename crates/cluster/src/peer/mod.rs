//! What the agents of two hosts say to each other, over a stream that is authenticated and private.
//!
//! ```text
//!   front-end ── connects ── Hello ──────►                          node
//!             ◄───────── Welcome, Flows ─   what is left of the last connection
//!             ── Ship ──►  restores the socket, inert
//!             ◄─ Ready ──
//!   forwards the client's packets
//!             ── Take ──►  gives it to its server
//!             ◄─ Totals, Gone ──
//!             ◄─ Return ──    has frozen it: the front-end restores it
//!             ── Returned ──►
//!             ◄─ Drain ──►    what operators have said of nodes, in both directions
//! ```
//!
//! A front-end connects, a node accepts. So what a peer may say is a matter of type: a node cannot ship, and a front-end
//! cannot return. A connection belongs to the front-end's side of a *link*, a number that cannot be guessed: flows are named
//! by the link that shipped them, and no other link can speak of them.
//!
//! **The front-end decides.** Until `Take` a node's socket is inert, so a front-end that does not hear `Ready` in time
//! restores the connection itself, whatever has become of the node. After `Take` it never does.
//!
//! Each message is a length and a body: a byte that says which message it is, and its fields
//! ([0053](../../../../docs/decisions/0053-who-moves-a-connection.md)). The first message on a connection says the version; agents
//! of two versions do not talk.

mod body;
mod frames;

use std::fmt;

use baton_passport::{Passport, Refused};

pub use frames::Frames;

use crate::flow::{FlowId, Tuple};
use crate::local::Drain;

/// The version of these messages.
pub const VERSION: u32 = 3;

/// Most bytes of a TCP state: two queues of 64 KiB, and numbers.
pub const TCP_BYTES_MAX: usize = 129 << 10;

/// Most flows in one message.
pub const FLOWS_PER_MESSAGE_MAX: usize = 2048;

/// Most bytes of a message without its length: a connection, or the numbers of many.
pub const BODY_BYTES_MAX: usize = FIELDS_BYTES_MAX + TCP_BYTES_MAX + baton_passport::MESSAGE_BYTES_MAX;

/// Two lists of numbers.
const FIELDS_BYTES_MAX: usize = 1024 + 8 * FLOWS_PER_MESSAGE_MAX;

/// A message of a front-end to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromFrontEnd {
    /// The first message.
    Hello {
        /// [`VERSION`].
        version: u32,
        /// What this connection belongs to. It has been chosen at random, and is not told to others.
        link: u64,
        /// The how manyth connection of the link this is. A node refuses one that is not later than the last.
        session: u64,
    },
    /// A connection, frozen: its packets do not leave the front-end until it is taken.
    Ship(Box<Shipment>),
    /// The front-end forwards the client's packets to the node: the node's server may have the connection.
    Take {
        /// Of [`Self::Ship`].
        flow: FlowId,
    },
    /// The front-end does not forward the client's packets (any more): forget the flow.
    Release {
        /// Of [`Self::Ship`].
        flow: FlowId,
    },
    /// The front-end has taken a connection back.
    Returned {
        /// Of [`FromNode::Return`].
        flow: FlowId,
    },
    /// Are you there?
    Ping,
    /// What an operator has said of a node.
    Drain {
        /// The word.
        drain: Drain,
        /// Whether it is about the node that hears it: nodes do not know by which name front-ends know them.
        is_yours: bool,
    },
}

/// A message of a node to a front-end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromNode {
    /// The answer to [`FromFrontEnd::Hello`].
    Welcome {
        /// [`VERSION`].
        version: u32,
        /// Whether the node knows the link from an earlier connection. Otherwise it has none of its flows.
        resumed: bool,
    },
    /// Behind `Welcome`: the flows of the link that the node has, in one or more messages.
    Flows {
        /// Inert sockets.
        ready: Vec<FlowId>,
        /// Connections that have been taken, or are being returned.
        taken: Vec<FlowId>,
        /// Whether this is the last of these messages.
        last: bool,
    },
    /// The socket is restored, and inert.
    Ready {
        /// Of [`FromFrontEnd::Ship`].
        flow: FlowId,
    },
    /// The node does not take the connection.
    Refused {
        /// Of [`FromFrontEnd::Ship`].
        flow: FlowId,
        /// Why.
        why: RefuseReason,
    },
    /// A connection, frozen: the front-end has it from now on.
    Return(Box<Shipment>),
    /// These connections are closed.
    Gone {
        /// Their numbers.
        flows: Vec<FlowId>,
    },
    /// Requests on the link's flows, as totals since the link began.
    Totals {
        /// Connections that the node has taken.
        taken: u64,
        /// Further requests on connections.
        begun_kept: u64,
        /// Requests that have ended, those with which connections came among them.
        ended: u64,
    },
    /// I am.
    Pong,
    /// What an operator has said of a node, which may be another one.
    Drain(Drain),
}

/// A connection on its way between two hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shipment {
    /// The front-end's number for it.
    pub flow: FlowId,
    /// Its ends.
    pub tuple: Tuple,
    /// What the kernel knows, as the agents' processes write it: at most [`TCP_BYTES_MAX`].
    pub tcp: Vec<u8>,
    /// What the server knows.
    pub passport: Passport,
}

/// Why a node does not take a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefuseReason {
    /// No server runs on the node.
    NoServer,
    /// Too many connections are on their way to it, or live there.
    Full,
    /// Its kernel could not restore the socket; the node's log says why.
    Restore,
    /// The peer was told to take a socket that was inert for too long, and is no more.
    TooLate,
    /// The shipment is none: another number than the last one's successor, or another client in the passport.
    Malformed,
    /// An operator has drained the node, which the front-end has not heard yet.
    Drained,
}

impl RefuseReason {
    /// All of them.
    pub(crate) const ALL: [Self; 6] =
        [Self::NoServer, Self::Full, Self::Restore, Self::TooLate, Self::Malformed, Self::Drained];

    /// For the log.
    pub fn word(self) -> &'static str {
        match self {
            Self::NoServer => "no server runs there",
            Self::Full => "it has too many connections",
            Self::Restore => "its kernel did not restore the socket, its handoff agent's log says why",
            Self::TooLate => "its socket has waited too long to be taken",
            Self::Malformed => "it does not understand the connection's state",
            Self::Drained => "it is drained",
        }
    }
}

/// Why a message is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageRefused {
    /// The message is longer than allowed.
    TooLong,
    /// The message is none of this peer's, or one of its fields cannot be read.
    Malformed,
    /// Its passport is none.
    Passport(Refused),
    /// The first message of a connection is of another version.
    Version(u32),
    /// The message is not expected from this peer, or not now.
    Unexpected,
}

impl fmt::Display for MessageRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => f.write_str("a message is longer than allowed"),
            Self::Malformed => f.write_str("a message cannot be read"),
            Self::Passport(refused) => write!(f, "a passport is refused: {refused}"),
            Self::Version(version) => {
                write!(f, "its handoff agent speaks version {version}, this one version {VERSION}")
            }
            Self::Unexpected => f.write_str("a message is not expected now"),
        }
    }
}

impl std::error::Error for MessageRefused {}

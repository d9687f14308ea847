//! What a server and the handoff agent of its host say to each other: over sockets that keep message boundaries.
//!
//! ```text
//!   master ──── connects to the agent's socket ──── Hello, Nodes, Drain … ──►  agent
//!                                    ◄── Status, Reachable, Loads, Drains ──
//!   all workers ── requests ────────── Handoff, Return, Report ────►
//!               ◄─ arrivals ────── passport and client's socket ────
//! ```
//!
//! The agent (`baton mover --socket PATH`) lives on when its server restarts. So a master first connects to the path, and
//! starts an agent if there is no answer. With [`FromMaster::Hello`] it sends one end each of two pairs of sockets,
//! [`requests`](FromMaster::Hello) and [`arrivals`](FromMaster::Hello); all workers share the other ends. The agent gives connections to the server that said
//! `Hello` last. It still obeys the workers of an earlier one, which drain, until these close their end.
//!
//! The messages of the [master](FromMaster) are JSON as in `supervise::messages`. Those of the [workers](FromWorker) are a line
//! of JSON and, behind it, a passport. What the agent sends over `arrivals` is a passport and nothing else, so a worker takes
//! it over like a connection of the server's predecessor:
//!
//! | `flow` | `stay` | where | what it is |
//! |---|---|---|---|
//! | a number | no | node | a front-end's client with a request, which the node answers; the worker reports by that number |
//! | none | yes | front-end | a hand-off that failed: the request is to be relayed |
//! | none | no | front-end | a connection that a node has returned: a node is chosen anew |
//!
//! Versions: the agent may be older than its server. Fields that are not known are ignored; of another version, a message is
//! refused.

mod drain;
mod master;
mod worker;

pub use drain::Drain;
pub use master::{
    AgentSettings, AgentStatus, FromMaster, Loads, Node, NodeStatus, SettingsRefused, ToMaster,
};
pub use worker::{FromWorker, MessageRefused, Report};

/// The version of these messages.
pub const VERSION: u32 = 1;

/// Most nodes of a cluster: [`FromMaster::Hello`] with that many fits into a message of 64 KiB.
pub const NODES_MAX: usize = 256;

/// Most bytes of a node's name.
pub const NAME_BYTES_MAX: usize = 64;

/// Most flows that one [`Report`] names: a loop that has more to say sends another one.
pub const REPORT_FLOWS_MAX: usize = 1024;

/// Most bytes of a message of a worker: a report with numbers of twenty digits, or a passport behind a line.
pub const MESSAGE_BYTES_MAX: usize = baton_passport::MESSAGE_BYTES_MAX + (24 << 10);

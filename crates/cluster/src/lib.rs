//! Connections that move between the hosts of a cluster, without I/O.
//!
//! ```text
//!   front-end's server ── local ──► agent ── peer ──► agent ── local ──► node's server ──► client, directly
//!                                     ▲ the kernel forwards the client's packets to the node
//! ```
//!
//! A *front-end* accepts clients, chooses a node for each request and gives the connection away with the request. A *node*
//! goes on with it. On each of them a small privileged process, the *handoff agent*, does what the server may not.
//!
//! [`local`] is what a server and its agent say to each other, [`peer`] what two agents do. [`agent`] is the machine that
//! decides what becomes of each connection; the process around it is the crate `handoff-agent`.

pub mod agent;
mod flow;
pub mod local;
pub mod peer;

pub use flow::{FlowId, Tuple};

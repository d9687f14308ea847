//! Connections that move between the hosts of a cluster, without I/O.
//!
//! ```text
//!   front-end's server ── local ──► mover ── peer ──► mover ── local ──► node's server ──► client, directly
//!                                     ▲ the kernel forwards the client's packets to the node
//! ```
//!
//! A *front-end* accepts clients, chooses a node for each request and gives the connection away with the request. A *node*
//! goes on with it. On each of them a small privileged process, the *mover*, does what the server may not.
//!
//! [`local`] is what a server and its mover say to each other, [`peer`] what two movers do. [`mover`] is the machine that
//! decides what becomes of each connection; the process around it is the crate `mover`.

mod flow;
pub mod local;
pub mod mover;
pub mod peer;

pub use flow::{FlowId, Tuple};

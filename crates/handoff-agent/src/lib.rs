//! The handoff agent (`baton mover`), which moves connections between the hosts of a cluster: what the machine of the crate `cluster`
//! decides, it does.
//!
//! ```text
//!   servers of this host ── Unix socket, pairs of sockets ──►┐
//!                                                           │ HandoffAgent (cluster) ──► kernel: TCP_REPAIR, table of flows
//!   agents of other hosts ── TCP, mutual TLS 1.3 ───────────►┘
//! ```
//!
//! One thread waits for everything and blocks for nothing. The process has few privileges ([`confine`]) and outlives its
//! servers: it ends when it has had neither a server nor connections for 10 s.

mod channel;
mod clock;
mod confine;
mod entrance;
mod kernel;
mod log_pace;
mod peers;
mod process;
mod server;
mod settings;

pub use process::run;

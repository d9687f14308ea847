//! A cluster over loopback: a server that distributes, real servers as its nodes, and clients.

#[path = "../common/architectures.rs"]
mod architectures;
#[path = "../common/mod.rs"]
mod common;

mod admission;
mod auto_way;
mod check;
mod clients;
mod drain;
mod fetch;
mod forged;
mod front;
mod handoff;
mod handoff_agent;
mod keys;
#[path = "../common/origin.rs"]
mod origin;
mod redirect;
mod relay;
mod thresholds;

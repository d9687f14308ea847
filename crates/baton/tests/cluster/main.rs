//! A cluster over loopback: a server that distributes, real servers as its nodes, and clients.

#[path = "../common/architectures.rs"]
mod architectures;
#[path = "../common/mod.rs"]
mod common;

mod front;
mod mover;
mod redirect;
mod relay;

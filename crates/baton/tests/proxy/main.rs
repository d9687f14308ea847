//! The reverse proxy as clients and origins see it: every protocol of clients, under every architecture.
//!
//! A test is a function of a server and the path below which an origin answers. What it does, the path says.

#[path = "../common/architectures.rs"]
mod architectures;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/protocols.rs"]
mod protocols;

mod answers;
mod bodies;
mod chains;
mod crowd;
mod ejection;
mod failures;
mod fault_proxy;
mod heads;
mod lies;
mod manners;
mod operator;
#[path = "../common/origin.rs"]
mod origin;
mod peers;
mod real;
mod reload;
mod retries;
mod scripts;
mod site;
mod slow_clients;
mod tunnel_bounds;
mod tunnels;
mod wire;

/// Runs a test under an architecture, with clients that speak a protocol.
fn under(architecture: &str, protocol: common::protocol::Protocol, test: fn(&site::Site)) {
    test(&site::site(architecture).over(protocol));
}

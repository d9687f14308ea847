//! What guards a route, tested as an attacker would: however a path is spelled, whatever protocol is spoken, and whatever a
//! client says of itself.

#[path = "../common/applications.rs"]
mod applications;
#[path = "../common/architectures.rs"]
mod architectures;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/origin.rs"]
mod origin;
#[path = "../common/protocols.rs"]
mod protocols;

mod access;
mod balancers;
mod bodies;
mod connections;
mod cors;
mod greedy;
mod greedy_work;
mod guessers;
mod methods;
mod passwords;
mod proxies;
mod rates;
mod rewritten;
mod site;

/// Runs a test under an architecture, with clients that speak a protocol.
fn under(architecture: &str, protocol: common::protocol::Protocol, test: fn(&common::server::Server)) {
    test(&site::server(architecture).over(protocol));
}

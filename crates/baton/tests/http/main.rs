//! HTTP as clients see it: real requests to real servers, every test under every architecture.
//!
//! A test is a function of a server; [`architectures`] makes a test of it for each architecture, and [`protocols`] for
//! what clients speak: the names say which. One server per architecture serves the museum, a site of many corners, to
//! all of them.

#[path = "../common/architectures.rs"]
mod architectures;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/protocols.rs"]
mod protocols;

mod every_protocol;
mod museum;

mod browser;
mod conditions;
mod early;
mod folders;
mod hosts;
mod libraries;
mod limits;
mod looks;
mod methods;
mod paths;
mod persistence;
mod pipelining;
mod ranges;
mod refusals;
mod representations;
mod routes;
mod sameness;
mod scripts;

/// Runs a test under an architecture, with clients that speak a protocol.
fn under(architecture: &str, protocol: common::protocol::Protocol, test: fn(&common::server::Server)) {
    test(&museum::server(architecture).over(protocol));
}

//! Applications as clients see them: every transport under every architecture.
//!
//! A test is a function of a server and the path of a transport. Responses must not depend on either.

#[path = "../common/architectures.rs"]
mod architectures;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/protocols.rs"]
mod protocols;

mod answers;
mod cut;
mod descriptors;
mod failures;
mod files;
mod holders;
mod hostile;
mod passed_sockets;
mod program;
mod requests;
mod resets;
mod scgi;
mod site;
mod temporary;
mod trust;
mod uploads;

/// Runs a test under an architecture, with clients that speak a protocol, by every transport.
fn under(architecture: &str, protocol: common::protocol::Protocol, test: fn(&common::server::Server, &str)) {
    for path in site::PATHS.iter() {
        eprintln!("below {path}:");
        test(&site::server(architecture).over(protocol), path);
    }
}

//! Content codings that are made on the fly: files from the cache, and streams of applications and origins, decoded by
//! other programs than the server's.

#[path = "../common/architectures.rs"]
mod architectures;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/origin.rs"]
mod origin;
#[path = "../common/protocols.rs"]
mod protocols;

mod cached;
mod files;
mod headers;
mod http10;
mod hurdles;
mod origins;
mod site;
mod streams;
mod tags;
mod tools;

/// Runs a test under an architecture, with clients that speak a protocol.
fn under(architecture: &str, protocol: common::protocol::Protocol, test: fn(&common::server::Server)) {
    test(&site::server(architecture).over(protocol));
}

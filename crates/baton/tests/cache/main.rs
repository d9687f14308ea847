//! The shared cache, seen from both sides: a client in front, an origin behind.

#[path = "../common/applications.rs"]
mod answering;
#[path = "../common/architectures.rs"]
mod architectures;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/origin.rs"]
mod origin;
#[path = "../common/protocols.rs"]
mod protocols;

mod answers;
mod applications;
mod conformance;
mod crowd;
mod disk;
mod disk_trouble;
mod disorder;
mod fetches;
mod films;
mod interim;
mod long_heads;
mod loops;
mod player;
mod poison;
mod prefetch;
mod purges;
mod ranges;
mod scans;
mod site;
mod suite;

/// Runs a test under an architecture, with clients that speak a protocol.
fn under(architecture: &str, protocol: common::protocol::Protocol, test: fn(&site::Site)) {
    test(&site::site(architecture).over(protocol));
}

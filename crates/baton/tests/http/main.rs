//! HTTP as clients see it: real requests to real servers, every test under every architecture.
//!
//! A test is a function of a server; [`architectures`] makes a test of it for each architecture, whose name
//! says which. One server per architecture serves the museum, a site of many corners, to all of them.

#[path = "../common/architectures.rs"]
mod architectures;
#[path = "../common/mod.rs"]
mod common;

mod museum;

mod browser;
mod conditions;
mod early;
mod folders;
mod hosts;
mod libraries;
mod limits;
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

/// Runs a test under an architecture.
fn under(architecture: &str, test: fn(&common::server::Server)) {
    test(museum::server(architecture));
}

//! HTTP/2 on the wire: the conformance suite, independent clients, and every known abuse with its bound.

#[path = "../common/architectures.rs"]
mod architectures;
#[path = "../common/mod.rs"]
mod common;
#[path = "../applications/program.rs"]
mod program;

mod abuses;
mod clients;
mod conformance;
mod peer;
mod site;

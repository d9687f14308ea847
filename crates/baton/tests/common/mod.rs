//! The common parts of black-box suites: a folder, a real server process, and clients.
//!
//! ```text
//!   Folder ──► Server ──► Agent: requests, by any protocol ──► Response
//!   files      process    Client: bytes of HTTP/1
//! ```
//!
//! A suite includes it with `#[path = "../common/mod.rs"] mod common;`.

#![allow(dead_code, reason = "each suite uses a part of it")]

use std::io::Write as _;

use baton_engine::ArchitectureName;

pub(crate) mod agent;
pub(crate) mod browser;
pub(crate) mod certificate;
pub(crate) mod client;
pub(crate) mod decode;
pub(crate) mod descriptors;
pub(crate) mod dns;
pub(crate) mod folder;
pub(crate) mod http2;
pub(crate) mod kernel_tls;
pub(crate) mod matrix;
pub(crate) mod port;
pub(crate) mod protocol;
pub(crate) mod server;
pub(crate) mod stream;
pub(crate) mod tools;
pub(crate) mod watched;

/// Reports that a part of the suite is left out, directly on standard error, which the test harness does not capture:
/// it stands beside `test result: ok`.
pub(crate) fn leave_out(what: &str, why: &str) {
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    // Ignore a closed standard error.
    let _ = writeln!(std::io::stderr(), "LEFT OUT of {test}: {what}: {why}");
}

/// Takes the first bytes of an input: `drain` and `collect` move each by itself in a debug build.
pub(crate) fn take_front(input: &mut Vec<u8>, count: usize) -> Vec<u8> {
    let rest = input.split_off(count);
    std::mem::replace(input, rest)
}

/// Every architecture, by the word that chooses it.
pub(crate) const ARCHITECTURES: [&str; ArchitectureName::ALL.len()] = {
    let mut words = [""; ArchitectureName::ALL.len()];
    let mut index = 0;
    while index < words.len() {
        words[index] = ArchitectureName::ALL[index].name();
        index += 1;
    }
    words
};

/// Worker processes for a test that is content with so many: under `mp`, which serves one client with each, enough for the
/// clients of a test.
pub(crate) fn processes(architecture: &str, enough: usize) -> usize {
    if architecture == ArchitectureName::Mp.name() { enough.max(12) } else { enough }
}

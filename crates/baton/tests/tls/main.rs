//! Certificates as clients and operators see them: real handshakes with real servers.

#[path = "../common/mod.rs"]
mod common;

mod authority;
mod browser;
mod certificates_of_clients;
mod client;
mod command_line;
mod exchange;
mod kernel;
mod reload;
mod sessions;
mod sites;
mod status;

//! What black-box suites have in common: a folder, a real server process on it, and a client that does no more than
//! it is told.
//!
//! ```text
//!   Folder ──► Server ──► Client ──► Response
//!   files      process    bytes      one, by its framing
//! ```
//!
//! A suite includes it with `#[path = "../common/mod.rs"] mod common;`.

#![allow(dead_code, reason = "each suite uses a part of it")]

pub(crate) mod client;
pub(crate) mod folder;
pub(crate) mod server;

/// Every architecture, by the word that chooses it.
pub(crate) const ARCHITECTURES: [&str; 9] =
    ["auto", "sped", "amped", "symped", "shared-symped", "n-copy", "pipeline", "threads", "threads-cache"];

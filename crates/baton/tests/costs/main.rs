//! What a request costs, in exact numbers: system calls of the running server, packets on the wire.
//!
//! The numbers stand in `docs/system-calls.md`. These tests read them there, count, and compare, so that the document
//! cannot say anything else than what the server does. Nothing here is about time.

#[path = "../common/mod.rs"]
mod common;

mod calls;
mod capture;
mod document;
mod packets;
mod trace;
mod usual;

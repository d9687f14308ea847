//! What a request costs, in exact numbers: system calls of the running server, packets on the wire, bytes
//! that are copied.
//!
//! The numbers stand in `docs/system-calls.md`. These tests read them there, count, and compare, so that the document
//! cannot say anything else than what the server does. Nothing here is about time.

#[path = "../common/mod.rs"]
mod common;

mod applications;
mod calls;
mod capture;
mod copies;
mod document;
mod packets;
mod program;
mod trace;
mod usual;

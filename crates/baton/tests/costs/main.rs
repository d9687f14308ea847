//! The exact costs of a request: system calls of the running server, packets on the wire, copied bytes.
//!
//! The tests read the numbers in `docs/system-calls.md`, count, and compare, so that the document stays true. No test
//! measures time.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/origin.rs"]
mod origin;

mod applications;
mod cached;
mod calls;
mod capture;
mod copies;
mod document;
mod moved;
mod packets;
mod program;
mod proxied;
mod proxy;
mod trace;
mod uploads;
mod usual;

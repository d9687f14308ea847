//! Real programs with the library preloaded, and a small server that plays Baton's part: it passes the client's
//! socket, sends offers, and reads the records.

#[path = "../../../responder/tests/rig/port.rs"]
mod port;

mod support;

mod answers;
mod lent;
mod plain;
mod pools;
mod programs;
mod shared;
mod streams;

//! Unmodified programs with the drop-in: they must behave as with the original, and give the same answers by the
//! hand-over protocol as by FastCGI.

#[path = "../../../responder/tests/rig/mod.rs"]
mod rig;

#[path = "../../../responder/tests/rig/bodies.rs"]
mod bodies;

#[path = "../../../responder/tests/rig/port.rs"]
mod port;

mod comparison;
mod handover;
mod lent;
mod packages;
mod program;
mod signals;
mod sockets;
mod symbols;
mod system_calls;

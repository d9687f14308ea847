//! Unmodified programs with the drop-in in place of the original: they must do the same, and over the hand-over protocol
//! answer what they answer over FastCGI.

#[path = "../../../responder/tests/rig/mod.rs"]
mod rig;

#[path = "../../../responder/tests/rig/port.rs"]
mod port;

mod comparison;
mod handover;
mod packages;
mod program;
mod signals;
mod sockets;
mod symbols;
mod system_calls;

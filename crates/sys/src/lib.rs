//! Safe names for the system calls that `rustix` lacks, a file per family. Knows no protocol.
//!
//! This crate is one of the islands where `unsafe` is allowed: each block says why it is sound.

pub mod activation;
pub mod blocking;
mod bpf;
pub mod call_filter;
pub mod descriptors;
pub mod flow_table;
pub mod handoff;
pub mod inherited_descriptor;
pub mod interfaces;
pub mod kernel_tls;
pub mod mailbox;
pub mod memory;
pub mod memory_bounds;
pub mod memory_pressure;
pub mod open_below;
pub mod passing;
pub mod process;
pub mod progress;
pub mod residency;
pub mod shared;
pub mod shared_table;
pub mod signals;
mod socket_option;
pub mod tcp;
pub mod tcp_repair;
pub mod tun;
pub mod usage;
pub mod write_back;

use std::io;

/// Turns the result of a libc call (-1 and `errno`) into an [`io::Result`].
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

//! The supervisor from outside: real processes, signals, sockets and files.
//!
//! Each test starts its own server in its own folder, on ports that the kernel chooses.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/origin.rs"]
mod origin;

mod admin;
mod cpus;
mod descriptors;
mod ending;
mod group;
mod logs;
mod memory;
mod moving;
mod pressure;
mod reload;
mod start;
mod supervised;
mod tunnels;
mod upgrade;
mod ways;
mod workers;

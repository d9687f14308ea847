//! The supervisor from outside: real processes, signals, sockets and files.
//!
//! Each test starts a server of its own in a folder of its own, on ports that the kernel chooses.

mod admin;
mod client;
mod ending;
mod logs;
mod reload;
mod server;
mod start;
mod workers;

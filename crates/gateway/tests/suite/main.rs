//! The gateway against an application that follows a script, over real sockets.

mod common;
mod faults;
mod leaving;
mod members;
mod negotiate;
mod order;
mod passfd;
mod plain;
mod pool;
mod shm;
mod streamed_bodies;

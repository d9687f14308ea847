//! The gateway against an application that follows a script, over real sockets.

mod common;
mod faults;
mod http1;
mod leaving;
mod lent_bodies;
mod members;
mod negotiate;
mod order;
mod passfd;
mod piped;
mod plain;
mod pool;
mod proxy_protocol;
mod shm;
mod streamed_bodies;
mod tls;

//! The way from a worker that leaves to all others: one pair of sockets for the life of the server.
//!
//! Each worker has one end, from which it takes as many clients as it has room for. A worker that leaves gets the other end
//! with its order to drain. The master keeps both, so a worker that dies closes neither.

use std::os::fd::OwnedFd;

use baton_sys::passing;

/// Both ends.
#[derive(Debug)]
pub(crate) struct Siblings {
    /// For workers that leave.
    pub(crate) way: OwnedFd,
    /// For workers that serve.
    pub(crate) arrivals: OwnedFd,
}

impl Siblings {
    /// Opens the way. `None`: no descriptor is left, and clients stay with the workers that accepted them.
    pub(crate) fn open() -> Option<Self> {
        passing::message_pair().ok().map(|(way, arrivals)| Self { way, arrivals })
    }
}

//! A port for a program that opens its socket itself.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with, sockopt};

/// A reserved port of 127.0.0.1: while this lives, the kernel assigns it neither to connections nor to `bind` with
/// port 0. A server that binds this very port with `SO_REUSEADDR` may listen on it.
pub(crate) struct Port {
    _held: OwnedFd,
    pub(crate) number: u16,
}

impl Port {
    pub(crate) fn reserve() -> Self {
        let held = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let held = held.expect("a socket");
        sockopt::set_socket_reuseaddr(&held, true).expect("SO_REUSEADDR");
        bind(&held, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = getsockname(&held).expect("an address");
        let number = SocketAddr::try_from(address).expect("an address of IPv4").port();
        Self { _held: held, number }
    }
}

//! Ports for programs that cannot report theirs, or that have to know them in advance. Suites of other crates include
//! this file.

#![allow(dead_code, reason = "each suite uses a part of it")]

use std::hash::{BuildHasher as _, RandomState};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};

/// A port of loopback that was free a moment ago, for TCP and UDP.
///
/// The kernel gives ports from 32,768 on to clients and to listeners with port 0 (`ip_local_port_range`): the socket of
/// another test could take one of those before its server does.
pub(crate) fn free_port() -> u16 {
    // Without listening: a process that another test is about to start has a copy of the socket until it executes its
    // program, and of two that only are bound none is in the other's way.
    let is_free = |port: &u16| {
        let tcp = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let tcp = tcp.expect("a socket");
        set_socket_reuseaddr(&tcp, true).expect("an option");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, *port));
        bind(&tcp, &address).is_ok() && UdpSocket::bind(address).is_ok()
    };
    let any = || 10_240 + (RandomState::new().hash_one(0) % 22_000) as u16;
    std::iter::repeat_with(any).find(is_free).expect("a port")
}

/// An address of loopback with such a port.
pub(crate) fn free_address() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()))
}

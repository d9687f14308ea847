//! Nonblocking sockets to applications.

use std::os::fd::OwnedFd;

use baton_sys::descriptors;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::Address;

/// A socket that is connected, or about to be.
#[derive(Debug)]
pub(crate) struct Connecting {
    pub(crate) socket: OwnedFd,
    /// Whether connecting is still under way: the socket will become writable or have an error.
    pub(crate) under_way: bool,
    /// Whether it is a Unix socket.
    pub(crate) is_local: bool,
}

/// Begins to connect to an application.
///
/// # Errors
/// `EAGAIN` if the backlog of a Unix socket is full; `ECONNREFUSED` or `ENOENT` if no process listens; and others.
pub(crate) fn connect(address: &Address) -> Result<Connecting, Errno> {
    let family = match address {
        Address::Unix(_) | Address::Abstract(_) => AddressFamily::UNIX,
        Address::Inet(address) if address.is_ipv4() => AddressFamily::INET,
        Address::Inet(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = descriptors::retry(|| rustix::net::socket_with(family, SocketType::STREAM, flags, None))?;
    let connected = match address {
        Address::Unix(path) => rustix::net::connect(&socket, &SocketAddrUnix::new(path.as_path())?),
        Address::Abstract(name) => rustix::net::connect(&socket, &SocketAddrUnix::new_abstract_name(name)?),
        Address::Inet(address) => {
            rustix::net::sockopt::set_tcp_nodelay(&socket, true)?;
            rustix::net::connect(&socket, address)
        }
    };
    let under_way = match connected {
        Ok(()) => false,
        Err(Errno::INPROGRESS) => true,
        Err(error) => return Err(error),
    };
    Ok(Connecting { socket, under_way, is_local: family == AddressFamily::UNIX })
}

/// The result of connecting, once the socket is writable.
///
/// # Errors
/// Why it is not connected.
pub(crate) fn finish_connecting(socket: &OwnedFd) -> Result<(), Errno> {
    rustix::net::sockopt::socket_error(socket)?
}

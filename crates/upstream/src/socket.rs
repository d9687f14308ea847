//! Nonblocking sockets to applications.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use baton_sys::descriptors;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::{Address, NamedAddress};

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
/// `EAGAIN` if the backlog of a Unix socket is full; `ECONNREFUSED` or `ENOENT` if no process listens; [`NO_ADDRESS`]; and
/// others.
pub(crate) fn connect(address: &Address) -> Result<Connecting, Errno> {
    match address {
        Address::Unix(path) => {
            let path = SocketAddrUnix::new(path.as_path())?;
            begin(AddressFamily::UNIX, |socket| rustix::net::connect(socket, &path))
        }
        Address::Abstract(name) => {
            let name = SocketAddrUnix::new_abstract_name(name)?;
            begin(AddressFamily::UNIX, |socket| rustix::net::connect(socket, &name))
        }
        Address::Inet(address) => connect_inet(*address),
        Address::Named(NamedAddress { name, port }) => {
            let mut result = Err(NO_ADDRESS);
            for address in name.in_turn() {
                result = connect_inet((address, *port).into());
                // Others fail at once for a host without IPv6.
                if result.is_ok() || result.as_ref().is_err_and(|error| descriptors::ran_out(*error)) {
                    break;
                }
            }
            result
        }
    }
}

fn connect_inet(address: SocketAddr) -> Result<Connecting, Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    begin(family, |socket| {
        rustix::net::sockopt::set_tcp_nodelay(socket, true)?;
        rustix::net::connect(socket, &address)
    })
}

fn begin(
    family: AddressFamily,
    connect: impl FnOnce(&OwnedFd) -> Result<(), Errno>,
) -> Result<Connecting, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = descriptors::retry(|| rustix::net::socket_with(family, SocketType::STREAM, flags, None))?;
    let under_way = match connect(&socket) {
        Ok(()) => false,
        Err(Errno::INPROGRESS) => true,
        Err(error) => return Err(error),
    };
    Ok(Connecting { socket, under_way, is_local: family == AddressFamily::UNIX })
}

/// A name that has no address, or was not looked up yet. No call on a socket of ours fails with it.
pub(crate) const NO_ADDRESS: Errno = Errno::NXIO;

/// The result of connecting, once the socket is writable.
///
/// # Errors
/// Why it is not connected.
pub(crate) fn finish_connecting(socket: impl AsFd) -> Result<(), Errno> {
    rustix::net::sockopt::socket_error(socket)?
}

//! Listening sockets, with every option that a connection can inherit set once.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use baton_passport::Address;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

/// Where clients connect to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ListenAddress {
    /// An address and a port.
    Tcp(SocketAddr),
    /// A path in the file system.
    Unix(PathBuf),
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl From<&ListenAddress> for Address {
    fn from(address: &ListenAddress) -> Self {
        match address {
            ListenAddress::Tcp(tcp) => Self::Tcp(*tcp),
            ListenAddress::Unix(path) => Self::Unix(path.clone()),
        }
    }
}

impl From<Address> for ListenAddress {
    fn from(address: Address) -> Self {
        match address {
            Address::Tcp(tcp) => Self::Tcp(tcp),
            Address::Unix(path) => Self::Unix(path),
        }
    }
}

/// A listening socket of this process.
#[derive(Debug)]
pub struct Listener {
    /// By which sites name it.
    pub id: usize,
    /// Where it listens.
    pub address: ListenAddress,
    /// The socket, non-blocking.
    pub socket: OwnedFd,
}

/// The ids and addresses of listeners, by which another process knows them.
pub fn addresses_of(listeners: &[Arc<Listener>]) -> Vec<(usize, Address)> {
    listeners.iter().map(|one| (one.id, Address::from(&one.address))).collect()
}

/// Options of a listening socket.
#[derive(Clone, Copy, Debug)]
pub struct ListenOptions {
    /// Connections that may wait to be accepted.
    pub backlog: i32,
    /// Whether several sockets share the address, each with a queue of its own.
    pub reuse_port: bool,
    /// See [`Tuning::defer_accept_s`](crate::Tuning::defer_accept_s).
    pub defer_accept_s: u32,
    /// See [`Tuning::socket_send_buffer_bytes`](crate::Tuning::socket_send_buffer_bytes).
    pub send_buffer_bytes: Option<usize>,
}

/// Makes a listening, non-blocking, close-on-exec socket.
///
/// Connections inherit `TCP_NODELAY`, a send buffer's size, and that the acknowledgement of a request rides on its
/// response (`TCP_QUICKACK` off, which the kernel forgets unless it is set after `listen`): no call per connection
/// is needed for any of them.
///
/// # Errors
/// `EADDRINUSE`, `EACCES`, `EADDRNOTAVAIL`, and what else socket(2), bind(2) and listen(2) say.
pub fn bind(address: &ListenAddress, options: &ListenOptions) -> io::Result<OwnedFd> {
    match address {
        ListenAddress::Tcp(address) => bind_tcp(address, options),
        ListenAddress::Unix(path) => {
            let socket = socket(AddressFamily::UNIX)?;
            rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
            rustix::net::listen(&socket, options.backlog)?;
            Ok(socket)
        }
    }
}

fn bind_tcp(address: &SocketAddr, options: &ListenOptions) -> io::Result<OwnedFd> {
    let socket = socket(if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 })?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if options.reuse_port {
        sockopt::set_socket_reuseport(&socket, true)?;
    }
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    if let Some(bytes) = options.send_buffer_bytes {
        sockopt::set_socket_send_buffer_size(&socket, bytes)?;
    }
    rustix::net::bind(&socket, address)?;
    rustix::net::listen(&socket, options.backlog)?;
    inherit_tcp_options(&socket, options.defer_accept_s)?;
    Ok(socket)
}

/// Sets on a listening TCP socket, wherever it came from, the options that its connections inherit.
///
/// # Errors
/// `EOPNOTSUPP` if the socket is not TCP.
pub fn inherit_tcp_options(socket: &OwnedFd, defer_accept_s: u32) -> io::Result<()> {
    sockopt::set_tcp_nodelay(socket, true)?;
    sockopt::set_tcp_quickack(socket, false)?;
    if defer_accept_s > 0 {
        baton_sys::tcp::set_defer_accept(socket, i32::try_from(defer_accept_s).unwrap_or(i32::MAX))?;
    }
    Ok(())
}

fn socket(family: AddressFamily) -> io::Result<OwnedFd> {
    Ok(rustix::net::socket_with(
        family,
        SocketType::STREAM,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?)
}

/// Removes the file of a Unix socket that a dead server left behind: no process accepts from it.
///
/// # Errors
/// `EADDRINUSE` if a running server listens there.
pub fn remove_stale_socket(path: &Path) -> io::Result<()> {
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && is_socket(path) => {
            fs::remove_file(path)
        }
        Ok(_) => Err(rustix::io::Errno::ADDRINUSE.into()),
        Err(_) => Ok(()), // Nothing there, or something that bind will complain about.
    }
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

/// Removes the file of a Unix socket at the end of its use; TCP addresses have none.
pub fn remove_socket_file(address: &ListenAddress) {
    if let ListenAddress::Unix(path) = address {
        // Gone already, or not ours to remove: either way it does no harm.
        let _ = fs::remove_file(path);
    }
}

/// The address that a socket is bound to.
///
/// # Errors
/// `EAFNOSUPPORT` if it is neither TCP nor a named Unix socket.
pub fn address_of(socket: impl AsFd) -> io::Result<ListenAddress> {
    let address = rustix::net::getsockname(socket)?;
    if let Ok(tcp) = SocketAddr::try_from(address.clone()) {
        return Ok(ListenAddress::Tcp(tcp));
    }
    let unix = SocketAddrUnix::try_from(address)?;
    let path = unix.path_bytes().ok_or(rustix::io::Errno::AFNOSUPPORT)?;
    Ok(ListenAddress::Unix(OsStr::from_bytes(path).into()))
}

//! Addresses of applications.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Where an application listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// A Unix socket in the file system.
    Unix(PathBuf),
    /// A Unix socket in the abstract namespace.
    Abstract(Vec<u8>),
    /// A TCP socket.
    Inet(SocketAddr),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Abstract(name) => write!(f, "unix:@{}", name.escape_ascii()),
            Self::Inet(address) => address.fmt(f),
        }
    }
}

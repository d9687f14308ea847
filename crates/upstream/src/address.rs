//! Addresses of applications.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use baton_dns::Name;

/// Where an application listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// A Unix socket in the file system.
    Unix(PathBuf),
    /// A Unix socket in the abstract namespace.
    Abstract(Vec<u8>),
    /// A TCP socket.
    Inet(SocketAddr),
    /// A TCP port of a host whose addresses may change.
    Named(NamedAddress),
}

/// A port of a host.
#[derive(Clone, Debug)]
pub struct NamedAddress {
    /// The host.
    pub name: Arc<Name>,
    /// The port.
    pub port: u16,
}

impl Address {
    /// Whether it is a TCP socket.
    pub fn is_tcp(&self) -> bool {
        matches!(self, Self::Inet(_) | Self::Named(_))
    }

    /// How many addresses a connection may try.
    pub(crate) fn choices(&self) -> usize {
        match self {
            Self::Named(NamedAddress { name, .. }) => name.addresses().len(),
            _ => 1,
        }
    }

    /// It cannot be connected to. If that is because the host has moved, it is to be noticed soon.
    pub(crate) fn note_unreachable(&self) {
        if let Self::Named(NamedAddress { name, .. }) = self {
            name.hurry();
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Abstract(name) => write!(f, "unix:@{}", name.escape_ascii()),
            Self::Inet(address) => address.fmt(f),
            Self::Named(NamedAddress { name, port }) => write!(f, "{}:{port}", name.host()),
        }
    }
}

impl PartialEq for NamedAddress {
    fn eq(&self, other: &Self) -> bool {
        (self.name.host(), self.port) == (other.name.host(), other.port)
    }
}

impl Eq for NamedAddress {}

impl Hash for NamedAddress {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.name.host(), self.port).hash(state);
    }
}
